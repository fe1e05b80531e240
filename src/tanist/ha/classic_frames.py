"""Where the frames to a slave of RocketMQ end, and whether a slave can have stopped at an offset. Pure.

RocketMQ cuts its log anywhere. Here a frame ends where a record ends, and only a record that is larger than
a frame is cut, in pieces of a whole frame from its start. So a slave that holds what it was sent stops at a
place that can be recognised, and most others can be told from it, though all they say is a number.
"""

from dataclasses import dataclass, field
from typing import Protocol, Self

from tanist.model.offsets import LogOffset
from tanist.protocol.ha_stream import MAX_BODY_BYTES
from tanist.protocol.record import BLANK_BYTES, peek_record

REBUILD = "stop that slave, empty its store and start it again"
"""What is done about a slave of RocketMQ whose log is another one."""

_MAX_PIECES = 1024
"""So many pieces of one record are looked back over: at 32 KiB each that is more than any record has."""


class Log(Protocol):
    """What a classic link looks at in the log that it sends."""

    @property
    def log_start(self) -> LogOffset: ...

    log_end: LogOffset

    def read_ahead(self, log_offset: int, max_bytes: int) -> memoryview:
        """What is written from an offset on, at most to the end of that file."""
        ...

    def is_record_start(self, log_offset: int) -> bool:
        """Whether a sound record or a blank begins here, or the log ends here."""
        ...


@dataclass(slots=True)
class FrameCuts:
    """Where the frames of one link end."""

    log: Log
    batch_bytes: int
    """The largest body of a frame."""
    record_end: int = field(default=0, init=False)
    """Where the record ends that was sent only in part."""

    @classmethod
    def of(cls, log: Log, batch_bytes: int, *, header_bytes: int) -> Self:
        """Those of the size that is wished for, if a slave of RocketMQ can take it.

        It reads a frame through a buffer of 4 MiB; a larger one it never gets to the end of.
        """
        return cls(log, min(batch_bytes, MAX_BODY_BYTES - header_bytes))

    def start_at(self, report: int, *, log_end: int, beyond: str) -> str | None:
        """Why no copy of this log can end where a slave's first report says; None if one can.

        ``log_end`` is the end that the slave can know of, and ``beyond`` what is wrong if it has more.
        """
        if report == 0:
            return None
        if report < 0:
            return "where no log ends"
        if report > log_end:
            return f"{beyond}; {REBUILD}"
        if report < self.log.log_start:
            return f"and this log begins at {self.log.log_start}: what it lacks was deleted; {REBUILD}"
        record_end = record_end_behind(self.log, report, max_bytes=self.batch_bytes)
        if record_end is None:
            return (
                "where no record of this log ends: restart that slave, which cuts half a record off its end; "
                f"if it comes again it is no copy of this log: {REBUILD}"
            )
        self.record_end = record_end
        return None

    def next_bytes(self, sent_to: int) -> int:
        """The most that the next frame carries: whole records, or a piece of one that is larger."""
        if sent_to < self.record_end:
            return min(self.batch_bytes, self.record_end - sent_to)
        ahead = self.log.read_ahead(sent_to, self.batch_bytes)
        return whole_records(ahead, self.batch_bytes) or self.batch_bytes

    def on_sent(self, sent_from: int, sent_to: int) -> None:
        """A frame was sent from here to there."""
        if sent_from >= self.record_end and sent_to - sent_from == self.batch_bytes:
            first_bytes = record_bytes(self.log.read_ahead(sent_from, BLANK_BYTES), 0)
            self.record_end = sent_from + first_bytes


def ack_fault(acked_to: int, *, before: int, sent_from: int, sent_to: int) -> str | None:
    """Why a slave can not hold the log up to here; None if it can.

    An empty slave says 0 until it holds something, and what it was sent begins at ``sent_from``.
    """
    least = max(before, sent_from)
    return None if least <= acked_to <= sent_to else f"ack {acked_to} is outside [{least}, {sent_to}]"


def whole_records(ahead: memoryview, max_bytes: int) -> int:
    """How much of what lies ahead is whole records, at most ``max_bytes``; 0 if the first is larger."""
    if len(ahead) < max_bytes:
        # It goes to the end of the file or of the log, and a record ends there.
        return len(ahead)
    position = 0
    while len(ahead) - position >= BLANK_BYTES:
        size_bytes = record_bytes(ahead, position)
        if not size_bytes or position + size_bytes > max_bytes:
            break
        position += size_bytes
    return position


def record_end_behind(log: Log, log_offset: int, *, max_bytes: int) -> int | None:
    """Where the record ends in which a frame of ``max_bytes`` may have ended at this offset.

    The offset itself if a record begins there, None if no frame can have ended there.
    """
    if log.is_record_start(log_offset):
        return log_offset
    for start in range(log_offset - max_bytes, log_offset - max_bytes * _MAX_PIECES, -max_bytes):
        if start < log.log_start:
            return None
        if log.is_record_start(start):
            end = start + record_bytes(log.read_ahead(start, BLANK_BYTES), 0)
            return end if end > log_offset else None
    return None


def record_bytes(view: memoryview, position: int) -> int:
    """How large the record or the blank is that begins here; 0 if the log is damaged and none does.

    Then whoever reads the record finds it. A slave gets the bytes as they are.
    """
    size_bytes, _ = peek_record(view, position)
    return size_bytes if size_bytes >= BLANK_BYTES else 0
