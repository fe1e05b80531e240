"""One message as the log keeps it, byte for byte RocketMQ's record.

    size magic body_crc queue_id flag queue_offset log_offset sys_flag born_timestamp born_host
    store_timestamp store_host reconsume_times prepared_transaction_offset body topic properties

A host takes 8 bytes or, when its bit in the system flag is set, 20. The topic's length takes one
byte in version 1 and two in version 2, which is written only for topics over 127 bytes.

RocketMQ's checksum covers the body alone. What else is checked here, and is not there: that the
record lies where its own ``log_offset`` says, and that no sector of its topic and properties was
lost (see ``_is_torn``), so that a tail the disk never wrote is not taken for a message.
"""

import struct
from functools import lru_cache
from typing import Any

import msgspec

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.host import PACKED_V4_BYTES, PACKED_V6_BYTES
from tanist.model.message import Message, SysFlag
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.protocol import crc

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
MAGIC_BLANK = -875286124
MAGIC_PREFIX = struct.pack(">i", MAGIC_V1)[:3]
"""What the magics of both versions begin with."""

BLANK_BYTES = 8
"""What ends a file: the space left in it and MAGIC_BLANK. A record always leaves room for it."""

MAX_BODY_BYTES = 1 << 30
MAX_TOPIC_BYTES_V1 = 127
MAX_TOPIC_BYTES = 32767
MAX_PROPERTIES_BYTES = 32767
SECTOR_BYTES = 512
"""The smallest piece a disk writes at once: a lost write is lost in multiples of it."""

CRC_MASK = 0x7FFFFFFF

# size, magic
_BLANK = struct.Struct(">ii")
_TOPIC_LENGTH_V1 = struct.Struct(">b")
_TOPIC_LENGTH_V2 = struct.Struct(">h")
_PROPERTIES_LENGTH = struct.Struct(">h")
_HOST_V6_MASK = SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6


def _fixed_layout(host_bits: int) -> struct.Struct:
    # size, magic, body_crc, queue_id, flag, queue_offset, log_offset, sys_flag, born_timestamp_ms, born_host,
    # store_timestamp_ms, store_host, reconsume_times, prepared_transaction_offset, body_bytes
    born = PACKED_V6_BYTES if host_bits & SysFlag.BORN_HOST_V6 else PACKED_V4_BYTES
    store = PACKED_V6_BYTES if host_bits & SysFlag.STORE_HOST_V6 else PACKED_V4_BYTES
    return struct.Struct(f">iiiiiqqiq{born}sq{store}siqi")


# Plain ints as keys: looking up an IntFlag costs more than packing the record.
_FIXED = {bits: _fixed_layout(bits) for bits in (0, 0x10, 0x20, 0x30)}
_HOST_BITS = int(_HOST_V6_MASK)
_BORN_BITS = {PACKED_V4_BYTES: 0, PACKED_V6_BYTES: int(SysFlag.BORN_HOST_V6)}
_STORE_BITS = {PACKED_V4_BYTES: 0, PACKED_V6_BYTES: int(SysFlag.STORE_HOST_V6)}
MIN_RECORD_BYTES = _FIXED[0].size + 3
_STORE_TIME = struct.Struct(">q")
# size, magic, then body_crc, queue_id, flag, queue_offset, and log_offset
RECORD_HEAD = struct.Struct(">ii20xq")
FLAGGED_BYTES = RECORD_HEAD.size + 4
"""Up to the system flag's end, which says how long the hosts are."""
_BORN_BIT = int(SysFlag.BORN_HOST_V6)
_BORN_HOST_POSITION = 48
_STORE_TIME_POSITIONS = {
    0: _BORN_HOST_POSITION + PACKED_V4_BYTES,
    _BORN_BIT: _BORN_HOST_POSITION + PACKED_V6_BYTES,
}


class Record(msgspec.Struct, gc=False):
    """One decoded record, its fields in the order of the layout.

    ``body`` and ``properties`` are slices of what was decoded. Those of a view live as long as its buffer.
    """

    size_bytes: int
    queue_id: int
    flag: int
    queue_offset: QueueOffset
    log_offset: LogOffset
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    store_timestamp_ms: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    body: bytes | memoryview
    topic: str
    properties: bytes | memoryview


def crc32(data: bytes | memoryview) -> int:
    """RocketMQ's checksum: CRC-32 without its sign bit."""
    return crc.crc32(data) & CRC_MASK


@lru_cache(maxsize=4096)
def _topic_field(topic: str) -> tuple[int, bytes]:
    """The magic that a record of this topic carries, and the topic behind its length."""
    try:
        raw = topic.encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError("the topic holds a lone surrogate, which is no character") from error
    if not raw or len(raw) > MAX_TOPIC_BYTES or 0 in raw:
        raise LocalProtocolError(
            f"a topic of {len(raw)} bytes can not be stored; use 1 to {MAX_TOPIC_BYTES}, no NUL"
        )
    if len(raw) <= MAX_TOPIC_BYTES_V1:
        return MAGIC_V1, _TOPIC_LENGTH_V1.pack(len(raw)) + raw
    return MAGIC_V2, _TOPIC_LENGTH_V2.pack(len(raw)) + raw


def encode_record(
    message: Message, *, queue_offset: int, log_offset: int, store_timestamp_ms: int, store_host: bytes
) -> bytes:
    """Lay out one record. The host bits of the system flag follow the hosts' lengths."""
    body, properties = message.body, message.properties
    magic, topic_field = _topic_field(message.topic)
    if len(properties) > MAX_PROPERTIES_BYTES or 0 in properties:
        raise LocalProtocolError(
            f"{len(properties)} bytes of properties: at most {MAX_PROPERTIES_BYTES} without NUL are stored"
        )
    try:
        host_bits = _BORN_BITS[len(message.born_host)] | _STORE_BITS[len(store_host)]
        fixed = _FIXED[host_bits]
        head = fixed.pack(
            fixed.size + len(body) + len(topic_field) + 2 + len(properties),
            magic,
            crc.crc32(body) & CRC_MASK,
            message.queue_id,
            message.flag,
            queue_offset,
            log_offset,
            message.sys_flag & ~_HOST_BITS | host_bits,
            message.born_timestamp_ms,
            message.born_host,
            store_timestamp_ms,
            store_host,
            message.reconsume_times,
            message.prepared_transaction_offset,
            len(body),
        )
    except (KeyError, struct.error) as error:
        raise LocalProtocolError(f"a field of the message has no room in a record: {error}") from error
    return b"".join((head, body, topic_field, _PROPERTIES_LENGTH.pack(len(properties)), properties))


def fixed_size(head: bytes | bytearray) -> int:
    """How long a record's fields before the body are; ``head`` has its first ``FLAGGED_BYTES``."""
    return _FIXED[head[FLAGGED_BYTES - 1] & _HOST_BITS].size


def body_and_checksum(head: bytes | bytearray) -> tuple[int, int]:
    """How long a record's body is, and its checksum; ``head`` has all before the body."""
    fields = _FIXED[head[FLAGGED_BYTES - 1] & _HOST_BITS].unpack_from(head)
    return fields[14], fields[2]


def encode_blank(space_bytes: int) -> bytes:
    """The marker that fills the rest of a file: ``space_bytes`` counts itself."""
    return _BLANK.pack(space_bytes, MAGIC_BLANK)


def peek_record(view: bytes | memoryview, position: int) -> tuple[int, int]:
    """The size and the magic that stand at a position, unchecked."""
    if len(view) - position < BLANK_BYTES:
        raise RemoteProtocolError(f"{len(view) - position} bytes are too few for a record")
    return _BLANK.unpack_from(view, position)


def check_record(view: memoryview, position: int, *, log_offset: int, is_flushed: bool = False) -> int:
    """Size of the record at ``position``, or 0 if a blank says that the file ends here.

    ``view`` is the whole file; ``log_offset`` is where the record must say it lies. What is known to be
    flushed can not be torn, so there even properties with NUL, which RocketMQ takes, are sound.
    Raises RemoteProtocolError, with the reason, for anything that is not a whole, sound record.
    """
    size, magic = peek_record(view, position)
    if magic == MAGIC_BLANK:
        if size != len(view) - position:
            raise RemoteProtocolError(f"a blank of {size} bytes stands where {len(view) - position} are left")
        return 0
    if size == magic == 0:
        raise RemoteProtocolError("nothing is written here")
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RemoteProtocolError(f"magic {magic & 0xFFFFFFFF:#010x} is no record's")
    body_start, body_end, topic_end, record_end, fields = _layout(view, position, size, magic)
    if fields[6] != log_offset:
        raise RemoteProtocolError(f"the record says it lies at {fields[6]}, and it lies at {log_offset}")
    if crc.crc32(view[body_start:body_end]) & CRC_MASK != fields[2]:
        raise RemoteProtocolError("the body does not match its checksum")
    if not is_flushed and _is_torn(view, body_end, topic_end, record_end):
        raise RemoteProtocolError("part of the topic or the properties was never written")
    _decode_topic(view, body_end, topic_end, magic)
    return size


def decode_record(view: bytes | memoryview, position: int = 0) -> Record:
    """The record at ``position``. Checks lengths, not checksums: see check_record."""
    size, magic = peek_record(view, position)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RemoteProtocolError(f"magic {magic & 0xFFFFFFFF:#010x} is no record's")
    body_start, body_end, topic_end, record_end, fields = _layout(view, position, size, magic)
    # By position: to name sixteen fields costs a third of the whole.
    return Record(
        size,
        fields[3],
        fields[4],
        fields[5],
        fields[6],
        fields[7],
        fields[8],
        fields[9],
        fields[10],
        fields[11],
        fields[12],
        fields[13],
        fields[2],
        view[body_start:body_end],
        _decode_topic(view, body_end, topic_end, magic),
        view[topic_end + 2 : record_end],
    )


def record_store_time(view: bytes | memoryview) -> int:
    """When the record that ``view`` begins with was stored. Nothing behind its fixed fields is touched."""
    size, magic = peek_record(view, 0)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RemoteProtocolError(f"magic {magic & 0xFFFFFFFF:#010x} is no record's")
    if min(size, len(view)) < MIN_RECORD_BYTES:
        raise RemoteProtocolError(f"a record of {size} bytes has no room for its fixed fields")
    return _STORE_TIME.unpack_from(view, _STORE_TIME_POSITIONS[view[39] & _BORN_BIT])[0]


def record_properties(view: memoryview) -> memoryview:
    """The properties of the record that ``view`` begins with, and nothing else of it."""
    size, magic = peek_record(view, 0)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RemoteProtocolError(f"magic {magic & 0xFFFFFFFF:#010x} is no record's")
    _body_start, _body_end, topic_end, record_end, _fields = _layout(view, 0, size, magic)
    return view[topic_end + 2 : record_end]


def _layout(
    view: bytes | memoryview, position: int, size: int, magic: int
) -> tuple[int, int, int, int, tuple[Any, ...]]:
    """Where body and topic lie, where the record ends, and the fixed fields; all within ``size``."""
    if not MIN_RECORD_BYTES <= size <= len(view) - position:
        raise RemoteProtocolError(
            f"a record of {size} bytes does not fit into the {len(view) - position} there are"
        )
    record_end = position + size
    # The system flag, which says how long the hosts are, lies 36 bytes in.
    fixed = _FIXED[(view[position + 39]) & _HOST_BITS]
    body_start = position + fixed.size
    if body_start + 3 > record_end:
        raise RemoteProtocolError(f"a record of {size} bytes has no room for its fixed fields")
    fields = fixed.unpack_from(view, position)
    body_bytes: int = fields[14]
    body_end = body_start + body_bytes
    if not body_start <= body_end <= record_end - 3:
        raise RemoteProtocolError(f"a body of {body_bytes} bytes does not fit into a record of {size}")
    if magic == MAGIC_V1:
        topic_bytes = view[body_end]
        topic_end = body_end + 1 + topic_bytes
        if topic_bytes > MAX_TOPIC_BYTES_V1:
            raise RemoteProtocolError(f"a topic of {topic_bytes} bytes stands in a version 1 record")
    else:
        topic_end = body_end + 2 + _TOPIC_LENGTH_V2.unpack_from(view, body_end)[0]
    if not body_end < topic_end <= record_end - 2:
        raise RemoteProtocolError(f"the topic does not fit into a record of {size} bytes")
    properties_bytes = (view[topic_end] << 8) | view[topic_end + 1]
    if topic_end + 2 + properties_bytes != record_end or properties_bytes > MAX_PROPERTIES_BYTES:
        raise RemoteProtocolError(f"the fields do not add up to the record's {size} bytes")
    return body_start, body_end, topic_end, record_end, fields


def _decode_topic(view: bytes | memoryview, body_end: int, topic_end: int, magic: int) -> str:
    topic_start = body_end + (1 if magic == MAGIC_V1 else 2)
    try:
        return str(view[topic_start:topic_end], "utf-8")
    except UnicodeDecodeError as error:
        raise RemoteProtocolError("the topic is not UTF-8") from error


def _is_torn(view: memoryview, body_end: int, topic_end: int, record_end: int) -> bool:
    """Whether bytes behind the body were never written.

    A new file is all zeros, so what a crash loses reads as zeros: either whole sectors of the disk,
    or everything from some byte on. We store no NUL in topics and properties, so both show. (What
    is lost before the body's end shows in the checksum or in the offsets.)
    """
    if view[topic_end - 1] == 0 or (record_end - topic_end > 2 and view[record_end - 1] == 0):
        return True
    if record_end - topic_end == 2:
        # Without properties the record ends with the two zeros of their length.
        record_end = topic_end
    sector = (body_end + SECTOR_BYTES - 1) // SECTOR_BYTES * SECTOR_BYTES
    while sector < record_end:
        if not any(view[sector : min(sector + SECTOR_BYTES, record_end)]):
            return True
        sector += SECTOR_BYTES
    return False
