/* One socket of a lane, and the connection that it belongs to.
 *
 * The transport of the connection owns the socket. It does not read while the lane does, and what the system
 * does not take at once is the transport's to send. As long as something waits there, and once the transport
 * closes, nothing is written past it: its file may be another's by then.
 */

#ifndef TANIST_LINE_H
#define TANIST_LINE_H

enum {
    READ_BYTES = MAX_TAKEN_BYTES,
    MAX_PARTIAL_BYTES = 32 << 10, /* What is kept of a frame that is not whole. More is for Python to keep. */
};

typedef struct Line Line;

typedef struct {
    PyObject_HEAD
    int epoll;
    Line **lines; /* By their numbers; a line that is closed is not there. */
    Py_ssize_t line_count, next;
    PyObject *ask_room;
    uint32_t generation;
    uint8_t *buffer;
    Taking taking;
} Lane;

struct Line {
    PyObject_HEAD
    Lane *lane;
    PyObject *connection, *wire; /* NULL once it is closed. */
    int file;
    uint64_t key; /* Its number, and above it what tells it from others that had this number. */
    uint8_t host[HOST_BYTES];
    uint8_t *partial;
    Py_ssize_t partial_bytes, read_count, frame_count, written_bytes;
    int64_t lacking; /* Of a frame that the connection has the beginning of. */
    char is_level;   /* Whether no frame of an earlier read waits in the connection. */
    char is_paused;
};

static PyTypeObject *line_type;

/* An error is set that a connection made: it ends with it. */
static void report_fault(Line *line)
{
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (trace != NULL && error != NULL)
        PyException_SetTraceback(error, trace);
    PyObject *connection = Py_XNewRef(line->connection);
    if (connection != NULL && error != NULL) {
        PyObject *done = PyObject_CallMethodOneArg(connection, names.on_fault, error);
        if (done == NULL)
            PyErr_WriteUnraisable(connection);
        Py_XDECREF(done);
    }
    Py_XDECREF(connection);
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(trace);
}

/* Read no more for it. Whoever closes connections calls this before the transport closes the file. */
static void close_line(Line *line)
{
    if (line->connection == NULL)
        return;
    Lane *lane = line->lane;
    if (!line->is_paused && lane->epoll >= 0)
        epoll_ctl(lane->epoll, EPOLL_CTL_DEL, line->file, NULL);
    lane->lines[line->key & UINT32_MAX] = NULL;
    line->file = -1;
    PyMem_Free(line->partial);
    line->partial = NULL;
    line->partial_bytes = 0;
    Py_CLEAR(line->wire);
    Py_CLEAR(line->connection);
    line->lane = NULL;
    Py_DECREF(lane);
    Py_DECREF(line);
}

static int watch(Line *line)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = line->key};
    return epoll_ctl(line->lane->epoll, EPOLL_CTL_ADD, line->file, &event);
}

static Line *make_line(Lane *lane, Py_ssize_t number, PyObject *connection, PyObject *wire, int file, View host,
                       int64_t lacking)
{
    Line *line = PyObject_New(Line, line_type);
    if (line == NULL)
        return NULL;
    memset((char *)line + sizeof(PyObject), 0, sizeof *line - sizeof(PyObject));
    line->lane = (Lane *)Py_NewRef(lane);
    line->connection = Py_NewRef(connection);
    line->wire = Py_NewRef(wire);
    line->file = file;
    line->key = (uint64_t)++lane->generation << 32 | (uint64_t)number;
    line->lacking = lacking;
    line->is_level = 1;
    memcpy(line->host, host.data, HOST_BYTES);
    lane->lines[number] = (Line *)Py_NewRef(line);
    if (watch(line) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        line->is_paused = 1;
        close_line(line);
        Py_CLEAR(line);
    }
    return line;
}

static int is_closing(Line *line)
{
    PyObject *answer = PyObject_CallMethodNoArgs(line->wire, names.is_closing);
    int is_so = answer == NULL || PyObject_IsTrue(answer) != 0;
    Py_XDECREF(answer);
    PyErr_Clear();
    return is_so;
}

static int is_clear(Line *line)
{
    int64_t waiting_bytes = 0;
    PyObject *answer = PyObject_CallMethodNoArgs(line->wire, names.get_write_buffer_size);
    int is_so = read_int(answer, 0, 0, &waiting_bytes);
    Py_XDECREF(answer);
    PyErr_Clear();
    return is_so;
}

/* Send frames: at once what the system takes, the rest through the transport. Dropped if that closes. */
static void write_line(Line *line, const uint8_t *data, Py_ssize_t size)
{
    ssize_t sent = 0;
    if (line->connection == NULL || is_closing(line))
        return;
    line->written_bytes += size;
    if (is_clear(line))
        sent = send(line->file, data, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* Where the system takes nothing the transport will meet the same reason, and sees to it. */
    sent = sent < 0 ? 0 : sent;
    if (sent == size)
        return;
    PyObject *rest = PyBytes_FromStringAndSize((const char *)data + sent, size - sent);
    PyObject *done = rest == NULL ? NULL : PyObject_CallMethodOneArg(line->wire, names.write, rest);
    Py_XDECREF(rest);
    Py_XDECREF(done);
    if (done == NULL)
        report_fault(line);
}

/* Send what was answered since the last time. */
static void send_answered(Taking *taking, Line *line)
{
    /* Even if the line is closed and nobody gets them: they must not go to the next one. */
    Py_ssize_t size = taking->answered_bytes;
    taking->answered_bytes = 0;
    if (size > 0)
        write_line(line, taking->answered, size);
}

/* Send answers that were kept, those of one line that follow each other in one write. */
static void send_all(PyObject *answers)
{
    static uint8_t together[ANSWERS_BYTES];
    Py_ssize_t count = PyList_GET_SIZE(answers), size = 0;
    for (Py_ssize_t n = 0; n + 1 < count && n + 1 < PyList_GET_SIZE(answers); n += 2) {
        PyObject *line = PyList_GET_ITEM(answers, n);
        View answer = {NULL, 0};
        if (Py_TYPE(line) != line_type)
            continue;
        if (!view_bytes(PyList_GET_ITEM(answers, n + 1), MAX_ANSWER_BYTES, &answer))
            answer.size = 0;
        if (answer.size > 0)
            put_view(together + size, answer);
        size += answer.size;
        int is_last = n + 3 >= count || n + 2 >= PyList_GET_SIZE(answers) || PyList_GET_ITEM(answers, n + 2) != line;
        if (is_last || size > ANSWERS_BYTES - MAX_ANSWER_BYTES) {
            Py_INCREF(line);
            write_line((Line *)line, together, size);
            Py_DECREF(line);
            size = 0;
        }
    }
}

/* Put what was kept of a frame to where the rest of it is read to. How many bytes that are. */
static Py_ssize_t take_partial(Line *line, uint8_t *to)
{
    Py_ssize_t size = line->partial_bytes;
    if (size > 0)
        memcpy(to, line->partial, (size_t)size);
    PyMem_Free(line->partial);
    line->partial = NULL;
    line->partial_bytes = 0;
    return size;
}

/* Keep the beginning of a frame. 0: it is no such thing, or too long for us, and how long it is was read. */
static int keep_partial(Line *line, View rest)
{
    int64_t size = rest.size < 4 ? rest.size + 1 : frame_size(rest);
    if (size <= rest.size || size > MAX_PARTIAL_BYTES)
        return 0;
    line->partial = PyMem_Malloc((size_t)rest.size);
    if (line->partial == NULL) {
        PyErr_NoMemory();
        report_fault(line);
        return 1;
    }
    memcpy(line->partial, rest.data, (size_t)rest.size);
    line->partial_bytes = rest.size;
    return 1;
}

/* Send what was read the way of all reads. */
static void hand_over(Line *line, View data)
{
    PyObject *read = PyBytes_FromStringAndSize((const char *)data.data, data.size);
    PyObject *done = read == NULL ? NULL : PyObject_CallMethodOneArg(line->connection, names.data_received, read);
    Py_XDECREF(read);
    if (done == NULL)
        report_fault(line);
    Py_XDECREF(done);
    if (line->connection == NULL)
        return;
    PyObject *is_level = PyObject_GetAttr(line->connection, names.is_level);
    line->is_level = is_level == Py_True;
    Py_XDECREF(is_level);
    PyErr_Clear();
}

/* Where the last whole frame ends. */
static Py_ssize_t whole_frames(View data)
{
    Py_ssize_t end = 0;
    for (View frame; (frame = whole_frame((View){data.data + end, data.size - end})).size > 0;)
        end += frame.size;
    return end;
}

/* Whole frames that are not for us are the connection's, and so is one that is long, from its beginning on. That
 * of any other stays here, so that a stream comes back to us however its reads are cut. Whether any were. */
static int pass_on(Line *line, View data)
{
    Py_ssize_t end = line->lacking < data.size ? (Py_ssize_t)line->lacking : data.size;
    line->lacking -= end;
    end += whole_frames((View){data.data + end, data.size - end});
    View rest = {data.data + end, data.size - end};
    if (rest.size > 0 && !keep_partial(line, rest)) {
        /* What can be no frame is for the connection to say: once it has the whole prefix it does. */
        int64_t size = frame_size(rest) < PREFIX_BYTES ? PREFIX_BYTES : frame_size(rest);
        line->lacking = size > rest.size ? size - rest.size : 0;
        end = data.size;
    }
    if (end == 0 || line->connection == NULL)
        return 0;
    hand_over(line, (View){data.data, end});
    return 1;
}

static PyObject *line_pause(Line *line, PyObject *Py_UNUSED(none))
{
    if (line->connection != NULL && !line->is_paused) {
        epoll_ctl(line->lane->epoll, EPOLL_CTL_DEL, line->file, NULL);
        line->is_paused = 1;
    }
    Py_RETURN_NONE;
}

static PyObject *line_resume(Line *line, PyObject *Py_UNUSED(none))
{
    if (line->connection != NULL && line->is_paused) {
        if (watch(line) < 0)
            return PyErr_SetFromErrno(PyExc_OSError);
        line->is_paused = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *line_close(Line *line, PyObject *Py_UNUSED(none))
{
    close_line(line);
    Py_RETURN_NONE;
}

static void line_dealloc(Line *line)
{
    PyTypeObject *type = Py_TYPE(line);
    PyObject_Free(line);
    Py_DECREF(type);
}

static PyMethodDef line_methods[] = {
    {"pause", (PyCFunction)line_pause, METH_NOARGS, "Do not read for now."},
    {"resume", (PyCFunction)line_resume, METH_NOARGS, "Read again."},
    {"close", (PyCFunction)line_close, METH_NOARGS, "Read no more, and forget the connection."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef line_members[] = {
    {"connection", T_OBJECT, offsetof(Line, connection), READONLY, "Whose line it is; None once it is closed."},
    {"partial_bytes", T_PYSSIZET, offsetof(Line, partial_bytes), READONLY, "What is kept of a frame."},
    {"read_count", T_PYSSIZET, offsetof(Line, read_count), READONLY, NULL},
    {"frame_count", T_PYSSIZET, offsetof(Line, frame_count), READONLY, "Of those that were taken here."},
    {"written_bytes", T_PYSSIZET, offsetof(Line, written_bytes), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot line_slots[] = {
    {Py_tp_dealloc, line_dealloc},
    {Py_tp_methods, line_methods},
    {Py_tp_members, line_members},
    {0, NULL},
};

static PyType_Spec line_spec = {
    "tanist.broker._engine.Line", sizeof(Line), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, line_slots,
};

#endif
