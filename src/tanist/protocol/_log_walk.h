/* Walks records that lie in the log, and gathers what the indexes get of them; store/dispatch.py says why.
 *
 * A record is looked at as a whole before anything of it is taken. The walk ends before the first that is not
 * plain, be it wrong, cut short or only unusual: the careful reader of Python has the last word, and begins
 * the next walk behind it. Nothing outside the given part of the view is read.
 */

#ifndef TANIST_LOG_WALK_H
#define TANIST_LOG_WALK_H

#include "_sound.h"

enum {
    MAX_WALK_RECORDS = 1024,
    WALK_SLOTS = 2 * MAX_WALK_RECORDS, /* A power of two, and never full. */
    MAX_LEVEL_DIGITS = 9,
};

typedef struct {
    View topic, properties, unique_key, keys;
    int32_t queue_id, size;
    int64_t queue_offset, log_offset, store_timestamp_ms, tags_code;
} Found;

/* The entries of one queue, which follow each other. */
typedef struct {
    View topic;
    uint32_t topic_hash; /* of the topic and the '#' behind it */
    int32_t queue_id;
    int64_t first_offset, indexed_to;
    Py_ssize_t count;
    uint8_t *entry;
} Run;

typedef struct {
    const uint8_t *data;
    int64_t log_offset; /* of the view's first byte */
    Py_ssize_t position, end, max_count;
    PyObject *delay_levels, *keyed;
    Py_ssize_t count, run_count;
    int64_t store_timestamp_ms;
    Run runs[MAX_WALK_RECORDS];
    /* Of each record: what stands in its entry, and whose it is. */
    struct {
        int64_t log_offset, tags_code;
        int32_t size, run;
    } entries[MAX_WALK_RECORDS];
    uint16_t slots[WALK_SLOTS]; /* By hash the number of a run, counted from one. */
} Walk;

/* Whether a topic can name a folder, and is one of ASCII. */
static int is_folder_name(View topic)
{
    int is_dots = topic.data[0] == '.' && (topic.size == 1 || (topic.size == 2 && topic.data[1] == '.'));
    return !is_dots && memchr(topic.data, '/', (size_t)topic.size) == NULL
        && memchr(topic.data, 0, (size_t)topic.size) == NULL && is_ascii(topic);
}

/* The level of a delayed message; 0 if it has none, -1 if that is not for us to say. */
static int64_t find_level(View properties)
{
    View text = {NULL, 0};
    const uint8_t *end = properties.data + properties.size;
    for (const uint8_t *start = properties.data; start < end;) {
        const uint8_t *stop = memchr(start, VALUE_END, (size_t)(end - start));
        View segment = {start, (stop == NULL ? end : stop) - start};
        if (is_named(segment, "DELAY", 5))
            text = value_of(segment, 5);
        start += segment.size + 1;
    }
    int64_t level = 0;
    for (Py_ssize_t n = 0; n < text.size; n++) {
        if (text.data[n] < '0' || text.data[n] > '9')
            return 0;
        if (n == MAX_LEVEL_DIGITS)
            return -1;
        level = level * 10 + (text.data[n] - '0');
    }
    return level;
}

/* What a queue keeps beside the place: the hash of the tag, or when a delayed message is due. 0: not for us. */
static int find_tags_code(const Walk *walk, Found *found, View tag)
{
    static const char schedule_topic[] = "SCHEDULE_TOPIC_XXXX";
    uint32_t hash = 0;
    int64_t level = 0, delay_ms;
    if (found->topic.size == sizeof schedule_topic - 1
        && memcmp(found->topic.data, schedule_topic, sizeof schedule_topic - 1) == 0)
        level = find_level(found->properties);
    if (level == 0) {
        int is_plain = hash_on(&hash, tag);
        found->tags_code = (int32_t)hash;
        return is_plain;
    }
    Py_ssize_t level_count = PyTuple_GET_SIZE(walk->delay_levels);
    if (level < 0 || level_count == 0)
        return 0;
    PyObject *delay = PyTuple_GET_ITEM(walk->delay_levels, (level < level_count ? level : level_count) - 1);
    if (!read_int(delay, 0, INT64_MAX / 2, &delay_ms))
        return 0;
    found->tags_code = found->store_timestamp_ms + delay_ms;
    return 1;
}

/* The record at the walk's position. 0: none that is whole, sound and plain. */
static int read_record(const Walk *walk, Found *found)
{
    const uint8_t *at = walk->data + walk->position;
    Py_ssize_t left = walk->end - walk->position;
    if (left < RECORD_BYTES || (uint32_t)get32(at + 4) != MAGIC_V1)
        return 0;
    Py_ssize_t size = get32(at);
    int32_t sys_flag = get32(at + 36), transaction = sys_flag & TRANSACTION_MASK;
    Py_ssize_t store_time_at = 56 + (sys_flag & BORN_HOST_V6 ? HOST_V6_MORE_BYTES : 0);
    Py_ssize_t fixed = store_time_at + 32 + (sys_flag & STORE_HOST_V6 ? HOST_V6_MORE_BYTES : 0);
    if (size > left || size < fixed + 3)
        return 0;
    Py_ssize_t body_size = get32(at + fixed - 4);
    if (body_size < 0 || body_size > size - fixed - 3)
        return 0;
    Py_ssize_t topic_at = fixed + body_size + 1, topic_size = at[topic_at - 1];
    if (topic_size == 0 || topic_size > MAX_TOPIC_BYTES || topic_size > size - topic_at - 2)
        return 0;
    const uint8_t *behind = at + topic_at + topic_size;
    Py_ssize_t properties_size = behind[0] << 8 | behind[1];
    if (properties_size > MAX_PROPERTIES_BYTES || topic_at + topic_size + 2 + properties_size != size)
        return 0;
    View tag = {NULL, 0};
    *found = (Found){
        .topic = {at + topic_at, topic_size},
        .properties = {behind + 2, properties_size},
        .queue_id = get32(at + 12),
        .size = (int32_t)size,
        .queue_offset = get64(at + 20),
        .log_offset = get64(at + 28),
        .store_timestamp_ms = get64(at + store_time_at),
    };
    return (transaction == 0 || transaction == COMMIT) && found->queue_id >= 0
        && 0 <= found->queue_offset && found->queue_offset <= INT64_MAX / 2
        && found->log_offset == walk->log_offset + walk->position
        && 0 <= found->store_timestamp_ms && found->store_timestamp_ms <= INT64_MAX / 2
        && is_folder_name(found->topic) && find_fields(found->properties, &tag, &found->unique_key, &found->keys)
        && is_ascii(found->unique_key) && is_ascii(found->keys) && find_tags_code(walk, found, tag);
}

/* The run that a record goes on or begins. NULL: offsets of its queue were left out, or come again. */
static Run *find_run(Walk *walk, const Found *found)
{
    View separator = {(const uint8_t *)"#", 1};
    uint32_t topic_hash = 0;
    hash_on(&topic_hash, found->topic);
    hash_on(&topic_hash, separator);
    uint32_t slot = (topic_hash * 31 + (uint32_t)found->queue_id) % WALK_SLOTS;
    for (; walk->slots[slot] != 0; slot = (slot + 1) % WALK_SLOTS) {
        Run *run = &walk->runs[walk->slots[slot] - 1];
        if (run->queue_id == found->queue_id && run->topic.size == found->topic.size
            && memcmp(run->topic.data, found->topic.data, (size_t)found->topic.size) == 0)
            return run->first_offset + run->count == found->queue_offset ? run : NULL;
    }
    Run *run = &walk->runs[walk->run_count++];
    walk->slots[slot] = (uint16_t)walk->run_count;
    *run = (Run){found->topic, topic_hash, found->queue_id, found->queue_offset, 0, 0, NULL};
    return run;
}

/* Take records until one is not plain. 0: an error is set. */
static int walk_on(Walk *walk)
{
    Found found;
    Run *run;
    while (walk->count < walk->max_count && read_record(walk, &found) && (run = find_run(walk, &found)) != NULL) {
        Common common = {.topic_hash = run->topic_hash, .store_timestamp_ms = found.store_timestamp_ms};
        Cursor cursor = {.log_offset = found.log_offset, .keyed = walk->keyed};
        if ((found.unique_key.size > 0 && add_key(&common, &cursor, found.unique_key) != 1)
            || add_words(&common, &cursor, found.keys) != 1)
            return 0;
        walk->entries[walk->count].log_offset = found.log_offset;
        walk->entries[walk->count].tags_code = found.tags_code;
        walk->entries[walk->count].size = found.size;
        walk->entries[walk->count++].run = (int32_t)(run - walk->runs);
        run->count++;
        run->indexed_to = found.log_offset + found.size;
        walk->store_timestamp_ms = found.store_timestamp_ms;
        walk->position += found.size;
    }
    return 1;
}

/* Topic, queue, first offset, entries and where the last message ends, of each run. */
static PyObject *list_runs(Walk *walk)
{
    PyObject *runs = PyList_New(walk->run_count);
    for (Py_ssize_t n = 0; runs != NULL && n < walk->run_count; n++) {
        Run *run = &walk->runs[n];
        PyObject *entries = PyBytes_FromStringAndSize(NULL, run->count * ENTRY_BYTES), *listed = NULL;
        if (entries != NULL) {
            run->entry = (uint8_t *)PyBytes_AS_STRING(entries);
            listed = Py_BuildValue("(s#iLNL)", (const char *)run->topic.data, run->topic.size, (int)run->queue_id,
                                   (long long)run->first_offset, entries, (long long)run->indexed_to);
        }
        if (listed == NULL)
            Py_CLEAR(runs);
        else
            PyList_SET_ITEM(runs, n, listed);
    }
    for (Py_ssize_t n = 0; runs != NULL && n < walk->count; n++) {
        Run *run = &walk->runs[walk->entries[n].run];
        run->entry = put64(run->entry, (uint64_t)walk->entries[n].log_offset);
        run->entry = put32(run->entry, (uint32_t)walk->entries[n].size);
        run->entry = put64(run->entry, (uint64_t)walk->entries[n].tags_code);
    }
    return runs;
}

static PyObject *walk_records(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t argument_count)
{
    Py_buffer view = {0};
    int64_t start, end, log_offset, max_count;
    PyObject *keyed = NULL, *runs = NULL, *walked = NULL;
    if (argument_count != 6 || !PyTuple_Check(arguments[5])) {
        PyErr_SetString(PyExc_TypeError, "a view, its part, its log offset, a count and delay levels are needed");
        return NULL;
    }
    if (!read_int(arguments[1], 0, INT64_MAX / 4, &start) || !read_int(arguments[2], 0, INT64_MAX / 4, &end)
        || !read_int(arguments[3], 0, INT64_MAX / 4, &log_offset) || !read_int(arguments[4], 1, INT32_MAX, &max_count)) {
        PyErr_SetString(PyExc_ValueError, "a place or a count is out of range");
        return NULL;
    }
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE) != 0)
        return NULL;
    Walk *walk = PyMem_Malloc(sizeof *walk);
    if (walk != NULL && (keyed = PyList_New(0)) != NULL) {
        walk->data = view.buf;
        walk->log_offset = log_offset;
        walk->position = start;
        walk->end = end < view.len ? end : view.len;
        walk->max_count = max_count < MAX_WALK_RECORDS ? max_count : MAX_WALK_RECORDS;
        walk->delay_levels = arguments[5];
        walk->keyed = keyed;
        walk->count = walk->run_count = walk->store_timestamp_ms = 0;
        memset(walk->slots, 0, sizeof walk->slots);
        if (walk_on(walk) && walk->count > 0 && (runs = list_runs(walk)) != NULL)
            walked = Py_BuildValue("(nnOOL)", walk->position, walk->count, runs, keyed,
                                   (long long)walk->store_timestamp_ms);
    }
    int is_none = walked == NULL && !PyErr_Occurred() && walk != NULL;
    PyMem_Free(walk);
    PyBuffer_Release(&view);
    Py_XDECREF(keyed);
    Py_XDECREF(runs);
    if (is_none)
        Py_RETURN_NONE;
    return walked != NULL || PyErr_Occurred() ? walked : PyErr_NoMemory();
}

/* What record_sums.py does: how many bytes of plain and sound records begin here. */
static PyObject *pass_sound(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer view;
    int64_t log_offset, position;
    if (count != 2 || !read_int(arguments[1], 0, INT64_MAX / 4, &log_offset))
        return PyErr_Format(PyExc_TypeError, "pass_sound takes bytes and their log offset");
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    /* The bytes are read by nobody else here, and others have work to do. */
    Py_BEGIN_ALLOW_THREADS
    position = sound_bytes(view.buf, view.len, log_offset);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyLong_FromLongLong(position);
}

#endif
