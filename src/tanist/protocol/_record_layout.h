/* Records as they lie in the log: what C writes of them, whoever asks.
 *
 * Everything here is the plain case: IPv4 hosts, a short ASCII topic, tags and keys in ASCII, no NUL in the
 * properties, lengths that add up.
 */

#ifndef TANIST_RECORD_LAYOUT_H
#define TANIST_RECORD_LAYOUT_H

#include <stdatomic.h>

#include "_crc.h"
#include "_send_header.h"

#define MAGIC_V1 0xDAA320A7u
#define HOST_BYTES 8
#define FIXED_BYTES 88
#define RECORD_BYTES (FIXED_BYTES + 3) /* and the body, the topic and the properties */
#define ENTRY_BYTES 20
#define MAX_TOPIC_BYTES 127
#define MAX_PROPERTIES_BYTES 32767
#define HOST_V6_BITS 0x30
#define TRANSACTION_MASK 0xC
#define NAME_END 1
#define VALUE_END 2

/* What all messages of one call share. */
typedef struct {
    View topic, properties, born_host, store_host;
    Py_buffer body;
    int32_t queue_id, flag, sys_flag, reconsume_times;
    int64_t born_timestamp_ms, prepared_offset, store_timestamp_ms;
    uint32_t topic_hash; /* of the topic and the '#' behind it */
    /* Borrowed from by the views. */
    PyObject *topic_object, *properties_object, *born_object, *body_object;
} Common;

/* Where the next record, its entry and its keys go. */
typedef struct {
    uint8_t *record, *entry;
    int64_t queue_offset, log_offset;
    PyObject *keyed;
} Cursor;

/* The checksum of a body, of which records keep 31 bits. */
static uint32_t crc32_of(View view)
{
    return crc32_on(0, view.data, (size_t)view.size) & 0x7FFFFFFFu;
}

static uint8_t *put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
    return to + 2;
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
    put16(to, value >> 16);
    return put16(to + 2, value);
}

static uint8_t *put64(uint8_t *to, uint64_t value)
{
    put32(to, (uint32_t)(value >> 32));
    return put32(to + 4, (uint32_t)value);
}

static uint8_t *put_view(uint8_t *to, View view)
{
    memcpy(to, view.data, (size_t)view.size);
    return to + view.size;
}

static int32_t get32(const uint8_t *from)
{
    return (int32_t)((uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3]);
}

static inline int64_t get64(const uint8_t *from)
{
    return (int64_t)((uint64_t)(uint32_t)get32(from) << 32 | (uint32_t)get32(from + 4));
}

static int is_named(View segment, const char *name, Py_ssize_t size)
{
    return segment.size > size + 1 && segment.data[size] == NAME_END && memcmp(segment.data, name, (size_t)size) == 0;
}

static View value_of(View segment, Py_ssize_t name_size)
{
    View value = {segment.data + name_size + 1, segment.size - name_size - 1};
    return value;
}

/* The last tag, unique key and keys of a property string that are not empty. 0: a NUL stands in it. */
static inline int find_fields(View properties, View *tag, View *unique_key, View *keys)
{
    const uint8_t *end = properties.data + properties.size;
    if (memchr(properties.data, 0, (size_t)properties.size) != NULL)
        return 0;
    for (const uint8_t *start = properties.data; start < end;) {
        const uint8_t *stop = memchr(start, VALUE_END, (size_t)(end - start));
        View segment = {start, (stop == NULL ? end : stop) - start};
        if (is_named(segment, "TAGS", 4))
            *tag = value_of(segment, 4);
        else if (is_named(segment, "UNIQ_KEY", 8))
            *unique_key = value_of(segment, 8);
        else if (is_named(segment, "KEYS", 4))
            *keys = value_of(segment, 4);
        start += segment.size + 1;
    }
    return 1;
}

/* How long the properties are with those of the batch behind them, if there is a batch. */
static Py_ssize_t joined_size(View first, View second)
{
    int is_open = second.data != NULL && first.size > 0 && first.data[first.size - 1] != VALUE_END;
    return first.size + is_open + second.size;
}

static Py_ssize_t record_size(const Common *common, Py_ssize_t body_size, Py_ssize_t properties_size)
{
    return RECORD_BYTES + body_size + common->topic.size + properties_size;
}

/* Write one record. The properties are those of the message and behind them those of its batch. Its size comes
 * last: until it is there the log ends before this record, so a process killed half way leaves nothing that
 * looks like one. The properties as a whole, as they lie there now. */
static inline View put_record(const Common *common, const Cursor *cursor, View body, View properties, View added,
                       int32_t flag)
{
    Py_ssize_t properties_size = joined_size(properties, added);
    uint8_t *to = put32(cursor->record + 4, MAGIC_V1);
    to = put32(to, crc32_of(body));
    to = put32(to, (uint32_t)common->queue_id);
    to = put32(to, (uint32_t)flag);
    to = put64(to, (uint64_t)cursor->queue_offset);
    to = put64(to, (uint64_t)cursor->log_offset);
    to = put32(to, (uint32_t)common->sys_flag);
    to = put64(to, (uint64_t)common->born_timestamp_ms);
    to = put_view(to, common->born_host);
    to = put64(to, (uint64_t)common->store_timestamp_ms);
    to = put_view(to, common->store_host);
    to = put32(to, (uint32_t)common->reconsume_times);
    to = put64(to, (uint64_t)common->prepared_offset);
    to = put32(to, (uint32_t)body.size);
    to = put_view(to, body);
    *to++ = (uint8_t)common->topic.size;
    to = put_view(to, common->topic);
    to = put16(to, (uint32_t)properties_size);
    View whole = {to, properties_size};
    to = put_view(to, properties);
    if (properties.size + added.size < properties_size)
        *to++ = VALUE_END;
    if (added.size > 0)
        put_view(to, added);
    atomic_signal_fence(memory_order_seq_cst);
    put32(cursor->record, (uint32_t)record_size(common, body.size, properties_size));
    return whole;
}

/* 1: read, 0: out of range or no number. */
static int read_int(PyObject *number, int64_t low, int64_t high, int64_t *value)
{
    int overflow = 0;
    if (number == NULL || !PyLong_Check(number))
        return 0;
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow && low <= *value && *value <= high;
}

static inline int view_bytes(PyObject *object, Py_ssize_t max_size, View *view)
{
    if (!PyBytes_Check(object) || PyBytes_GET_SIZE(object) > max_size)
        return 0;
    view->data = (const uint8_t *)PyBytes_AS_STRING(object);
    view->size = PyBytes_GET_SIZE(object);
    return 1;
}

#endif
