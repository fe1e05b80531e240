"""Reads one queue for a pull: what there is from an offset on, filtered, as few pieces as can be."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from tanist.protocol.queue_entry import QueueEntry
from tanist.store import MessageStore
from tanist.store.consume_queue import ConsumeQueue

_LOOK_AHEAD_ENTRIES = 800
"""How many entries a pull looks at that matches few of them, before it answers with where it is."""
_LEAST_CHUNK_ENTRIES = 32


class Outcome(Enum):
    """What a pull found; the names are the remarks that clients show."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"


@dataclass(frozen=True, slots=True)
class QueueRead:
    """The messages as views of the log, and where to go on."""

    outcome: Outcome
    next_offset: int
    min_offset: int
    max_offset: int
    pieces: list[memoryview]
    message_count: int = 0
    read_to: int | None = None
    """Where in the log the last message lies that was looked at; None if none was."""


def read_queue(
    store: MessageStore,
    topic: str,
    queue_id: int,
    queue_offset: int,
    *,
    max_count: int,
    max_bytes: int,
    is_wanted: Callable[[int], bool],
) -> QueueRead:
    """Read messages whose tags code ``is_wanted``. At least one is returned, however large it is."""
    queue = store.queues.find(topic, queue_id)
    low, high = (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)
    if queue is None or high == 0:
        return QueueRead(Outcome.NO_MESSAGE_IN_QUEUE, 0, low, high, [])
    if queue_offset < low:
        return QueueRead(Outcome.OFFSET_TOO_SMALL, low, low, high, [])
    if queue_offset == high:
        return QueueRead(Outcome.OFFSET_OVERFLOW_ONE, high, low, high, [])
    if queue_offset > high:
        return QueueRead(Outcome.OFFSET_OVERFLOW_BADLY, high, low, high, [])
    runs = _Runs()
    next_offset, read_to = queue_offset, None
    for entry in _entries(queue, queue_offset, chunk_count=max_count):
        if runs.message_count and (
            runs.message_count >= max_count or runs.size_bytes + entry.size_bytes > max_bytes
        ):
            break
        next_offset += 1
        read_to = entry.log_offset
        if not entry.is_filler and is_wanted(entry.tags_code):
            runs.add(entry.log_offset, entry.size_bytes)
    outcome = Outcome.FOUND if runs.message_count else Outcome.NO_MATCHED_MESSAGE
    return QueueRead(outcome, next_offset, low, high, runs.read(store), runs.message_count, read_to)


def _entries(queue: ConsumeQueue, queue_offset: int, *, chunk_count: int) -> Iterator[QueueEntry]:
    """The next entries, as many as a pull may look at. Most pulls want all of the first few and no more."""
    chunk_count = max(chunk_count, _LEAST_CHUNK_ENTRIES)
    end = min(queue_offset + _LOOK_AHEAD_ENTRIES, queue.max_offset)
    for start in range(queue_offset, end, chunk_count):
        yield from queue.entries(start, min(chunk_count, end - start))


class _Runs:
    """Ranges of the log; messages that lie one behind the other are one range."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self.message_count = 0
        self.size_bytes = 0

    def add(self, log_offset: int, size_bytes: int) -> None:
        if self._ranges and self._ranges[-1][1] == log_offset:
            self._ranges[-1] = (self._ranges[-1][0], log_offset + size_bytes)
        else:
            self._ranges.append((log_offset, log_offset + size_bytes))
        self.message_count += 1
        self.size_bytes += size_bytes

    def read(self, store: MessageStore) -> list[memoryview]:
        return [store.log.read(start, end - start) for start, end in self._ranges]
