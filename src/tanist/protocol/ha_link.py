"""The frames of Tanist's own replication link, after the hello (see ha_hello).

    master -> slave   DATA size_bytes log_offset epoch confirmed_to crc | body
    slave -> master   ACK kind log_offset crc
    both              HEARTBEAT log_end epoch confirmed_to crc

Every frame carries a CRC-32 of all its fields. That of DATA runs over the body first and then over
the fields, so that a master takes the CRC of a body once and sends it to all its slaves. A frame's
bytes are of one epoch, which is the frame's.
"""

import struct
import zlib
from enum import IntEnum
from typing import Final, NamedTuple

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_stream import MAX_BODY_BYTES, BodyPart, gather

# kind, size_bytes, log_offset, epoch, confirmed_to
_DATA = struct.Struct(">BIqiq")
# kind, ack_kind, log_offset
_ACK = struct.Struct(">BBq")
# kind, log_end, epoch, confirmed_to
_HEARTBEAT = struct.Struct(">Bqiq")
_CRC = struct.Struct(">I")


class FrameKind(IntEnum):
    """The first byte of a frame."""

    DATA = 1
    ACK = 2
    HEARTBEAT = 3


class AckKind(IntEnum):
    """What an ack promises: the bytes are in the slave's memory, or on its disk."""

    RECEIVED = 1
    FLUSHED = 2


class DataHeader(NamedTuple):
    """What the next ``size_bytes`` bytes are: the log from ``log_offset`` on, written in ``epoch``."""

    log_offset: LogOffset
    size_bytes: int
    epoch: int
    confirmed_to: LogOffset


class Ack(NamedTuple):
    """The slave holds everything before ``log_offset``."""

    kind: AckKind
    log_offset: LogOffset


class Heartbeat(NamedTuple):
    """Its sender lives, and its log is this long. It also tells an idle slave how far it may read."""

    log_end: LogOffset
    epoch: int
    confirmed_to: LogOffset


FROM_MASTER: Final = frozenset((FrameKind.DATA, FrameKind.HEARTBEAT))
FROM_SLAVE: Final = frozenset((FrameKind.ACK, FrameKind.HEARTBEAT))
_LAYOUTS: Final = {FrameKind.DATA: _DATA, FrameKind.ACK: _ACK, FrameKind.HEARTBEAT: _HEARTBEAT}


def encode_data_header(header: DataHeader, *, body_crc: int) -> bytes:
    """What goes before the body. ``body_crc`` is ``zlib.crc32`` of the body."""
    if not 1 <= header.size_bytes <= MAX_BODY_BYTES or min(header) < 0:
        raise LocalProtocolError(f"{header} can not be sent")
    fields = _DATA.pack(
        FrameKind.DATA, header.size_bytes, header.log_offset, header.epoch, header.confirmed_to
    )
    return fields + _CRC.pack(zlib.crc32(fields, body_crc))


def encode_ack(ack: Ack) -> bytes:
    if ack.log_offset < 0:
        raise LocalProtocolError(f"{ack} can not be sent")
    return _with_crc(_ACK.pack(FrameKind.ACK, ack.kind, ack.log_offset))


def encode_heartbeat(heartbeat: Heartbeat) -> bytes:
    if min(heartbeat) < 0:
        raise LocalProtocolError(f"{heartbeat} can not be sent")
    return _with_crc(_HEARTBEAT.pack(FrameKind.HEARTBEAT, *heartbeat))


def _with_crc(fields: bytes) -> bytes:
    return fields + _CRC.pack(zlib.crc32(fields))


class LinkDecoder:
    """One direction of a link. ``allowed`` says which: FROM_MASTER or FROM_SLAVE.

    A body's last part is handed out only when the checksum of its frame is right.
    """

    def __init__(self, allowed: frozenset[FrameKind], *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._allowed = allowed
        self._max_body_bytes = max_body_bytes
        self._held = bytearray()
        self._body_left = 0
        self._body_crc = 0

    def feed(self, data: bytes | memoryview) -> list[DataHeader | BodyPart | Ack | Heartbeat]:
        """Everything that ``data`` completes, in order. The parts are views of ``data``."""
        events: list[DataHeader | BodyPart | Ack | Heartbeat] = []
        view = memoryview(data)
        while view:
            if self._body_left:
                part, view = view[: self._body_left], view[self._body_left :]
                events.append(self._take_part(part))
                continue
            kind = self._kind(self._held[0] if self._held else view[0])
            frame_bytes = _LAYOUTS[kind].size + _CRC.size
            view = gather(self._held, view, frame_bytes)
            if len(self._held) == frame_bytes:
                events.append(self._take_frame(kind))
        return events

    def _kind(self, first: int) -> FrameKind:
        for kind in self._allowed:
            if kind == first:
                return kind
        raise RemoteProtocolError(
            f"a frame opens with {first:#04x}, which this side of the link can not send"
        )

    def _take_frame(self, kind: FrameKind) -> DataHeader | Ack | Heartbeat:
        if kind is FrameKind.DATA:
            # Kept in held until the body is there: its checksum runs over both.
            return self._take_data_header()
        self._check_crc(body_crc=0)
        frame = _decode_ack(self._held) if kind is FrameKind.ACK else _decode_heartbeat(self._held)
        self._held.clear()
        return frame

    def _take_data_header(self) -> DataHeader:
        _, size_bytes, log_offset, epoch, confirmed_to = _DATA.unpack_from(self._held)
        header = DataHeader(LogOffset(log_offset), size_bytes, epoch, LogOffset(confirmed_to))
        if not 1 <= size_bytes <= self._max_body_bytes or min(header) < 0:
            raise RemoteProtocolError(
                f"{header}; a frame has 1 to {self._max_body_bytes} bytes and no negative field"
            )
        self._body_left = size_bytes
        self._body_crc = 0
        return header

    def _take_part(self, part: memoryview) -> BodyPart:
        self._body_left -= len(part)
        self._body_crc = zlib.crc32(part, self._body_crc)
        if not self._body_left:
            self._check_crc(body_crc=self._body_crc)
            self._held.clear()
        return BodyPart(part, is_last=not self._body_left)

    def _check_crc(self, *, body_crc: int) -> None:
        fields_end = len(self._held) - _CRC.size
        (crc,) = _CRC.unpack_from(self._held, fields_end)
        if zlib.crc32(self._held[:fields_end], body_crc) != crc:
            raise RemoteProtocolError("a frame does not match its checksum")


def _decode_ack(held: bytearray) -> Ack:
    _, kind, log_offset = _ACK.unpack_from(held)
    if kind not in (AckKind.RECEIVED, AckKind.FLUSHED) or log_offset < 0:
        raise RemoteProtocolError(f"an ack of kind {kind} for log offset {log_offset}")
    return Ack(AckKind(kind), LogOffset(log_offset))


def _decode_heartbeat(held: bytearray) -> Heartbeat:
    _, log_end, epoch, confirmed_to = _HEARTBEAT.unpack_from(held)
    heartbeat = Heartbeat(LogOffset(log_end), epoch, LogOffset(confirmed_to))
    if min(heartbeat) < 0:
        raise RemoteProtocolError(f"{heartbeat} has a negative field")
    return heartbeat
