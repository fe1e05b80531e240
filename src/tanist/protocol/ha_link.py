"""The frames of Tanist's own replication link, after the hello (see ha_hello).

    master -> slave   DATA size_bytes log_offset epoch confirmed_to crc | body
                      TABLE size_bytes crc | body
    slave -> master   ACK kind log_offset crc
                      TABLES_HELD number crc
    both              HEARTBEAT log_end epoch confirmed_to crc
                      NOTE size_bytes crc | body

Every frame carries a CRC-32 of body and fields. It runs over the body first, so that a master takes the
CRC of a body once and sends it to all its slaves. The bytes of DATA are of one epoch, which is the frame's.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.compiled import native
from tanist.protocol.crc import crc32
from tanist.protocol.ha_stream import MAX_BODY_BYTES

# kind, size_bytes, log_offset, epoch, confirmed_to
_DATA = struct.Struct(">BIqiq")
# kind, size_bytes
_SIZED = struct.Struct(">BI")
# kind, ack_kind, log_offset
_ACK = struct.Struct(">BBq")
# kind, log_end, epoch, confirmed_to
_HEARTBEAT = struct.Struct(">Bqiq")
# kind, number
_TABLES_HELD = struct.Struct(">Bq")
_CRC = struct.Struct(">I")

FRAME_BYTES: Final = 256 << 10
"""Of the log, in a frame of a master that has more to send: small enough to be in the processor's cache yet
when it is gone over a second time. A slave takes longer ones."""
MAX_NOTE_BYTES: Final = 1 << 20
"""A master gathers each of its slaves' notes in memory, and acks wait behind a note on its way."""


class FrameKind(IntEnum):
    """The first byte of a frame."""

    DATA = 1
    ACK = 2
    HEARTBEAT = 3
    TABLE = 4
    NOTE = 5
    TABLES_HELD = 6


class AckKind(IntEnum):
    """What an ack promises: the bytes are in the slave's memory, or on its disk."""

    RECEIVED = 1
    FLUSHED = 2


class Data(NamedTuple):
    """The bytes of the log from ``log_offset`` on, written in ``epoch``."""

    log_offset: LogOffset
    epoch: int
    confirmed_to: LogOffset
    body: memoryview


class TableChange(NamedTuple):
    """A change of the tables beside the log, in a form that only its makers know."""

    body: memoryview


class Note(NamedTuple):
    """What one broker tells the other beside the log, in a form that only they know."""

    body: memoryview


class Ack(NamedTuple):
    """The slave holds everything before ``log_offset``."""

    kind: AckKind
    log_offset: LogOffset


class TablesHeld(NamedTuple):
    """The slave has taken over all changes of the tables up to the one that asked with this number.

    A slave sends it only when it is asked, so a master that does not know it never gets one.
    """

    number: int


class Heartbeat(NamedTuple):
    """Its sender lives, and its log is this long. It also tells an idle slave how far it may read."""

    log_end: LogOffset
    epoch: int
    confirmed_to: LogOffset


Frame: TypeAlias = Data | TableChange | Note | Ack | TablesHeld | Heartbeat

FROM_MASTER: Final = frozenset((FrameKind.DATA, FrameKind.TABLE, FrameKind.HEARTBEAT, FrameKind.NOTE))
FROM_SLAVE: Final = frozenset((FrameKind.ACK, FrameKind.HEARTBEAT, FrameKind.NOTE, FrameKind.TABLES_HELD))
# Looking a member up in its enum costs as much as unpacking an ack.
_DATA_KIND, _ACK_KIND = int(FrameKind.DATA), int(FrameKind.ACK)
_ACK_KINDS: Final = {int(kind): kind for kind in AckKind}
ACK_BYTES: Final = _ACK.size + _CRC.size
_LAYOUTS: Final = {
    FrameKind.DATA: _DATA,
    FrameKind.TABLE: _SIZED,
    FrameKind.NOTE: _SIZED,
    FrameKind.ACK: _ACK,
    FrameKind.HEARTBEAT: _HEARTBEAT,
    FrameKind.TABLES_HELD: _TABLES_HELD,
}
_MAX_BODIES: Final = {
    FrameKind.DATA: MAX_BODY_BYTES,
    FrameKind.TABLE: MAX_BODY_BYTES,
    FrameKind.NOTE: MAX_NOTE_BYTES,
}
"""Of the frames that have a body."""
_HEADS: Final = {
    int(kind): (layout.size + _CRC.size, _MAX_BODIES.get(kind, 0)) for kind, layout in _LAYOUTS.items()
}
"""How long the head of a frame is, CRC included, and its body at most."""


def encode_data_header(
    log_offset: int, size_bytes: int, *, epoch: int, confirmed_to: int, body_crc: int
) -> bytes:
    """What goes before the body. ``body_crc`` is the CRC-32 of the body."""
    if not 1 <= size_bytes <= MAX_BODY_BYTES or log_offset < 0 or epoch < 0 or confirmed_to < 0:
        raise LocalProtocolError(f"{size_bytes} bytes at {log_offset} of epoch {epoch} can not be sent")
    if native is not None:
        return native.data_head(log_offset, size_bytes, epoch, confirmed_to, body_crc)
    return _with_crc(_DATA.pack(_DATA_KIND, size_bytes, log_offset, epoch, confirmed_to), body_crc)


def encode_table_change(body: bytes) -> bytes:
    if not 1 <= len(body) <= MAX_BODY_BYTES:
        raise LocalProtocolError(f"a change of {len(body)} bytes can not be sent")
    return _with_crc(_SIZED.pack(FrameKind.TABLE, len(body)), crc32(body)) + body


def encode_note(body: bytes) -> bytes:
    if not 1 <= len(body) <= MAX_NOTE_BYTES:
        raise LocalProtocolError(f"a note of {len(body)} bytes can not be sent; it has 1 to {MAX_NOTE_BYTES}")
    return _with_crc(_SIZED.pack(FrameKind.NOTE, len(body)), crc32(body)) + body


def encode_ack(ack: Ack) -> bytes:
    if ack.log_offset < 0:
        raise LocalProtocolError(f"{ack} can not be sent")
    return _with_crc(_ACK.pack(FrameKind.ACK, ack.kind, ack.log_offset))


def encode_tables_held(number: int) -> bytes:
    return _with_crc(_TABLES_HELD.pack(FrameKind.TABLES_HELD, number))


def encode_heartbeat(heartbeat: Heartbeat) -> bytes:
    if min(heartbeat) < 0:
        raise LocalProtocolError(f"{heartbeat} can not be sent")
    return _with_crc(_HEARTBEAT.pack(FrameKind.HEARTBEAT, *heartbeat))


def _with_crc(fields: bytes, body_crc: int = 0) -> bytes:
    return fields + _CRC.pack(crc32(fields, body_crc))


def decode_frames(
    view: memoryview, allowed: frozenset[FrameKind], *, max_body_bytes: int = MAX_BODY_BYTES
) -> tuple[list[Frame], int]:
    """The whole frames at the front of ``view``, and how many bytes they take.

    ``allowed`` says whose they are: FROM_MASTER or FROM_SLAVE. Bodies are views. A frame is handed out when
    its checksum is right and refused as soon as its bytes show that it can not be one, before it is whole.
    """
    frames: list[Frame] = []
    start = 0
    while start < len(view):
        end = start + bytes_needed(view, allowed, start, max_body_bytes=max_body_bytes)
        if len(view) < end:
            break
        frames.append(_decode(view, start, end))
        start = end
    return frames, start


def lone_ack(data: bytes, kind: AckKind, *, least: int, most: int) -> int | None:
    """Up to where a slave acks whose bytes are one ack of this kind within these bounds, as most are.

    None if they are anything else: it is for ``decode_frames`` to say what.
    """
    acked_to = _lone_ack(data, kind) if native is None else native.lone_ack(data, kind, least, most)
    return acked_to if least <= acked_to <= most else None


def _lone_ack(data: bytes, kind: AckKind) -> int:
    if len(data) != ACK_BYTES or data[0] != _ACK_KIND or data[1] != kind:
        return -1
    (crc,) = _CRC.unpack_from(data, _ACK.size)
    return _ACK.unpack_from(data)[2] if crc32(data[: _ACK.size]) == crc else -1


def bytes_needed(
    view: memoryview, allowed: frozenset[FrameKind], start: int = 0, *, max_body_bytes: int = MAX_BODY_BYTES
) -> int:
    """How long the frame at ``start`` is; of one whose head is not whole, how long that is.

    With less there is nothing new to see in it. Raises RemoteProtocolError if there can be no such frame.
    """
    held_bytes = len(view) - start
    if not held_bytes:
        return 1
    kind = view[start]
    if kind not in allowed:
        raise RemoteProtocolError(f"a frame opens with {kind:#04x}, which this side of the link can not send")
    head_bytes, most_bytes = _HEADS[kind]
    if held_bytes < head_bytes or not most_bytes:
        return head_bytes
    # A head says it in its second field, if it has a body.
    _, size_bytes = _SIZED.unpack_from(view, start)
    most_bytes = min(most_bytes, max_body_bytes)
    if not 1 <= size_bytes <= most_bytes:
        raise RemoteProtocolError(f"a frame of {size_bytes} bytes; it has 1 to {most_bytes}")
    return head_bytes + size_bytes


def _decode(view: memoryview, start: int, end: int) -> Frame:
    kind = view[start]
    body_start = start + _HEADS[kind][0]
    fields_end = body_start - _CRC.size
    body = view[body_start:end]
    (crc,) = _CRC.unpack_from(view, fields_end)
    if crc32(view[start:fields_end], crc32(body)) != crc:
        raise RemoteProtocolError("a frame does not match its checksum")
    if kind == _DATA_KIND:
        return _decode_data(view, start, body)
    if kind == _ACK_KIND:
        return _decode_ack(view, start)
    match FrameKind(kind):
        case FrameKind.HEARTBEAT:
            return _decode_heartbeat(view, start)
        case FrameKind.NOTE:
            return Note(body)
        case FrameKind.TABLES_HELD:
            return TablesHeld(_TABLES_HELD.unpack_from(view, start)[1])
        case _:
            return TableChange(body)


def _decode_data(view: memoryview, start: int, body: memoryview) -> Data:
    _, _, log_offset, epoch, confirmed_to = _DATA.unpack_from(view, start)
    if log_offset < 0 or epoch < 0 or confirmed_to < 0:
        raise RemoteProtocolError(f"data at {log_offset} of epoch {epoch}, confirmed to {confirmed_to}")
    return Data(log_offset, epoch, confirmed_to, body)


def _decode_ack(view: memoryview, start: int) -> Ack:
    _, kind, log_offset = _ACK.unpack_from(view, start)
    if kind not in _ACK_KINDS or log_offset < 0:
        raise RemoteProtocolError(f"an ack of kind {kind} for log offset {log_offset}")
    return Ack(_ACK_KINDS[kind], log_offset)


def _decode_heartbeat(view: memoryview, start: int) -> Heartbeat:
    _, log_end, epoch, confirmed_to = _HEARTBEAT.unpack_from(view, start)
    heartbeat = Heartbeat(LogOffset(log_end), epoch, LogOffset(confirmed_to))
    if min(heartbeat) < 0:
        raise RemoteProtocolError(f"{heartbeat} has a negative field")
    return heartbeat
