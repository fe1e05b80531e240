/* Whether a record is sound: whole, where it says that it lies, and with the body that was summed. */

#ifndef TANIST_SOUND_H
#define TANIST_SOUND_H

#include "_record_layout.h"

enum {
    HOST_V6_MORE_BYTES = 12,
    BORN_HOST_V6 = 0x10,
    STORE_HOST_V6 = 0x20,
    BODY_CRC_AT = 8,
    LOG_OFFSET_AT = 28, /* In a record, where it says that it lies. */
};

static int is_ascii(View text)
{
    for (Py_ssize_t n = 0; n < text.size; n++)
        if (text.data[n] & 0x80)
            return 0;
    return 1;
}

/* The size of the record that begins here if it is plain, whole and sound; else 0. */
static int64_t sound_size(const uint8_t *at, int64_t left, int64_t log_offset)
{
    if (left < RECORD_BYTES || (uint32_t)get32(at + 4) != MAGIC_V1 || get64(at + LOG_OFFSET_AT) != log_offset)
        return 0;
    int64_t size = get32(at);
    int32_t sys_flag = get32(at + 36);
    int64_t fixed = RECORD_BYTES - 3 + (sys_flag & BORN_HOST_V6 ? HOST_V6_MORE_BYTES : 0)
        + (sys_flag & STORE_HOST_V6 ? HOST_V6_MORE_BYTES : 0);
    if (size > left || size < fixed + 3)
        return 0;
    View body = {at + fixed, get32(at + fixed - 4)};
    if (body.size < 0 || body.size > size - fixed - 3)
        return 0;
    int64_t topic_at = fixed + body.size + 1;
    View topic = {at + topic_at, at[topic_at - 1]};
    if (topic.size == 0 || topic.size > MAX_TOPIC_BYTES || topic.size > size - topic_at - 2)
        return 0;
    const uint8_t *behind = topic.data + topic.size;
    int64_t properties_size = behind[0] << 8 | behind[1];
    return properties_size <= MAX_PROPERTIES_BYTES && topic_at + topic.size + 2 + properties_size == size
            && is_ascii(topic) && crc32_of(body) == (uint32_t)get32(at + BODY_CRC_AT)
        ? size
        : 0;
}

/* How many bytes of plain and sound records begin here. */
static int64_t sound_bytes(const uint8_t *at, int64_t left, int64_t log_offset)
{
    int64_t position = 0, size;
    while ((size = sound_size(at + position, left - position, log_offset + position)) > 0)
        position += size;
    return position;
}

#endif
