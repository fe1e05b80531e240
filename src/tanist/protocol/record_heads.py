"""Passes over records by their heads alone: each says how large it is and where it lies."""

import struct

from tanist.protocol.record import MAGIC_V1, MIN_RECORD_BYTES

try:
    from tanist.protocol import _native as native
except ImportError:
    native = None

# size, magic, then body_crc, queue_id, flag, queue_offset, and log_offset
RECORD_HEAD = struct.Struct(">ii20xq")


def pass_records(view: memoryview, log_offset: int, last_end: int) -> int:
    """How many bytes of plain records begin with ``view``, which lies at ``log_offset``.

    It ends before whatever is not plainly a record that lies where it says and ends by ``last_end``. It is
    more than ``view`` has if that ends within a record. All that a slave gets passes here.
    """
    if native is not None:
        return native.pass_records(view, log_offset, last_end)
    position, last_head = 0, len(view) - RECORD_HEAD.size
    while position <= last_head:
        size_bytes, magic, said_offset = RECORD_HEAD.unpack_from(view, position)
        is_plain = magic == MAGIC_V1 and said_offset == log_offset and size_bytes >= MIN_RECORD_BYTES
        if not is_plain or log_offset + size_bytes > last_end:
            break
        position += size_bytes
        log_offset += size_bytes
    return position
