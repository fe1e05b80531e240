"""Reads the messages of one queue by its consume queue: only what the queue points at is read of the log."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tanist.errors import RemoteProtocolError
from tanist.protocol.queue_entry import ENTRY_BYTES, FILLER_SIZE
from tanist.protocol.record import check_record
from tanist.spark.arrow import Booleans, Bytes, Integers
from tanist.spark.commitlog.walking import WINDOW_BYTES, checked
from tanist.spark.decoding import Located, locate
from tanist.spark.making import Broken

_ENTRIES_AT_ONCE = 8192
_GAP_BYTES = 16 << 10
"""Messages with less than this between them are read in one go: to pass over it would cost more."""

_ENTRY = np.dtype([("log_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])

ReadLog = Callable[[int, int], Bytes]
"""Reads so many bytes of the log from a log offset on, all in one file; fewer where that file ends."""


@dataclass(frozen=True, slots=True)
class QueueRange:
    """The messages ``[first, end)`` of one queue."""

    directory: str
    file_bytes: int
    segment_bytes: int
    """What a file of the log holds: no read crosses from one to the next."""
    topic: str
    queue_id: int
    first: int
    end: int
    about_bytes: int
    """What they take in the log, as far as a look at some of them tells."""


@dataclass(frozen=True, slots=True)
class _Entries:
    queue_offsets: Integers
    log_offsets: Integers
    sizes: Integers

    def __len__(self) -> int:
        return len(self.log_offsets)

    def take(self, rows: Booleans | slice) -> "_Entries":
        return _Entries(self.queue_offsets[rows], self.log_offsets[rows], self.sizes[rows])


ReadQueue = Callable[[int, int], bytes]
"""Reads so many bytes of the queue from a position in it on, over the ends of its files."""


def read_queue(
    read_entries: ReadQueue, read_log: ReadLog, span: QueueRange, *, checks_bodies: bool
) -> Iterator[Located | Broken]:
    """The messages of a range, thousands at a time, and what is broken among them."""
    for first in range(span.first, span.end, _ENTRIES_AT_ONCE):
        count = min(_ENTRIES_AT_ONCE, span.end - first)
        entries = _decode(read_entries(first * ENTRY_BYTES, count * ENTRY_BYTES), first)
        while len(entries):
            fitting, bounds = _fitting(entries, span.segment_bytes)
            yield from _read(
                read_log, entries.take(slice(0, fitting)), bounds, span, checks_bodies=checks_bodies
            )
            entries = entries.take(slice(fitting, None))


def _decode(data: bytes, first: int) -> _Entries:
    """The entries that stand for a message; fillers do not."""
    found = np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], _ENTRY)
    entries = _Entries(
        np.arange(first, first + len(found)),
        found["log_offset"].astype(np.int64),
        found["size"].astype(np.int64),
    )
    return entries.take((entries.sizes > 0) & (entries.sizes != FILLER_SIZE))


def _fitting(entries: _Entries, segment_bytes: int) -> tuple[int, list[tuple[int, int]]]:
    """How many of the entries are read at once, and which rows of them lie close together in the log."""
    ends = entries.log_offsets + entries.sizes
    gaps = np.append(np.zeros(1, np.int64), entries.log_offsets[1:] - ends[:-1])
    # Entries that go back, or point into the one before, are not of one piece with it.
    is_apart = (gaps < 0) | (gaps > _GAP_BYTES)
    is_apart[1:] |= np.diff(entries.log_offsets // segment_bytes) != 0
    taken = np.cumsum(np.where(is_apart, entries.sizes, gaps + entries.sizes))
    fitting = max(1, int(np.searchsorted(taken, WINDOW_BYTES, side="right")))
    cuts = [0, *(row for row in np.flatnonzero(is_apart).tolist() if 0 < row < fitting), fitting]
    return fitting, list(pairwise(cuts))


def _read(
    read_log: ReadLog,
    entries: _Entries,
    bounds: list[tuple[int, int]],
    span: QueueRange,
    *,
    checks_bodies: bool,
) -> Iterator[Located | Broken]:
    """Read what these entries point at into one buffer, and look at it there."""
    parts: list[Bytes] = []
    starts = np.empty(len(entries), np.int64)
    is_there = np.ones(len(entries), np.bool_)
    filled = 0
    for first, end in bounds:
        start = int(entries.log_offsets[first])
        size = int(entries.log_offsets[end - 1] + entries.sizes[end - 1]) - start
        part = read_log(start, size)
        parts.append(part.copy())
        places = entries.log_offsets[first:end] - start
        starts[first:end] = filled + places
        is_there[first:end] = places + entries.sizes[first:end] <= len(part)
        filled += len(part)
    raw = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    rows = np.flatnonzero(is_there & _are_whole(raw, starts, entries.sizes, is_there))
    located, is_sound = locate(raw, starts[rows], entries.log_offsets[rows])
    is_ours = is_sound & (located.queue_ids == span.queue_id)
    is_ours &= located.queue_offsets == entries.queue_offsets[rows]
    wrong = np.ones(len(entries), np.bool_)
    wrong[rows[is_ours]] = False
    for row in np.flatnonzero(wrong).tolist():
        yield _broken(read_log, entries, row, span)
    yield from checked(located.take(is_ours), checks_bodies=checks_bodies)


def _are_whole(raw: Bytes, starts: Integers, sizes: Integers, is_there: Booleans) -> Booleans:
    """Where a record of the size stands that the entry tells."""
    found = np.zeros(len(starts), np.bool_)
    rows = np.flatnonzero(is_there)
    view = np.ndarray((max(len(raw) - 3, 0),), ">i4", buffer=raw, strides=(1,))
    found[rows] = view[starts[rows]] == sizes[rows]
    return found


def _broken(read_log: ReadLog, entries: _Entries, row: int, span: QueueRange) -> Broken:
    log_offset, size = int(entries.log_offsets[row]), int(entries.sizes[row])
    offset = int(entries.queue_offsets[row])
    reason = f"queue {span.topic}/{span.queue_id} offset {offset} points here, where no such message is"
    try:
        check_record(read_log(log_offset, size).data, 0, log_offset=log_offset, is_flushed=True)
    except RemoteProtocolError as error:
        reason += f": {error}"
    return Broken(log_offset, size, reason)
