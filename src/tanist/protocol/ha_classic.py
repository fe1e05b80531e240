"""Classic replication: RocketMQ 4.x, and 5.x without a controller.

    slave -> master   log_offset                      8 bytes: the slave's log end, again and again
    master -> slave   log_offset size_bytes | body    12 bytes and raw log; size 0 is a heartbeat

No magic, no checksum, no identity. These decoders know frames only: whether an offset can be true
is for the link to say, which knows what it sent and what the log holds.
"""

import struct
from typing import NamedTuple

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_stream import MAX_BODY_BYTES, BodyPart, gather

# log_offset
_REPORT = struct.Struct(">q")
# log_offset, size_bytes
_TRANSFER_HEADER = struct.Struct(">qi")
REPORT_BYTES = _REPORT.size
TRANSFER_HEADER_BYTES = _TRANSFER_HEADER.size


class TransferHeader(NamedTuple):
    """What the next ``size_bytes`` bytes are: the log from ``log_offset`` on. Size 0 is a heartbeat."""

    log_offset: LogOffset
    size_bytes: int


def encode_report(log_offset: int) -> bytes:
    if log_offset < 0:
        raise LocalProtocolError(f"a slave can not report log offset {log_offset}")
    return _REPORT.pack(log_offset)


def encode_transfer_header(log_offset: int, size_bytes: int) -> bytes:
    if log_offset < 0 or not 0 <= size_bytes <= MAX_BODY_BYTES:
        raise LocalProtocolError(f"a frame of {size_bytes} bytes at log offset {log_offset} can not be sent")
    return _TRANSFER_HEADER.pack(log_offset, size_bytes)


class ReportDecoder:
    """A slave's reports. Each replaces the one before it, so only the newest whole one counts.

    Holds at most 7 bytes, however much is fed.
    """

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes | memoryview) -> int | None:
        """The newest report that is now whole, whatever number it is; None if none became whole."""
        view = memoryview(data)
        first_bytes = REPORT_BYTES - len(self._held)
        if len(view) < first_bytes:
            self._held += bytes(view)
            return None
        whole = (len(view) - first_bytes) // REPORT_BYTES * REPORT_BYTES
        newest = view[first_bytes + whole - REPORT_BYTES : first_bytes + whole] if whole else None
        raw = self._held + bytes(view[:first_bytes]) if newest is None else newest
        self._held = bytes(view[first_bytes + whole :])
        return _REPORT.unpack(raw)[0]


class TransferDecoder:
    """A master's frames: a header, then the pieces of its body as they arrive."""

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_body_bytes = max_body_bytes
        self._held = bytearray()
        self._body_left = 0

    def feed(self, data: bytes | memoryview) -> list[TransferHeader | BodyPart]:
        """Everything that ``data`` completes, in order. The parts are views of ``data``."""
        events: list[TransferHeader | BodyPart] = []
        view = memoryview(data)
        while view:
            if self._body_left:
                part, view = view[: self._body_left], view[self._body_left :]
                self._body_left -= len(part)
                events.append(BodyPart(part, is_last=not self._body_left))
                continue
            view = gather(self._held, view, TRANSFER_HEADER_BYTES)
            if len(self._held) == TRANSFER_HEADER_BYTES:
                events.append(self._take_header())
        return events

    def _take_header(self) -> TransferHeader:
        log_offset, size_bytes = _TRANSFER_HEADER.unpack(self._held)
        self._held.clear()
        if log_offset < 0 or not 0 <= size_bytes <= self._max_body_bytes:
            raise RemoteProtocolError(f"a frame of {size_bytes} bytes at log offset {log_offset}")
        self._body_left = size_bytes
        return TransferHeader(LogOffset(log_offset), size_bytes)
