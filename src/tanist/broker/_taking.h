/* One frame: whether it is a plain send, and if so into the log with it.
 *
 * The log is that of Python, and stays it: its end and the next offsets of its queues are read from there and
 * written there with each message. What is C's own is a window, the part of the mapped file that the next
 * records go to; a message that does not fit there, or finds a log that was cut since, is not for us.
 */

#ifndef TANIST_TAKING_H
#define TANIST_TAKING_H

enum {
    PREFIX_BYTES = 8,
    FLAG_RESPONSE_BIT = 1,
    FLAG_ONE_WAY_BIT = 2,
    ANSWERS_BYTES = 64 << 10,
    MAX_TAKEN_BYTES = 256 << 10, /* Of a frame. It is read as a whole. */
};

typedef struct {
    /* By whose rules, into which log; NULL: nothing is taken. */
    PyObject *log, *plan_object;
    Plan plan;
    Py_buffer window;
    int64_t window_start, room_to, cut_count;
    /* This turn. */
    int64_t now_ms, room, first, end;
    Py_ssize_t count;
    PyObject *answers; /* Borrowed. Lines and answers in turns; NULL: they leave at once. */
    char is_full, is_stale; /* Stale: Python has had its say since it told the time and the room. */
    char is_spent;          /* There was room, and these messages took it. */
    Py_ssize_t answered_bytes;
    uint8_t answered[ANSWERS_BYTES];
} Taking;

/* Names of attributes and methods, made once. */
static struct {
    PyObject *log_end, *refusal, *busy, *cut_count, *data_received, *is_level, *on_stream_end, *on_fault, *is_closing,
        *get_write_buffer_size, *write;
} names;

static int make_names(void)
{
    return (names.log_end = PyUnicode_InternFromString("log_end")) != NULL
        && (names.refusal = PyUnicode_InternFromString("refusal")) != NULL
        && (names.busy = PyUnicode_InternFromString("busy")) != NULL
        && (names.cut_count = PyUnicode_InternFromString("cut_count")) != NULL
        && (names.data_received = PyUnicode_InternFromString("data_received")) != NULL
        && (names.is_level = PyUnicode_InternFromString("is_level")) != NULL
        && (names.on_stream_end = PyUnicode_InternFromString("on_stream_end")) != NULL
        && (names.on_fault = PyUnicode_InternFromString("on_fault")) != NULL
        && (names.is_closing = PyUnicode_InternFromString("is_closing")) != NULL
        && (names.get_write_buffer_size = PyUnicode_InternFromString("get_write_buffer_size")) != NULL
        && (names.write = PyUnicode_InternFromString("write")) != NULL;
}

static void forget_log(Taking *taking)
{
    if (taking->window.obj != NULL)
        PyBuffer_Release(&taking->window);
    taking->room_to = taking->room = 0;
    Py_CLEAR(taking->log);
    Py_CLEAR(taking->plan_object);
}

static PyObject *use_plan(Taking *taking, PyObject *log, PyObject *plan)
{
    forget_log(taking);
    if (!read_plan(plan, &taking->plan)) {
        PyErr_SetString(PyExc_TypeError, "this is no plan for sends");
        return NULL;
    }
    taking->log = Py_NewRef(log);
    taking->plan_object = Py_NewRef(plan);
    Py_RETURN_NONE;
}

/* From now on records go to this buffer, which is what the log has from ``start`` on, and end before ``room_to``. */
static PyObject *open_window(Taking *taking, PyObject *buffer, int64_t start, int64_t room_to, int64_t cut_count)
{
    if (taking->window.obj != NULL)
        PyBuffer_Release(&taking->window);
    taking->room_to = 0;
    if (PyObject_GetBuffer(buffer, &taking->window, PyBUF_WRITABLE) < 0)
        return NULL;
    if (room_to > start + taking->window.len) {
        PyErr_SetString(PyExc_ValueError, "the buffer is shorter than the room in it");
        return NULL;
    }
    taking->window_start = start;
    taking->room_to = room_to;
    taking->cut_count = cut_count;
    taking->is_full = 0;
    Py_RETURN_NONE;
}

static void begin_taking(Taking *taking, int64_t now_ms, int64_t room, PyObject *answers)
{
    taking->now_ms = now_ms;
    taking->room = taking->log == NULL ? 0 : room;
    taking->first = taking->end = -1;
    taking->count = taking->answered_bytes = 0;
    taking->answers = answers;
    taking->is_full = taking->is_stale = taking->is_spent = 0;
}

/* Whether one more message may be taken. What Python did meanwhile may have changed that. */
static int has_room(Taking *taking, PyObject *ask_room)
{
    if (taking->is_stale && taking->log != NULL) {
        PyObject *said = PyObject_CallNoArgs(ask_room);
        taking->is_stale = 0;
        /* The time too: what Python wrote since has a later one than this turn began with. */
        if (said == NULL || !PyTuple_Check(said) || PyTuple_GET_SIZE(said) != 2
            || !read_int(PyTuple_GET_ITEM(said, 0), 0, INT64_MAX, &taking->now_ms)
            || !read_int(PyTuple_GET_ITEM(said, 1), 0, INT64_MAX, &taking->room))
            taking->room = 0;
        Py_XDECREF(said);
        PyErr_Clear();
    }
    return taking->log != NULL && taking->room > 0;
}

/* How long the frame says to be of which there are four bytes. */
static int64_t frame_size(View data)
{
    return 4 + (int64_t)get32(data.data);
}

/* The first frame if it is whole and may be for us; else none. */
static View whole_frame(View data)
{
    View none = {NULL, 0};
    if (data.size < PREFIX_BYTES)
        return none;
    int64_t size = frame_size(data);
    return size < PREFIX_BYTES || size > data.size ? none : (View){data.data, (Py_ssize_t)size};
}

static int is_none(PyObject *owner, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(owner, name);
    Py_XDECREF(value);
    return value == Py_None;
}

static int read_number_of(PyObject *owner, PyObject *name, int64_t *value)
{
    PyObject *number = PyObject_GetAttr(owner, name);
    int is_read = read_int(number, 0, INT64_MAX / 2, value);
    Py_XDECREF(number);
    return is_read;
}

/* Where the log goes on, if it takes a record of this size there. */
static int find_end(Taking *taking, Py_ssize_t size, int64_t *log_end)
{
    int64_t cut_count;
    if (!read_number_of(taking->log, names.log_end, log_end) || !read_number_of(taking->log, names.cut_count, &cut_count))
        return 0;
    if (cut_count != taking->cut_count || *log_end < taking->window_start || *log_end + size > taking->room_to) {
        taking->is_full = 1;
        return 0;
    }
    return is_none(taking->log, names.refusal) && is_none(taking->log, names.busy);
}

/* Keep an answer for when its message is safe. 0: nothing is kept. */
static int keep_answer(Taking *taking, PyObject *line, const uint8_t *frame, Py_ssize_t size)
{
    PyObject *answer = PyBytes_FromStringAndSize((const char *)frame, size);
    Py_ssize_t before = PyList_GET_SIZE(taking->answers);
    int is_kept = answer != NULL && PyList_Append(taking->answers, line) == 0
        && PyList_Append(taking->answers, answer) == 0;
    Py_XDECREF(answer);
    if (!is_kept)
        PyList_SetSlice(taking->answers, before, PY_SSIZE_T_MAX, NULL);
    return is_kept;
}

static int note_answer(Taking *taking, PyObject *line, const uint8_t *frame, Py_ssize_t size)
{
    if (taking->answers != NULL)
        return keep_answer(taking, line, frame, size);
    if (size > ANSWERS_BYTES - taking->answered_bytes)
        return 0;
    memcpy(taking->answered + taking->answered_bytes, frame, (size_t)size);
    taking->answered_bytes += size;
    return 1;
}

/* Have the log and the queue go on behind a record that is about to be written. 0: nothing has changed. */
static int move_on(Taking *taking, PyObject *queue, int64_t queue_offset, int64_t log_end)
{
    PyObject *before = PyLong_FromLongLong(queue_offset), *next = PyLong_FromLongLong(queue_offset + 1);
    PyObject *end = PyLong_FromLongLong(log_end), *offsets = taking->plan.next_offsets;
    int is_done = before != NULL && next != NULL && end != NULL && PyDict_SetItem(offsets, queue, next) == 0;
    if (is_done && PyObject_SetAttr(taking->log, names.log_end, end) < 0) {
        PyErr_Clear();
        PyDict_SetItem(offsets, queue, before);
        is_done = 0;
    }
    Py_XDECREF(before);
    Py_XDECREF(next);
    Py_XDECREF(end);
    return is_done;
}

/* Write what was read and found to be plain. 0: nothing is written. */
static int append_send(Taking *taking, Common *common, const SendHeader *header, View properties, View body,
                       View unique_key, PyObject *line)
{
    Plan *plan = &taking->plan;
    Py_ssize_t size = record_size(common, body.size, joined_size(properties, plan->stamp));
    Cursor cursor = {NULL, NULL, 0, 0, NULL};
    uint8_t frame[MAX_ANSWER_BYTES];
    if (!find_end(taking, size, &cursor.log_offset))
        return 0;
    PyObject *queue = find_queue(plan, header, &cursor.queue_offset);
    if (queue == NULL)
        return 0;
    Py_ssize_t answered_bytes = taking->answered_bytes;
    Py_ssize_t answer_size = put_answer(plan, common, header, cursor.log_offset, cursor.queue_offset, unique_key, frame);
    int is_answered = !(header->flag & FLAG_ONE_WAY_BIT);
    int is_done = !is_answered || note_answer(taking, line, frame, answer_size);
    if (is_done && !move_on(taking, queue, cursor.queue_offset, cursor.log_offset + size)) {
        is_done = 0;
        taking->answered_bytes = answered_bytes;
        if (is_answered && taking->answers != NULL)
            PyList_SetSlice(taking->answers, PyList_GET_SIZE(taking->answers) - 2, PY_SSIZE_T_MAX, NULL);
    }
    Py_DECREF(queue);
    if (!is_done)
        return 0;
    cursor.record = (uint8_t *)taking->window.buf + (cursor.log_offset - taking->window_start);
    put_record(common, &cursor, body, properties, plan->stamp, (int32_t)header->numbers['h' - 'a']);
    taking->first = taking->count == 0 ? cursor.log_offset : taking->first;
    taking->end = cursor.log_offset + size;
    taking->count++;
    taking->is_spent = --taking->room == 0;
    return 1;
}

/* 1: the frame was a send and is in the log, 0: nothing has changed, and it is for Python. */
static int take_frame(Taking *taking, View frame, View born_host, PyObject *line)
{
    SendHeader header;
    Common common;
    View unique_key = {NULL, 0};
    uint8_t unescaped[MAX_PROPERTIES_BYTES];
    int64_t header_size = get32(frame.data + 4); /* With an encoding other than JSON it is far too large. */
    if (header_size <= 0 || header_size > MAX_PROPERTIES_BYTES || header_size > frame.size - PREFIX_BYTES
        || !read_send_header((View){frame.data + PREFIX_BYTES, (Py_ssize_t)header_size}, &header)
        || header.flag & FLAG_RESPONSE_BIT || header.fields[TOPIC_FIELD].size == 0
        || header.fields[TOPIC_FIELD].size > MAX_TOPIC_BYTES)
        return 0;
    View body = {frame.data + PREFIX_BYTES + header_size, frame.size - PREFIX_BYTES - (Py_ssize_t)header_size};
    View properties = {unescaped, unescape(header.fields[PROPERTIES_FIELD], unescaped)};
    if (body.size == 0 || body.size > taking->plan.max_body_bytes || properties.size <= 0
        || !is_plain_send(&header, properties, &taking->plan, &unique_key)
        || (taking->answers != NULL && contains(properties, "WAIT\1false")))
        return 0;
    set_common(&common, &header, &taking->plan, born_host, taking->now_ms);
    int is_taken = append_send(taking, &common, &header, properties, body, unique_key, line);
    PyErr_Clear();
    return is_taken;
}

#endif
