"""Notes of the halves that are done with, for ourselves after a restart and for RocketMQ. Pure.

A note is a message in the op topic whose body names queue offsets of the half topic, each followed by a
comma. They are gathered for a few seconds, because a note each would double what a rollback writes.
"""

from collections import deque
from collections.abc import Iterator

from tanist.broker.transactions.halves import HALF_QUEUE_ID
from tanist.model.message import Message
from tanist.model.property_names import TAGS, WAIT
from tanist.model.topics import HALF_OP_TOPIC
from tanist.protocol.properties import encode_properties, find_property
from tanist.protocol.record import Record

MAX_GATHERED = 100_000
"""Offsets that wait to be written while the disk refuses. With more, no transaction can end."""

_TAG = "d"
_SEPARATOR = b","
_PROPERTIES = encode_properties({WAIT: "true", TAGS: _TAG})
_MAX_DIGITS = 19


def named_offsets(record: Record) -> Iterator[int]:
    """The queue offsets that a note names. What is no note names none."""
    if find_property(bytes(record.properties), TAGS) != _TAG.encode():
        return
    for text in bytes(record.body).split(_SEPARATOR):
        if text.isdigit() and len(text) <= _MAX_DIGITS:
            yield int(text)


class OpNotes:
    """What is to be noted, and which notes are still needed."""

    def __init__(self, *, max_bytes: int, interval_ms: int) -> None:
        self._max_bytes = max_bytes
        self._interval_ms = interval_ms
        self._gathered: deque[int] = deque()
        self._size_bytes = 0
        self._since_ms = 0
        self._written: deque[tuple[int, int]] = deque()
        self._next_offset = 0

    @property
    def is_overfull(self) -> bool:
        return len(self._gathered) >= MAX_GATHERED

    @property
    def due_ms(self) -> int | None:
        """When the next note is to be written; None if there is nothing to say."""
        if not self._gathered:
            return None
        return self._since_ms if self._size_bytes >= self._max_bytes else self._since_ms + self._interval_ms

    def gather(self, half_offset: int, *, now_ms: int) -> None:
        """A half is done with."""
        if not self._gathered:
            self._since_ms = now_ms
        self._gathered.append(half_offset)
        self._size_bytes += _size_bytes(half_offset)

    def next_note(self, *, born_host: bytes, now_ms: int) -> tuple[Message, int]:
        """The next note, and how many offsets it names. ``on_written`` takes them out when it is stored."""
        body = bytearray()
        count = 0
        for offset in self._gathered:
            body += b"%d" % offset + _SEPARATOR
            count += 1
            if len(body) >= self._max_bytes:
                break
        note = Message(
            topic=HALF_OP_TOPIC,
            queue_id=HALF_QUEUE_ID,
            body=bytes(body),
            properties=_PROPERTIES,
            born_timestamp_ms=now_ms,
            born_host=born_host,
        )
        return note, count

    def on_written(self, op_offset: int, count: int) -> None:
        """The note of the first ``count`` offsets lies at an offset of the op topic."""
        offsets = [self._gathered.popleft() for _ in range(count)]
        self._size_bytes -= sum(map(_size_bytes, offsets))
        self.on_found(op_offset, max(offsets))

    def on_found(self, op_offset: int, greatest: int) -> None:
        """There is a note which names no half offset above ``greatest``."""
        self._written.append((op_offset, greatest))
        self._next_offset = op_offset + 1

    def first_needed(self, lowest_open: int) -> int:
        """The first note that names a half at or behind the first that is still open."""
        while self._written and self._written[0][1] < lowest_open:
            self._written.popleft()
        return self._written[0][0] if self._written else self._next_offset

    def start_at(self, op_offset: int) -> None:
        """Nothing before this offset of the op topic is needed any more."""
        self._next_offset = op_offset


def _size_bytes(offset: int) -> int:
    return len(str(offset)) + len(_SEPARATOR)
