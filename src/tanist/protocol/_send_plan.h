/* A plain send: whether it is one, and the answer to it. */

#ifndef TANIST_SEND_PLAN_H
#define TANIST_SEND_PLAN_H

#include "_record_layout.h"

/* The answer, between the texts that are always the same. */
enum { ANSWER_TEXTS = 6, MAX_TEXTS_BYTES = 1024, MAX_VALUES_BYTES = 256 };
#define MAX_ANSWER_BYTES (8 + MAX_TEXTS_BYTES + MAX_VALUES_BYTES)

/* What stays the same from send to send, as QuickSends has it. */
typedef struct {
    PyObject *queue_counts, *next_offsets;
    View store_host, stamp, texts[ANSWER_TEXTS];
    int64_t max_body_bytes;
} Plan;

static int read_texts(PyObject *texts, Plan *plan)
{
    Py_ssize_t total = 0;
    if (!PyTuple_Check(texts) || PyTuple_GET_SIZE(texts) != ANSWER_TEXTS)
        return 0;
    for (int n = 0; n < ANSWER_TEXTS; n++) {
        if (!view_bytes(PyTuple_GET_ITEM(texts, n), MAX_TEXTS_BYTES, &plan->texts[n]))
            return 0;
        total += plan->texts[n].size;
    }
    return total <= MAX_TEXTS_BYTES;
}

/* The views are into the object. */
static int read_plan(PyObject *object, Plan *plan)
{
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 6)
        return 0;
    plan->queue_counts = PyTuple_GET_ITEM(object, 0);
    plan->next_offsets = PyTuple_GET_ITEM(object, 1);
    return PyDict_Check(plan->queue_counts) && PyDict_Check(plan->next_offsets)
        && view_bytes(PyTuple_GET_ITEM(object, 2), HOST_BYTES, &plan->store_host) && plan->store_host.size == HOST_BYTES
        && view_bytes(PyTuple_GET_ITEM(object, 3), MAX_PROPERTIES_BYTES, &plan->stamp)
        && read_int(PyTuple_GET_ITEM(object, 4), 0, INT32_MAX / 2, &plan->max_body_bytes)
        && read_texts(PyTuple_GET_ITEM(object, 5), plan);
}

static int contains(View text, const char *word)
{
    return memmem(text.data, (size_t)text.size, word, strlen(word)) != NULL;
}

static int is_alphanumeric(View text)
{
    for (Py_ssize_t n = 0; n < text.size; n++) {
        uint8_t letter = text.data[n] | 0x20;
        if (!((letter >= 'a' && letter <= 'z') || (text.data[n] >= '0' && text.data[n] <= '9')))
            return 0;
    }
    return text.size > 0;
}

/* A send that goes to its own queue at once, in a queue that is known. A new reference to the queue's key and
 * the offset that is next there, or NULL, perhaps with an error set that does not matter. */
static PyObject *find_queue(const Plan *plan, const SendHeader *header, int64_t *queue_offset)
{
    View topic = header->fields[TOPIC_FIELD];
    int64_t queue_id = header->numbers[QUEUE_ID_FIELD], queue_count = 0;
    PyObject *name = PyUnicode_DecodeASCII((const char *)topic.data, topic.size, NULL);
    PyObject *queue = NULL, *next = NULL;
    if (name != NULL && read_int(PyDict_GetItemWithError(plan->queue_counts, name), 0, INT32_MAX, &queue_count)
        && 0 <= queue_id && queue_id < queue_count)
        queue = Py_BuildValue("(OL)", name, (long long)queue_id);
    Py_XDECREF(name);
    if (queue != NULL)
        next = PyDict_GetItemWithError(plan->next_offsets, queue);
    if (next != NULL && read_int(next, 0, INT64_MAX / 2, queue_offset))
        return queue;
    Py_XDECREF(queue);
    return NULL;
}

static uint8_t *put_hex(uint8_t *to, View bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    for (Py_ssize_t n = 0; n < bytes.size; n++) {
        *to++ = (uint8_t)digits[bytes.data[n] >> 4];
        *to++ = (uint8_t)digits[bytes.data[n] & 15];
    }
    return to;
}

static uint8_t *put_decimal(uint8_t *to, int64_t value)
{
    return to + sprintf((char *)to, "%lld", (long long)value);
}

/* Write the whole frame to where there is room for MAX_ANSWER_BYTES; how long it is. The texts of
 * the plan stand before each value and behind the last. */
static Py_ssize_t put_answer(const Plan *plan, const Common *common, const SendHeader *header, int64_t log_offset,
                             int64_t queue_offset, View unique_key, uint8_t *frame)
{
    uint8_t place[HOST_BYTES + 8], *to = frame + 8;
    View id = {place, sizeof place};
    put64(put_view(place, plan->store_host), (uint64_t)log_offset);
    to = put_hex(put_view(to, plan->texts[0]), id);
    to = put_decimal(put_view(to, plan->texts[1]), common->queue_id);
    to = put_decimal(put_view(to, plan->texts[2]), queue_offset);
    to = put_view(put_view(to, plan->texts[3]), unique_key);
    to = put_decimal(put_view(to, plan->texts[4]), header->opaque);
    to = put_view(to, plan->texts[5]);
    Py_ssize_t size = to - frame;
    put32(put32(frame, (uint32_t)(size - 4)), (uint32_t)(size - 8));
    return size;
}

/* Whether a send is plain: one message that neither waits nor ends a transaction, with an id of its own. */
static int is_plain_send(const SendHeader *header, View properties, const Plan *plan, View *unique_key)
{
    View tag = {NULL, 0}, keys = {NULL, 0};
    return (header->numbers['f' - 'a'] & TRANSACTION_MASK) == 0 && !header->numbers['m' - 'a']
        && find_fields(properties, &tag, unique_key, &keys) && is_alphanumeric(*unique_key)
        && unique_key->size <= MAX_VALUES_BYTES / 2 && !contains(properties, "DELAY") && !contains(properties, "TIMER_")
        && !contains(properties, "TRAN_MSG") && joined_size(properties, plan->stamp) <= MAX_PROPERTIES_BYTES;
}

static void set_common(Common *common, const SendHeader *header, const Plan *plan, View born_host, int64_t now_ms)
{
    memset(common, 0, sizeof *common);
    common->topic = header->fields[TOPIC_FIELD];
    common->born_host = born_host;
    common->store_host = plan->store_host;
    common->queue_id = (int32_t)header->numbers[QUEUE_ID_FIELD];
    common->sys_flag = (int32_t)header->numbers['f' - 'a'] & ~HOST_V6_BITS;
    common->reconsume_times = (int32_t)header->numbers['j' - 'a'];
    common->born_timestamp_ms = header->numbers['g' - 'a'];
    common->store_timestamp_ms = now_ms;
}

#endif
