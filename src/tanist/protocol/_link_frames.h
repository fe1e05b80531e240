/* The frames of the replication link that come with every message; ha_link.py says what they are. */

#ifndef TANIST_LINK_FRAMES_H
#define TANIST_LINK_FRAMES_H

#include "_record_layout.h"

enum {
    DATA_FRAME = 1,
    ACK_FRAME = 2,
    FRAME_CRC_BYTES = 4,
    DATA_FIELDS_BYTES = 25, /* kind, size_bytes, log_offset, epoch, confirmed_to */
    DATA_HEAD_BYTES = DATA_FIELDS_BYTES + FRAME_CRC_BYTES,
    ACK_FIELDS_BYTES = 10, /* kind, ack_kind, log_offset */
    ACK_BYTES = ACK_FIELDS_BYTES + FRAME_CRC_BYTES,
};

static inline void put_ack(uint8_t *ack, int64_t kind, int64_t log_offset)
{
    ack[0] = ACK_FRAME;
    ack[1] = (uint8_t)kind;
    put64(ack + 2, (uint64_t)log_offset);
    put32(ack + ACK_FIELDS_BYTES, crc32_on(0, ack, ACK_FIELDS_BYTES));
}

#endif
