/* The compiled way of log bytes on a slave, from the buffer into the log and their ack back; track.py says what
 * and why.
 *
 * What is plain are frames with data for the log's end, of the epoch that is said, whole and with the right
 * checksum, whose bytes are whole and sound records. They go straight into the mapped file of the log. The walk
 * ends before the first that is anything else: that, wrong bytes included, is for Python, which has the last word.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <sys/socket.h>

#include "../protocol/_link_frames.h"
#include "../protocol/_sound.h"

typedef struct {
    PyObject_HEAD
    PyObject *log;
    /* The part of the mapped file that the next records go to. */
    Py_buffer window;
    int64_t window_start, room_to, cut_count, most_bytes;
    char is_full;
} Track;

static PyObject *name_log_end, *name_raw_to, *name_refusal, *name_cut_count;

static void forget_window(Track *track)
{
    if (track->window.obj != NULL)
        PyBuffer_Release(&track->window);
    track->room_to = 0;
}

static int read_attribute(PyObject *owner, PyObject *name, int64_t *value)
{
    PyObject *number = PyObject_GetAttr(owner, name);
    int is_read = read_int(number, 0, INT64_MAX / 2, value);
    Py_XDECREF(number);
    return is_read;
}

/* Where the log goes on, if it may and the window is still one of it. */
static int find_end(Track *track, int64_t *log_end)
{
    int64_t cut_count;
    if (!read_attribute(track->log, name_log_end, log_end) || !read_attribute(track->log, name_cut_count, &cut_count))
        return 0;
    PyObject *refusal = PyObject_GetAttr(track->log, name_refusal);
    Py_XDECREF(refusal);
    track->is_full = cut_count != track->cut_count || *log_end < track->window_start || *log_end >= track->room_to;
    return refusal == Py_None && !track->is_full;
}

/* Whether the frame at the front may be plain, by its head. What is larger is written as a whole, by Python. */
static int may_be_plain(View data, int64_t most_bytes)
{
    return data.size >= DATA_HEAD_BYTES && data.data[0] == DATA_FRAME && (uint32_t)get32(data.data + 1) <= most_bytes;
}

/* What the frame at the front is as a whole if it is plain and goes to the log's end; else 0. */
static int64_t plain_size(const uint8_t *at, int64_t left, int64_t log_end, int64_t epoch, int64_t most_bytes)
{
    if (left < DATA_HEAD_BYTES || at[0] != DATA_FRAME)
        return 0;
    int64_t size = (uint32_t)get32(at + 1);
    if (size == 0 || size > most_bytes || left - DATA_HEAD_BYTES < size || get64(at + 5) != log_end
        || get32(at + 13) != epoch || get64(at + 17) < 0)
        return 0;
    const uint8_t *body = at + DATA_HEAD_BYTES;
    uint32_t crc = crc32_on(crc32_on(0, body, (size_t)size), at, DATA_FIELDS_BYTES);
    return crc == (uint32_t)get32(at + DATA_FIELDS_BYTES) && sound_bytes(body, size, log_end) == size
        ? DATA_HEAD_BYTES + size
        : 0;
}

/* The log ends there now. 0: nothing has changed. */
static int set_end(Track *track, int64_t before, int64_t log_end)
{
    PyObject *end = PyLong_FromLongLong(log_end), *old = PyLong_FromLongLong(before);
    int is_done = end != NULL && old != NULL && PyObject_SetAttr(track->log, name_log_end, end) == 0;
    if (is_done && PyObject_SetAttr(track->log, name_raw_to, end) < 0) {
        PyErr_Clear();
        PyObject_SetAttr(track->log, name_log_end, old);
        is_done = 0;
    }
    Py_XDECREF(end);
    Py_XDECREF(old);
    return is_done;
}

/* How many bytes of the ack the socket took. */
static int64_t send_ack(int file, int64_t ack_kind, int64_t log_end)
{
    uint8_t ack[ACK_BYTES];
    put_ack(ack, ack_kind, log_end);
    ssize_t sent = send(file, ack, sizeof ack, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? 0 : sent;
}

/* What is plain at the front goes into the log. Returns how much that is, or 0. */
static int64_t take_plain(Track *track, View data, int64_t epoch, int64_t *log_end, int64_t *confirmed_to)
{
    int64_t used = 0, size;
    while ((size = plain_size(data.data + used, data.size - used, *log_end, epoch, track->most_bytes)) > 0) {
        int64_t body_bytes = size - DATA_HEAD_BYTES;
        if (*log_end + body_bytes > track->room_to) {
            track->is_full = 1;
            break;
        }
        const uint8_t *at = data.data + used;
        memcpy((uint8_t *)track->window.buf + (*log_end - track->window_start), at + DATA_HEAD_BYTES, (size_t)body_bytes);
        *confirmed_to = get64(at + 17) > *confirmed_to ? get64(at + 17) : *confirmed_to;
        *log_end += body_bytes;
        used += size;
    }
    return used;
}

static PyObject *track_take(Track *track, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer view;
    int64_t start, end, epoch, file, ack_kind, before = 0, confirmed_to = 0;
    if (count != 6 || !read_int(arguments[1], 0, INT32_MAX, &start) || !read_int(arguments[2], start, INT32_MAX, &end)
        || !read_int(arguments[3], 0, INT32_MAX, &epoch) || !read_int(arguments[4], -1, INT32_MAX, &file)
        || !read_int(arguments[5], 0, UINT8_MAX, &ack_kind)) {
        PyErr_SetString(PyExc_TypeError, "a buffer, where what came lies in it, an epoch, a file and a kind of ack are needed");
        return NULL;
    }
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    View data = {(const uint8_t *)view.buf + start, end <= view.len ? (Py_ssize_t)(end - start) : 0};
    int64_t log_end = 0, used = 0, sent = 0;
    track->is_full = 0;
    if (may_be_plain(data, track->most_bytes) && find_end(track, &before)) {
        log_end = before;
        used = take_plain(track, data, epoch, &log_end, &confirmed_to);
    }
    PyErr_Clear();
    PyBuffer_Release(&view);
    if (used == 0)
        Py_RETURN_NONE;
    if (!set_end(track, before, log_end)) {
        /* What was written lies behind the end: it is as if it was not there, and Python takes the frames. */
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if (file >= 0)
        sent = send_ack((int)file, ack_kind, log_end);
    return Py_BuildValue("(LLLL)", (long long)used, (long long)log_end, (long long)confirmed_to, (long long)sent);
}

/* From now on records go to this buffer, which is what the log has from ``start`` on, and end before ``room_to``. */
static PyObject *track_open(Track *track, PyObject *const *arguments, Py_ssize_t count)
{
    int64_t start, room_to, cut_count;
    if (count != 4 || !read_int(arguments[1], 0, INT64_MAX / 2, &start) || !read_int(arguments[2], 0, INT64_MAX / 2, &room_to)
        || !read_int(arguments[3], 0, INT64_MAX / 2, &cut_count)) {
        PyErr_SetString(PyExc_TypeError, "a buffer, where it begins, up to where there is room, and a count are needed");
        return NULL;
    }
    forget_window(track);
    if (PyObject_GetBuffer(arguments[0], &track->window, PyBUF_WRITABLE) < 0)
        return NULL;
    if (room_to > start + track->window.len) {
        forget_window(track);
        PyErr_SetString(PyExc_ValueError, "the buffer is shorter than the room in it");
        return NULL;
    }
    track->window_start = start;
    track->room_to = room_to;
    track->cut_count = cut_count;
    Py_RETURN_NONE;
}

static PyObject *track_close(Track *track, PyObject *Py_UNUSED(none))
{
    forget_window(track);
    Py_RETURN_NONE;
}

static PyObject *track_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    PyObject *log;
    long long most_bytes;
    if (!PyArg_ParseTuple(arguments, "OL", &log, &most_bytes))
        return NULL;
    Track *track = (Track *)type->tp_alloc(type, 0);
    if (track == NULL)
        return NULL;
    track->log = Py_NewRef(log);
    track->most_bytes = most_bytes;
    return (PyObject *)track;
}

static void track_dealloc(Track *track)
{
    PyTypeObject *type = Py_TYPE(track);
    forget_window(track);
    Py_CLEAR(track->log);
    type->tp_free(track);
    Py_DECREF(type);
}

static PyMethodDef track_methods[] = {
    {"take", (PyCFunction)(void (*)(void))track_take, METH_FASTCALL, "Append and ack what is plain at the front."},
    {"open", (PyCFunction)(void (*)(void))track_open, METH_FASTCALL, "Write the log here."},
    {"close", (PyCFunction)track_close, METH_NOARGS, "Let go of the log's file."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef track_members[] = {
    {"is_full", T_BOOL, offsetof(Track, is_full), READONLY, "Whether what came last found no room in the window."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot track_slots[] = {
    {Py_tp_new, track_new},
    {Py_tp_dealloc, track_dealloc},
    {Py_tp_methods, track_methods},
    {Py_tp_members, track_members},
    {0, NULL},
};

static PyType_Spec track_spec = {"tanist.ha._track.Track", sizeof(Track), 0, Py_TPFLAGS_DEFAULT, track_slots};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_track", "The compiled way of log bytes on a slave.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__track(void)
{
    PyObject *made = PyModule_Create(&module);
    PyObject *track_type = PyType_FromSpec(&track_spec);
    make_crc_tables();
    if (made == NULL || track_type == NULL || (name_log_end = PyUnicode_InternFromString("log_end")) == NULL
        || (name_raw_to = PyUnicode_InternFromString("raw_to")) == NULL
        || (name_refusal = PyUnicode_InternFromString("refusal")) == NULL
        || (name_cut_count = PyUnicode_InternFromString("cut_count")) == NULL
        || PyModule_AddObjectRef(made, "Track", track_type) < 0)
        return NULL;
    return made;
}
