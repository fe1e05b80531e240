/* The compiled way of a send, from its socket into the log and back; lane.py says what and why.
 *
 * A Lane reads from all sockets that have something, once a turn of the event loop. What is plain it takes: the
 * record goes from where it was read straight into the mapped file of the log, and the answer to the socket, or
 * to whoever keeps answers until messages are safe. Anything else, wrong input included, it hands to the
 * connection as it was read, and so to Python, which has the last word.
 *
 *   _taking.h   one frame: into the log, and its answer
 *   _line.h     one socket: what is kept of it, and how it is written to
 *   here        all of them: whose turn it is
 */

#define _GNU_SOURCE /* for memmem */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../protocol/_send_plan.h"

#include "_taking.h"

#include "_line.h"

enum { TURN_EVENTS = 64 };

/* Which line an event is for. One that was closed meanwhile may have left its number to another. */
static Line *find_line(const Lane *lane, uint64_t key)
{
    Py_ssize_t number = (Py_ssize_t)(key & UINT32_MAX);
    Line *line = number < lane->line_count ? lane->lines[number] : NULL;
    return line != NULL && line->key == key ? line : NULL;
}

/* The peer has sent its end, or the socket has failed: the transport finds the same, and sees to it. */
static void give_back(Line *line)
{
    PyObject *connection = Py_NewRef(line->connection);
    close_line(line);
    PyObject *done = PyObject_CallMethodNoArgs(connection, names.on_stream_end);
    if (done == NULL)
        PyErr_WriteUnraisable(connection);
    Py_XDECREF(done);
    Py_DECREF(connection);
}

/* 1: the frame was a send and is in the log. Where the window is full Python may move it on, within the turn. */
static int take_one(Lane *lane, Line *line, View frame)
{
    Taking *taking = &lane->taking;
    View host = {line->host, HOST_BYTES};
    if (!has_room(taking, lane->ask_room))
        return 0;
    if (take_frame(taking, frame, host, (PyObject *)line))
        return 1;
    taking->is_stale = taking->is_full;
    return taking->is_full && has_room(taking, lane->ask_room) && line->connection != NULL
        && take_frame(taking, frame, host, (PyObject *)line);
}

/* Take what is plain of the frames that were read, up to the first that is not. How many bytes that were. */
static Py_ssize_t take_frames(Lane *lane, Line *line, Py_ssize_t size)
{
    Py_ssize_t taken = 0;
    while (line->is_level && line->lacking == 0 && line->connection != NULL) {
        View frame = whole_frame((View){lane->buffer + taken, size - taken});
        if (frame.size == 0 || !take_one(lane, line, frame))
            break;
        line->frame_count++;
        taken += frame.size;
        if (lane->taking.answered_bytes > ANSWERS_BYTES - MAX_ANSWER_BYTES)
            send_answered(&lane->taking, line);
    }
    send_answered(&lane->taking, line);
    return taken;
}

static void serve_line(Lane *lane, Line *line)
{
    if (line->is_paused)
        return; /* Since we asked who has sent something. */
    if (is_closing(line)) {
        close_line(line);
        return;
    }
    Py_ssize_t kept = take_partial(line, lane->buffer);
    ssize_t received = recv(line->file, lane->buffer + kept, (size_t)(READ_BYTES - kept), MSG_DONTWAIT);
    if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) {
        give_back(line);
        return;
    }
    if (received > 0)
        line->read_count++;
    Py_ssize_t size = kept + (received > 0 ? received : 0);
    Py_ssize_t taken = take_frames(lane, line, size);
    View rest = {lane->buffer + taken, size - taken};
    if (rest.size > 0 && line->connection != NULL && pass_on(line, rest))
        lane->taking.is_stale = 1;
}

static PyObject *lane_turn(Lane *lane, PyObject *const *arguments, Py_ssize_t count)
{
    struct epoll_event events[TURN_EVENTS];
    Taking *taking = &lane->taking;
    int64_t now_ms, room;
    if (count != 3 || !read_int(arguments[0], 0, INT64_MAX, &now_ms) || !read_int(arguments[1], 0, INT64_MAX, &room)) {
        PyErr_SetString(PyExc_TypeError, "a time, the room for messages and a list for answers or None are needed");
        return NULL;
    }
    PyObject *answers = arguments[2] != Py_None ? arguments[2] : NULL;
    if (answers != NULL && !PyList_Check(answers)) {
        PyErr_SetString(PyExc_TypeError, "answers that wait are kept in a list");
        return NULL;
    }
    begin_taking(taking, now_ms, room, answers);
    int event_count = lane->epoll < 0 ? 0 : epoll_wait(lane->epoll, events, TURN_EVENTS, 0);
    /* Where the room is used up the rest stays in the sockets, for the next turn. */
    for (int n = 0; n < event_count && !taking->is_spent; n++) {
        Line *line = find_line(lane, events[n].data.u64);
        if (line == NULL)
            continue;
        Py_INCREF(line);
        serve_line(lane, line);
        Py_DECREF(line);
    }
    taking->answers = NULL;
    return Py_BuildValue("(nLL)", taking->count, (long long)taking->first, (long long)taking->end);
}

static PyObject *lane_answer(Lane *Py_UNUSED(lane), PyObject *answers)
{
    if (!PyList_Check(answers)) {
        PyErr_SetString(PyExc_TypeError, "a list of lines and answers is needed");
        return NULL;
    }
    send_all(answers);
    Py_RETURN_NONE;
}

static PyObject *lane_use(Lane *lane, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "a log and a plan are needed");
        return NULL;
    }
    return use_plan(&lane->taking, arguments[0], arguments[1]);
}

static PyObject *lane_open(Lane *lane, PyObject *const *arguments, Py_ssize_t count)
{
    int64_t start, room_to, cut_count;
    if (count != 4 || !read_int(arguments[1], 0, INT64_MAX / 2, &start) || !read_int(arguments[2], 0, INT64_MAX / 2, &room_to)
        || !read_int(arguments[3], 0, INT64_MAX, &cut_count)) {
        PyErr_SetString(PyExc_TypeError, "a buffer, where it begins, up to where there is room, and a count are needed");
        return NULL;
    }
    return open_window(&lane->taking, arguments[0], start, room_to, cut_count);
}

static PyObject *lane_shut(Lane *lane, PyObject *Py_UNUSED(none))
{
    forget_log(&lane->taking);
    Py_RETURN_NONE;
}

/* Find a number for a new line. -1: an error is set. */
static Py_ssize_t free_number(Lane *lane)
{
    for (Py_ssize_t n = 0; n < lane->line_count; n++)
        if (lane->lines[lane->next = (lane->next + 1) % lane->line_count] == NULL)
            return lane->next;
    Py_ssize_t count = lane->line_count ? 2 * lane->line_count : 64;
    Line **lines = count < INT32_MAX ? PyMem_Realloc(lane->lines, (size_t)count * sizeof *lines) : NULL;
    if (lines == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memset(lines + lane->line_count, 0, (size_t)(count - lane->line_count) * sizeof *lines);
    lane->lines = lines;
    lane->next = lane->line_count;
    lane->line_count = count;
    return lane->next;
}

static PyObject *lane_join(Lane *lane, PyObject *const *arguments, Py_ssize_t count)
{
    int64_t file, lacking;
    View host;
    if (count != 5 || !read_int(arguments[2], 0, INT32_MAX, &file) || !view_bytes(arguments[3], HOST_BYTES, &host)
        || host.size != HOST_BYTES || !read_int(arguments[4], 0, INT32_MAX, &lacking)) {
        PyErr_SetString(PyExc_TypeError, "a connection, its wire, its file's number, its host in 8 bytes and what its frame "
                                         "lacks are needed");
        return NULL;
    }
    Py_ssize_t number = free_number(lane);
    return number < 0 ? NULL : (PyObject *)make_line(lane, number, arguments[0], arguments[1], (int)file, host, lacking);
}

static PyObject *lane_fileno(Lane *lane, PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(lane->epoll);
}

static PyObject *lane_close(Lane *lane, PyObject *Py_UNUSED(none))
{
    for (Py_ssize_t n = 0; n < lane->line_count; n++)
        if (lane->lines[n] != NULL)
            close_line(lane->lines[n]);
    forget_log(&lane->taking);
    if (lane->epoll >= 0)
        close(lane->epoll);
    lane->epoll = -1;
    Py_SETREF(lane->ask_room, Py_NewRef(Py_None));
    Py_RETURN_NONE;
}

static PyObject *lane_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    PyObject *ask_room;
    if (!PyArg_ParseTuple(arguments, "O", &ask_room))
        return NULL;
    Lane *lane = (Lane *)type->tp_alloc(type, 0);
    if (lane == NULL)
        return NULL;
    lane->ask_room = Py_NewRef(ask_room);
    lane->buffer = PyMem_Malloc(READ_BYTES);
    lane->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (lane->buffer == NULL || lane->epoll < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(lane);
        return NULL;
    }
    return (PyObject *)lane;
}

/* Lines hold their lane, so there are none any more. */
static void lane_dealloc(Lane *lane)
{
    PyTypeObject *type = Py_TYPE(lane);
    forget_log(&lane->taking);
    Py_CLEAR(lane->ask_room);
    if (lane->epoll >= 0)
        close(lane->epoll);
    PyMem_Free(lane->lines);
    PyMem_Free(lane->buffer);
    type->tp_free(lane);
    Py_DECREF(type);
}

static PyMethodDef lane_methods[] = {
    {"turn", (PyCFunction)(void (*)(void))lane_turn, METH_FASTCALL, "Serve who has sent something."},
    {"answer", (PyCFunction)lane_answer, METH_O, "Send answers that were kept."},
    {"use", (PyCFunction)(void (*)(void))lane_use, METH_FASTCALL, "Take messages for this log, by this plan."},
    {"open", (PyCFunction)(void (*)(void))lane_open, METH_FASTCALL, "Write the log here."},
    {"shut", (PyCFunction)lane_shut, METH_NOARGS, "Take no messages any more."},
    {"join", (PyCFunction)(void (*)(void))lane_join, METH_FASTCALL, "Read for a connection from now on."},
    {"fileno", (PyCFunction)lane_fileno, METH_NOARGS, "What is readable when one of the sockets is."},
    {"close", (PyCFunction)lane_close, METH_NOARGS, "Let go of all."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef lane_members[] = {
    {"is_full", T_BOOL, offsetof(Lane, taking.is_full), READONLY, "Whether a message found no room in the window."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot lane_slots[] = {
    {Py_tp_new, lane_new},
    {Py_tp_dealloc, lane_dealloc},
    {Py_tp_methods, lane_methods},
    {Py_tp_members, lane_members},
    {0, NULL},
};

static PyType_Spec lane_spec = {"tanist.broker._engine.Lane", sizeof(Lane), 0, Py_TPFLAGS_DEFAULT, lane_slots};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_engine", "The compiled way of sends.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__engine(void)
{
    PyObject *made = PyModule_Create(&module);
    PyObject *lane_type = PyType_FromSpec(&lane_spec);
    line_type = (PyTypeObject *)PyType_FromSpec(&line_spec);
    make_crc_tables();
    if (made == NULL || lane_type == NULL || line_type == NULL || !make_names()
        || PyModule_AddObjectRef(made, "Lane", lane_type) < 0
        || PyModule_AddObjectRef(made, "Line", (PyObject *)line_type) < 0)
        return NULL;
    return made;
}
