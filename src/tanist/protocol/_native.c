/* Messages as the log and its indexes get them, whole sends, and walks over the log; layout.py, quick_send.py
 * and dispatch.py say what and why.
 *
 * Everything here is the plain case: IPv4 hosts, a short ASCII topic, tags and keys in ASCII, no NUL in
 * the properties, lengths that add up, a message that enters its queue. For any other the answer is None,
 * and the Python beside this has the last word. So nothing here ever raises but for want of memory.
 */

#define _GNU_SOURCE /* for memmem */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "_link_frames.h"
#include "_record_layout.h"
#include "_send_plan.h"

#define ITEM_HEAD_BYTES 20
#define MAX_BATCH_ITEMS 65536
#define COMMIT 0x8

/* The names of the attributes that a Message has, made once. */
static PyObject *name_topic, *name_queue_id, *name_body, *name_properties, *name_flag, *name_sys_flag,
    *name_born_timestamp_ms, *name_born_host, *name_reconsume_times, *name_prepared;

/* Java's hash, going on from that of what stands before. 0: not ASCII, so this is not for us. */
static int hash_on(uint32_t *hash, View text)
{
    uint32_t value = *hash;
    for (Py_ssize_t n = 0; n < text.size; n++) {
        if (text.data[n] & 0x80)
            return 0;
        value = value * 31 + text.data[n];
    }
    *hash = value;
    return 1;
}

/* 1: done, 0: not for us, -1: an error is set. */
static int add_key(const Common *common, const Cursor *cursor, View key)
{
    uint32_t hash = common->topic_hash;
    if (!hash_on(&hash, key))
        return 0;
    if (hash & 0x80000000u)
        hash = hash == 0x80000000u ? 0 : 0u - hash;
    PyObject *keyed = Py_BuildValue("(ILL)", hash, (long long)cursor->log_offset, (long long)common->store_timestamp_ms);
    if (keyed == NULL)
        return -1;
    int failed = PyList_Append(cursor->keyed, keyed);
    Py_DECREF(keyed);
    return failed ? -1 : 1;
}

static int add_words(const Common *common, const Cursor *cursor, View words)
{
    int done = 1;
    const uint8_t *end = words.data + words.size;
    for (const uint8_t *start = words.data; start < end && done == 1;) {
        const uint8_t *stop = memchr(start, ' ', (size_t)(end - start));
        View word = {start, (stop == NULL ? end : stop) - start};
        if (word.size > 0)
            done = add_key(common, cursor, word);
        start += word.size + 1;
    }
    return done;
}

/* Write one record, its entry and its keys, and move on. 1: done, 0: not for us, -1: an error is set. */
static int put_message(const Common *common, Cursor *cursor, View body, View properties, View added, int32_t flag)
{
    View whole = put_record(common, cursor, body, properties, added, flag);
    Py_ssize_t size = record_size(common, body.size, whole.size);
    View tag = {NULL, 0}, unique_key = {NULL, 0}, keys = {NULL, 0};
    uint32_t tag_hash = 0;
    if (!find_fields(whole, &tag, &unique_key, &keys) || !hash_on(&tag_hash, tag))
        return 0;
    uint8_t *entry = put64(cursor->entry, (uint64_t)cursor->log_offset);
    entry = put32(entry, (uint32_t)size);
    cursor->entry = put64(entry, (uint64_t)(int64_t)(int32_t)tag_hash);
    int done = unique_key.size > 0 ? add_key(common, cursor, unique_key) : 1;
    if (done == 1)
        done = add_words(common, cursor, keys);
    cursor->record += size;
    cursor->log_offset += size;
    cursor->queue_offset++;
    return done;
}

static int read_attribute(PyObject *message, PyObject *name, int64_t low, int64_t high, int64_t *value)
{
    PyObject *number = PyObject_GetAttr(message, name);
    int is_read = read_int(number, low, high, value);
    Py_XDECREF(number);
    return is_read;
}

static int read_int32(PyObject *message, PyObject *name, int32_t *value)
{
    int64_t wide = 0;
    int is_read = read_attribute(message, name, INT32_MIN, INT32_MAX, &wide);
    *value = (int32_t)wide;
    return is_read;
}

static int view_topic(PyObject *object, View *view)
{
    if (!PyUnicode_Check(object) || !PyUnicode_IS_COMPACT_ASCII(object))
        return 0;
    view->data = (const uint8_t *)PyUnicode_DATA(object);
    view->size = PyUnicode_GET_LENGTH(object);
    return 0 < view->size && view->size <= MAX_TOPIC_BYTES && memchr(view->data, 0, (size_t)view->size) == NULL;
}

static void release(Common *common)
{
    if (common->body.obj != NULL)
        PyBuffer_Release(&common->body);
    Py_XDECREF(common->topic_object);
    Py_XDECREF(common->properties_object);
    Py_XDECREF(common->born_object);
    Py_XDECREF(common->body_object);
}

/* 1: the message and its place are plain, 0: they are not for us. */
static int read_message(PyObject *const *arguments, Common *common, Cursor *cursor)
{
    PyObject *message = arguments[0];
    View separator = {(const uint8_t *)"#", 1};
    memset(common, 0, sizeof *common);
    int is_plain = (common->topic_object = PyObject_GetAttr(message, name_topic)) != NULL
        && (common->properties_object = PyObject_GetAttr(message, name_properties)) != NULL
        && (common->born_object = PyObject_GetAttr(message, name_born_host)) != NULL
        && (common->body_object = PyObject_GetAttr(message, name_body)) != NULL
        && view_topic(common->topic_object, &common->topic)
        && view_bytes(common->properties_object, MAX_PROPERTIES_BYTES, &common->properties)
        && view_bytes(common->born_object, HOST_BYTES, &common->born_host)
        && view_bytes(arguments[4], HOST_BYTES, &common->store_host)
        && common->born_host.size == HOST_BYTES && common->store_host.size == HOST_BYTES
        && PyObject_GetBuffer(common->body_object, &common->body, PyBUF_SIMPLE) == 0
        && read_int32(message, name_queue_id, &common->queue_id) && read_int32(message, name_flag, &common->flag)
        && read_int32(message, name_sys_flag, &common->sys_flag)
        && read_int32(message, name_reconsume_times, &common->reconsume_times)
        && read_attribute(message, name_born_timestamp_ms, INT64_MIN, INT64_MAX, &common->born_timestamp_ms)
        && read_attribute(message, name_prepared, INT64_MIN, INT64_MAX, &common->prepared_offset)
        && read_int(arguments[1], 0, INT64_MAX, &cursor->queue_offset)
        && read_int(arguments[2], 0, INT64_MAX, &cursor->log_offset)
        && read_int(arguments[3], 0, INT64_MAX, &common->store_timestamp_ms)
        && ((common->sys_flag & TRANSACTION_MASK) == 0 || (common->sys_flag & TRANSACTION_MASK) == COMMIT)
        && common->body.len < INT32_MAX / 2;
    common->sys_flag &= ~HOST_V6_BITS;
    return is_plain && hash_on(&common->topic_hash, common->topic) && hash_on(&common->topic_hash, separator);
}

/* One item of a batch at *position, which moves behind it. 0: it is not as it should be. */
static int read_item(View batch, Py_ssize_t *position, View *body, View *properties, int32_t *flag)
{
    const uint8_t *item = batch.data + *position;
    Py_ssize_t left = batch.size - *position;
    if (left < ITEM_HEAD_BYTES + 2)
        return 0;
    Py_ssize_t size = get32(item), body_size = get32(item + 16);
    if (size < ITEM_HEAD_BYTES + 2 || size > left || body_size < 0 || body_size > size - ITEM_HEAD_BYTES - 2)
        return 0;
    const uint8_t *behind = item + ITEM_HEAD_BYTES + body_size;
    Py_ssize_t properties_size = behind[0] << 8 | behind[1];
    if (properties_size > MAX_PROPERTIES_BYTES || ITEM_HEAD_BYTES + body_size + 2 + properties_size != size)
        return 0;
    *flag = get32(item + 12);
    *body = (View){item + ITEM_HEAD_BYTES, body_size};
    *properties = (View){behind + 2, properties_size};
    *position += size;
    return 1;
}

/* How many messages a batch has and how many bytes their records take. 0: it is not for us. */
static int measure_batch(const Common *common, View batch, int64_t max_bytes, Py_ssize_t *count, Py_ssize_t *total)
{
    View body, properties;
    int32_t flag;
    *count = *total = 0;
    for (Py_ssize_t position = 0; position < batch.size; ++*count) {
        if (!read_item(batch, &position, &body, &properties, &flag) || *count == MAX_BATCH_ITEMS)
            return 0;
        Py_ssize_t properties_size = joined_size(properties, common->properties);
        if (properties_size > MAX_PROPERTIES_BYTES)
            return 0;
        *total += record_size(common, body.size, properties_size);
        if (*total > max_bytes)
            return 0;
    }
    return *count > 0;
}

static int put_batch(const Common *common, Cursor *cursor, View batch)
{
    View body, properties;
    int32_t flag;
    int done = 1;
    for (Py_ssize_t position = 0; position < batch.size && done == 1;) {
        read_item(batch, &position, &body, &properties, &flag);
        done = put_message(common, cursor, body, properties, common->properties, flag);
    }
    return done;
}

static PyObject *lay(PyObject *const *arguments, Py_ssize_t argument_count, int is_batch)
{
    Common common;
    Cursor cursor;
    PyObject *records = NULL, *entries = NULL, *laid = NULL;
    Py_ssize_t count = 1, total = 0;
    int64_t max_bytes = 0;
    int done = 0;
    if (argument_count != (is_batch ? 6 : 5)) {
        PyErr_SetString(PyExc_TypeError, "five arguments are needed, and the most bytes for a batch");
        return NULL;
    }
    cursor.keyed = NULL;
    if (read_message(arguments, &common, &cursor) && (!is_batch || read_int(arguments[5], 0, INT64_MAX, &max_bytes))) {
        View body = {common.body.buf, common.body.len}, no_batch = {NULL, 0};
        if (!is_batch)
            total = record_size(&common, body.size, common.properties.size);
        if (!is_batch || measure_batch(&common, body, max_bytes, &count, &total)) {
            records = PyBytes_FromStringAndSize(NULL, total);
            entries = PyBytes_FromStringAndSize(NULL, count * ENTRY_BYTES);
            cursor.keyed = PyList_New(0);
            done = -1;
            if (records != NULL && entries != NULL && cursor.keyed != NULL) {
                cursor.record = (uint8_t *)PyBytes_AS_STRING(records);
                cursor.entry = (uint8_t *)PyBytes_AS_STRING(entries);
                done = is_batch ? put_batch(&common, &cursor, body)
                                : put_message(&common, &cursor, body, common.properties, no_batch, common.flag);
            }
        }
    }
    release(&common);
    if (done == 1)
        laid = PyTuple_Pack(3, records, entries, cursor.keyed);
    Py_XDECREF(records);
    Py_XDECREF(entries);
    Py_XDECREF(cursor.keyed);
    if (done != 0)
        return laid;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *lay_out(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    return lay(arguments, count, 0);
}

static PyObject *lay_out_batch(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    return lay(arguments, count, 1);
}

/* Lay out a send of which everything was read. NULL: it is not for us, or an error is set. */
static PyObject *lay_send(const Plan *plan, Common *common, const SendHeader *header, int64_t log_offset,
                          View properties, View body, View unique_key)
{
    View separator = {(const uint8_t *)"#", 1};
    Cursor cursor = {NULL, NULL, 0, log_offset, NULL};
    PyObject *queue = find_queue(plan, header, &cursor.queue_offset), *taken = NULL;
    PyObject *records = NULL, *entries = NULL, *answer = NULL;
    uint8_t frame[MAX_ANSWER_BYTES];
    int64_t queue_offset = cursor.queue_offset;
    if (queue != NULL && hash_on(&common->topic_hash, common->topic) && hash_on(&common->topic_hash, separator)) {
        Py_ssize_t size = record_size(common, body.size, joined_size(properties, plan->stamp));
        records = PyBytes_FromStringAndSize(NULL, size);
        entries = PyBytes_FromStringAndSize(NULL, ENTRY_BYTES);
        cursor.keyed = PyList_New(0);
        answer = PyBytes_FromStringAndSize(
            (const char *)frame, put_answer(plan, common, header, log_offset, queue_offset, unique_key, frame));
        if (records != NULL && entries != NULL && cursor.keyed != NULL && answer != NULL) {
            cursor.record = (uint8_t *)PyBytes_AS_STRING(records);
            cursor.entry = (uint8_t *)PyBytes_AS_STRING(entries);
            int32_t flag = (int32_t)header->numbers['h' - 'a'];
            if (put_message(common, &cursor, body, properties, plan->stamp, flag) == 1)
                taken = Py_BuildValue("(OOOOLOL)", records, entries, cursor.keyed, queue, (long long)queue_offset, answer,
                                      (long long)header->flag);
        }
    }
    Py_XDECREF(queue);
    Py_XDECREF(records);
    Py_XDECREF(entries);
    Py_XDECREF(cursor.keyed);
    Py_XDECREF(answer);
    return taken;
}

static PyObject *take_send(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    SendHeader header;
    Plan plan;
    Common common;
    Py_buffer body = {0};
    View header_text, born_host, unique_key = {NULL, 0};
    int64_t log_offset, now_ms;
    uint8_t unescaped[MAX_PROPERTIES_BYTES];
    PyObject *taken = NULL;
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "a header, a body, a host, a plan, a log offset and a time are needed");
        return NULL;
    }
    if (view_bytes(arguments[0], MAX_PROPERTIES_BYTES, &header_text) && read_send_header(header_text, &header)
        && header.fields[TOPIC_FIELD].size > 0 && header.fields[TOPIC_FIELD].size <= MAX_TOPIC_BYTES
        && view_bytes(arguments[2], HOST_BYTES, &born_host) && born_host.size == HOST_BYTES
        && read_plan(arguments[3], &plan) && read_int(arguments[4], 0, INT64_MAX / 2, &log_offset)
        && read_int(arguments[5], 0, INT64_MAX, &now_ms) && PyObject_GetBuffer(arguments[1], &body, PyBUF_SIMPLE) == 0
        && body.len > 0 && body.len <= plan.max_body_bytes) {
        View properties = {unescaped, unescape(header.fields[PROPERTIES_FIELD], unescaped)};
        if (properties.size > 0 && is_plain_send(&header, properties, &plan, &unique_key)) {
            set_common(&common, &header, &plan, born_host, now_ms);
            taken = lay_send(&plan, &common, &header, log_offset, properties, (View){body.buf, body.len}, unique_key);
        }
    }
    if (body.obj != NULL)
        PyBuffer_Release(&body);
    if (taken != NULL)
        return taken;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *send_envelope(PyObject *Py_UNUSED(module), PyObject *object)
{
    SendHeader header;
    View text;
    uint8_t unescaped[MAX_PROPERTIES_BYTES];
    if (!view_bytes(object, MAX_PROPERTIES_BYTES, &text) || !read_send_header(text, &header)
        || unescape(header.fields[PROPERTIES_FIELD], unescaped) < 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(LLs#L)", (long long)header.opaque, (long long)header.flag, (const char *)header.language.data,
                         header.language.size, (long long)header.version);
}

/* The key index: which key of the next entries goes to which slot. */
enum { INDEX_HEADER_BYTES = 40, SLOT_BYTES = 4, INDEX_ENTRY_BYTES = 20 };

typedef struct {
    int64_t hash, log_offset, store_timestamp_ms;
} Key;

static int read_key(PyObject *list, Py_ssize_t number, Key *key)
{
    PyObject *keyed = PyList_GET_ITEM(list, number);
    return PyTuple_Check(keyed) && PyTuple_GET_SIZE(keyed) == 3
        && read_int(PyTuple_GET_ITEM(keyed, 0), 0, INT32_MAX, &key->hash)
        && read_int(PyTuple_GET_ITEM(keyed, 1), 0, INT64_MAX, &key->log_offset)
        && read_int(PyTuple_GET_ITEM(keyed, 2), 0, INT64_MAX / 2, &key->store_timestamp_ms);
}

/* Put a key into the entry of this number, and chain it to its slot. Whether the slot was empty. */
static int put_key(uint8_t *file, Key key, uint8_t *entry, uint32_t number, int64_t slot_count, int64_t begin_ms)
{
    uint8_t *slot = file + INDEX_HEADER_BYTES + key.hash % slot_count * SLOT_BYTES;
    int32_t previous = get32(slot);
    int64_t seconds = key.store_timestamp_ms < begin_ms ? 0 : (key.store_timestamp_ms - begin_ms) / 1000;
    entry = put32(entry, (uint32_t)key.hash);
    entry = put64(entry, (uint64_t)key.log_offset);
    entry = put32(entry, (uint32_t)(seconds > INT32_MAX ? INT32_MAX : seconds));
    put32(entry, (uint32_t)previous);
    put32(slot, number);
    return previous == 0;
}

static PyObject *put_keys(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t argument_count)
{
    Py_buffer file = {0};
    int64_t slot_count, first, begin_ms, used = 0;
    int is_plain = 0;
    if (argument_count != 5 || !PyList_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "a file, a list of keys, its slots, a number and a time are needed");
        return NULL;
    }
    PyObject *keyed = arguments[1];
    Py_ssize_t count = PyList_GET_SIZE(keyed);
    Key key;
    if (read_int(arguments[2], 1, INT32_MAX, &slot_count) && read_int(arguments[3], 0, INT32_MAX / 2, &first)
        && read_int(arguments[4], 0, INT64_MAX / 2, &begin_ms) && count < INT32_MAX / 2
        && PyObject_GetBuffer(arguments[0], &file, PyBUF_WRITABLE) == 0) {
        int64_t entries = INDEX_HEADER_BYTES + slot_count * SLOT_BYTES;
        is_plain = entries + (first + count) * INDEX_ENTRY_BYTES <= file.len;
        /* Before the first is written: Python could not begin again behind half of them. */
        for (Py_ssize_t n = 0; n < count && is_plain; n++)
            is_plain = read_key(keyed, n, &key);
        for (Py_ssize_t n = 0; n < count && is_plain; n++) {
            uint8_t *entry = (uint8_t *)file.buf + entries + (first + n) * INDEX_ENTRY_BYTES;
            read_key(keyed, n, &key);
            used += put_key(file.buf, key, entry, (uint32_t)(first + n), slot_count, begin_ms);
        }
    }
    if (file.obj != NULL)
        PyBuffer_Release(&file);
    if (is_plain)
        return PyLong_FromLongLong(used);
    PyErr_Clear();
    Py_RETURN_NONE;
}

#include "_log_walk.h"

/* The arguments of zlib.crc32. The interpreter waits meanwhile: a MiB takes less than 0.1 ms. */
static PyObject *crc32_object(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer data;
    unsigned long crc = 0;
    if (count != 1 && count != 2)
        return PyErr_Format(PyExc_TypeError, "crc32 takes data, and the crc of what lies before it");
    if (count == 2) {
        crc = PyLong_AsUnsignedLongMask(arguments[1]);
        if (PyErr_Occurred())
            return NULL;
    }
    if (PyObject_GetBuffer(arguments[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    crc = crc32_on((uint32_t)crc, data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

/* What goes before a body of which the CRC is known. */
static PyObject *data_head(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    int64_t size, log_offset, epoch, confirmed_to, crc;
    uint8_t head[DATA_HEAD_BYTES];
    if (count != 5 || !read_int(arguments[0], 0, INT64_MAX, &log_offset) || !read_int(arguments[1], 1, UINT32_MAX, &size)
        || !read_int(arguments[2], 0, INT32_MAX, &epoch) || !read_int(arguments[3], 0, INT64_MAX, &confirmed_to)
        || !read_int(arguments[4], 0, UINT32_MAX, &crc))
        return PyErr_Format(PyExc_TypeError, "data_head takes an offset, a size, an epoch, an offset and a CRC");
    head[0] = DATA_FRAME;
    put32(head + 1, (uint32_t)size);
    put64(head + 5, (uint64_t)log_offset);
    put32(head + 13, (uint32_t)epoch);
    put64(head + 17, (uint64_t)confirmed_to);
    put32(head + DATA_FIELDS_BYTES, crc32_on((uint32_t)crc, head, DATA_FIELDS_BYTES));
    return PyBytes_FromStringAndSize((const char *)head, sizeof head);
}

/* Up to where these bytes ack, if they are one ack of this kind for something between; -1 if they are anything else. */
static PyObject *lone_ack(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    int64_t kind, from, to, acked_to = -1;
    if (count != 4 || !PyBytes_Check(arguments[0]) || !read_int(arguments[1], 0, UINT8_MAX, &kind)
        || !read_int(arguments[2], 0, INT64_MAX, &from) || !read_int(arguments[3], 0, INT64_MAX, &to))
        return PyErr_Format(PyExc_TypeError, "lone_ack takes bytes, a kind and two offsets");
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(arguments[0]);
    if (PyBytes_GET_SIZE(arguments[0]) == ACK_BYTES && at[0] == ACK_FRAME && at[1] == kind
        && crc32_on(0, at, ACK_FIELDS_BYTES) == (uint32_t)get32(at + ACK_FIELDS_BYTES))
        acked_to = get64(at + 2);
    return PyLong_FromLongLong(from <= acked_to && acked_to <= to ? acked_to : -1);
}

static PyMethodDef methods[] = {
    {"lay_out", (PyCFunction)(void (*)(void))lay_out, METH_FASTCALL, "One message, or None."},
    {"lay_out_batch", (PyCFunction)(void (*)(void))lay_out_batch, METH_FASTCALL, "A batch, or None."},
    {"take_send", (PyCFunction)(void (*)(void))take_send, METH_FASTCALL, "A send, laid out and answered, or None."},
    {"put_keys", (PyCFunction)(void (*)(void))put_keys, METH_FASTCALL, "Keys into a file of the index, or None."},
    {"walk_records", (PyCFunction)(void (*)(void))walk_records, METH_FASTCALL, "What indexes get of records, or None."},
    {"pass_sound", (PyCFunction)(void (*)(void))pass_sound, METH_FASTCALL, "How many bytes are sound records."},
    {"data_head", (PyCFunction)(void (*)(void))data_head, METH_FASTCALL, "What goes before bytes of the log."},
    {"lone_ack", (PyCFunction)(void (*)(void))lone_ack, METH_FASTCALL, "Up to where these bytes ack, or -1."},
    {"crc32", (PyCFunction)(void (*)(void))crc32_object, METH_FASTCALL, "As zlib.crc32."},
    {"send_envelope", send_envelope, METH_O, "What surrounds the fields of a send's header, or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "The fast twin of what Python does with messages.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    make_crc_tables();
    name_topic = PyUnicode_InternFromString("topic");
    name_queue_id = PyUnicode_InternFromString("queue_id");
    name_body = PyUnicode_InternFromString("body");
    name_properties = PyUnicode_InternFromString("properties");
    name_flag = PyUnicode_InternFromString("flag");
    name_sys_flag = PyUnicode_InternFromString("sys_flag");
    name_born_timestamp_ms = PyUnicode_InternFromString("born_timestamp_ms");
    name_born_host = PyUnicode_InternFromString("born_host");
    name_reconsume_times = PyUnicode_InternFromString("reconsume_times");
    name_prepared = PyUnicode_InternFromString("prepared_transaction_offset");
    if (PyErr_Occurred())
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddIntConstant(made, "HAS_FAST_CRC", is_folding) < 0)
        Py_CLEAR(made);
    return made;
}
