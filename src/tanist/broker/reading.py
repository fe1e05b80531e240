"""Reads one queue for a pull: what there is from an offset on, filtered, as few pieces as can be."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from tanist.protocol.queue_entry import ENTRY_BYTES, FILLER_SIZE, EntryFields, find_run
from tanist.store import MessageStore
from tanist.store.consume_queue import ConsumeQueue

_LOOK_AHEAD_ENTRIES = 800
"""How many entries a pull looks at that matches few of them, before it answers with where it is."""
_LEAST_CHUNK_ENTRIES = 32
_SLOW_CHUNK_ENTRIES = 4
"""How many entries are fetched at once if looking at each takes time, so that few of them are looked at."""


class Outcome(StrEnum):
    """What a pull found; the names are the remarks that clients show."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_RESET = "OFFSET_RESET"
    """The group is being moved, and who pulls is told so."""
    OFFSET_NOT_ON_SLAVE = "OFFSET_NOT_ON_SLAVE"
    """Only of a slave: the master may well have it."""


class QueueRead(NamedTuple):
    """The messages as views of the log, and where to go on."""

    outcome: Outcome
    next_offset: int
    min_offset: int
    max_offset: int
    pieces: list[memoryview]
    message_count: int = 0
    size_bytes: int = 0
    """Of all pieces together."""


def read_queue(
    store: MessageStore,
    topic: str,
    queue_id: int,
    queue_offset: int,
    *,
    max_count: int,
    max_bytes: int,
    is_wanted: Callable[[EntryFields], bool] | None,
    has_time: Callable[[], bool] | None = None,
) -> QueueRead:
    """Read messages whose entry ``is_wanted``, or all if that is None.

    At least one is returned, however large it is.
    The look ends early where it has no time any more; one entry is looked at in any case.
    """
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
    if is_wanted is None and (whole := _read_run(store, queue, queue_offset, max_count, max_bytes)):
        return whole
    runs, next_offset, message_count = _take(
        _entries(queue, queue_offset, max_count, has_time),
        queue_offset,
        max_count=max_count,
        max_bytes=max_bytes,
        is_wanted=is_wanted,
    )
    outcome = Outcome.FOUND if message_count else Outcome.NO_MATCHED_MESSAGE
    pieces = [store.log.read(start, end - start) for start, end in runs]
    size_bytes = sum(end - start for start, end in runs)
    return QueueRead(outcome, next_offset, low, high, pieces, message_count, size_bytes)


def _read_run(
    store: MessageStore, queue: ConsumeQueue, queue_offset: int, max_count: int, max_bytes: int
) -> QueueRead | None:
    """The next messages in one piece; None if they are none. Most pulls end here, and nothing is cheaper."""
    entries = queue.packed(queue_offset, max_count)
    run = find_run(entries)
    if run is None or run[1] > max_bytes:
        return None
    start, size_bytes = run
    count = len(entries) // ENTRY_BYTES
    return QueueRead(
        Outcome.FOUND,
        queue_offset + count,
        queue.min_offset,
        queue.max_offset,
        [store.log.read(start, size_bytes)],
        count,
        size_bytes,
    )


def _take(
    entries: Iterable[EntryFields],
    next_offset: int,
    *,
    max_count: int,
    max_bytes: int,
    is_wanted: Callable[[EntryFields], bool] | None,
) -> tuple[list[tuple[int, int]], int, int]:
    """The ranges of the log that hold what is wanted, the next offset to look at, and how many there are.

    Messages that lie one behind the other are one range. This loop is what a pull costs.
    """
    runs: list[tuple[int, int]] = []
    start = end = count = taken_bytes = 0
    for entry in entries:
        log_offset, size_bytes, _ = entry
        if count and taken_bytes + size_bytes > max_bytes:
            break
        next_offset += 1
        if size_bytes == FILLER_SIZE or (is_wanted is not None and not is_wanted(entry)):
            continue
        if log_offset != end or not count:
            if count:
                runs.append((start, end))
            start = end = log_offset
        end += size_bytes
        count += 1
        taken_bytes += size_bytes
        if count == max_count:
            # Not when the next one comes: to fetch it may take another read.
            break
    if count:
        runs.append((start, end))
    return runs, next_offset, count


def _entries(
    queue: ConsumeQueue, queue_offset: int, max_count: int, has_time: Callable[[], bool] | None
) -> Iterator[EntryFields]:
    """The next entries, as many as a pull may look at. Most pulls want all of the first few and no more."""
    chunk_count = max(max_count, _LEAST_CHUNK_ENTRIES) if has_time is None else _SLOW_CHUNK_ENTRIES
    end = min(queue_offset + _LOOK_AHEAD_ENTRIES, queue.max_offset)
    for start in range(queue_offset, end, chunk_count):
        entries = queue.fields(start, min(chunk_count, end - start))
        if has_time is None:
            yield from entries
            continue
        for entry in entries:
            yield entry
            if not has_time():
                return
