"""Decides on the driver what is read: which parts of which files, and in how many pieces.

A log is cut where a record begins for sure: at the start of a file, and where an entry of a consume queue
points. (To look for a magic would do almost always; but who sends a message decides what stands in its body.)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tanist.errors import MQError
from tanist.protocol.record import decode_record
from tanist.spark.commitlog.by_queue import QueueRange
from tanist.spark.commitlog.walking import FileRange
from tanist.spark.errors import SparkError, UnknownName
from tanist.spark.making import Origin
from tanist.spark.wanted import Wanted
from tanist.store.consume_queue import ConsumeQueue
from tanist.store.reader import StoreReader
from tanist.store.recovery import points_at
from tanist.store.segment import Segment
from tanist.store.time_lookup import Boundary, offset_at_time

MOST_PIECE_BYTES = 128 << 20
LEAST_PIECE_BYTES = 4 << 20
_PIECES = 16
"""So many pieces a log has at least, unless they would be smaller than that."""
_SAMPLED_ENTRIES = 1000
_QUEUES_ASKED = 8
"""Where to cut is asked of so many queues, those with the most messages."""

Span = FileRange | QueueRange
Piece = tuple[Span, ...]
"""What one task reads."""


@dataclass(frozen=True, slots=True)
class StorePlan:
    """What a read of a store comes to."""

    root: str
    segment_bytes: int
    pieces: list[Piece]
    deleted: dict[str, int]
    origin: Origin


def open_store(path: str) -> StoreReader:
    """Look at a store's files. One clear error if there is none, or a file of it is not whole."""
    root = Path(path.removeprefix("file://"))
    if not root.is_dir():
        raise SparkError(
            f"{root}: there is no such folder; name the one that holds commitlog and consumequeue"
        )
    return StoreReader(root)


def plan_store(
    path: str, wanted: Wanted, *, subscribed: tuple[str, ...] = (), min_pieces: int = 0
) -> StorePlan:
    """Decide what a read takes. ``subscribed`` are topics that have to be there."""
    with open_store(path) as reader:
        known = {topic for (topic, _), _ in reader.queues}
        for topic in subscribed:
            if topic not in known:
                raise UnknownName("topic", topic, known)
        if subscribed:
            wanted = wanted.of_topics(frozenset(subscribed))
        return _plan(reader, wanted, min_pieces)


def _plan(reader: StoreReader, wanted: Wanted, min_pieces: int) -> StorePlan:
    log_end = readable_end(reader)
    deleted = reader.deletions.places
    if wanted.topics is None or not len(reader.queues):
        spans: list[Span] = list(_walks(reader, reader.segments.start, log_end, wanted, min_pieces))
    else:
        # Entries that a running broker holds in memory are on no disk: what they point at is walked to.
        indexed_to = min(indexed_end(reader), log_end)
        spans = [*_queues(reader, indexed_to, wanted, min_pieces)]
        spans += _walks(reader, indexed_to, log_end, wanted, min_pieces)
    epochs = reader.epochs.epochs
    return StorePlan(
        str(reader.root),
        reader.segments.size_bytes,
        list(_together(spans, _piece_bytes(reader.segments.end - reader.segments.start, min_pieces))),
        dict(deleted),
        Origin(epochs=epochs),
    )


def readable_end(reader: StoreReader) -> int:
    """No record that ends behind this is read: it may yet be cut off the log, or is about to be."""
    end = reader.segments.end
    if reader.epochs.last is not None:
        end = min(end, max(reader.checkpoint.confirmed_to, reader.segments.start))
    return end if reader.truncate_to is None else min(end, reader.truncate_to)


def indexed_end(reader: StoreReader) -> int:
    """Up to where every message is in its queue, on disk; a record begins there."""
    known = reader.checkpoint.indexed_to
    if known is None or reader.was_closed:
        known = reader.queues.indexed_to
    return min(max(known, reader.segments.start), reader.segments.end)


def _piece_bytes(total_bytes: int, min_pieces: int) -> int:
    usual = max(LEAST_PIECE_BYTES, min(MOST_PIECE_BYTES, total_bytes // _PIECES))
    return max(1, min(usual, -(-total_bytes // min_pieces))) if min_pieces else usual


def _walks(
    reader: StoreReader, start: int, log_end: int, wanted: Wanted, min_pieces: int
) -> Iterator[FileRange]:
    """The log from ``start`` on, in ranges, without those that can hold nothing that is wanted."""
    if start >= log_end:
        return
    step = _piece_bytes(reader.segments.end - reader.segments.start, min_pieces)
    last = max((segment.start for segment in reader.segments if _is_begun(segment)), default=start)
    sound_to = reader.flushed_to
    cuts = [*_cuts(reader, start, min(log_end, last + reader.segments.size_bytes), step)]
    for cut, following in zip(cuts, [*cuts[1:], log_end], strict=True):
        segment = reader.segments.at(cut)
        span = FileRange(
            path=str(segment.path),
            file_start=segment.start,
            file_end=segment.end,
            start=cut,
            end=min(following, segment.end),
            log_end=log_end,
            sound_to=segment.end if sound_to > segment.end else int(sound_to),
            is_last=segment.start == last and cut == cuts[-1],
        )
        if _may_hold_wanted(reader, span, wanted):
            yield span


def _is_begun(segment: Segment) -> bool:
    return any(segment.view[:8])


def _cuts(reader: StoreReader, start: int, end: int, step: int) -> Iterator[int]:
    """Where a record begins: first at ``start``, then about every ``step`` bytes and wherever a file does."""
    queues = sorted(reader.queues, key=lambda one: one[1].min_offset - one[1].max_offset)[:_QUEUES_ASKED]
    for segment in reader.segments.between(start, end):
        cut = max(start, segment.start)
        yield cut
        for place in range(cut + step, min(end, segment.end), step):
            found = max((_record_before(reader, key, queue, place) for key, queue in queues), default=0)
            if found > cut:
                yield found
                cut = found


def _record_before(reader: StoreReader, key: tuple[str, int], queue: ConsumeQueue, place: int) -> int:
    """Where the last message of a queue before a place begins; 0 if it can not be told."""
    offset = queue.last_before(place)
    if offset is None or offset < queue.min_offset:
        return 0
    entry = queue.entry(offset)
    is_there = points_at(reader.segments, entry, topic=key[0], queue_id=key[1], queue_offset=offset)
    return entry.log_offset if is_there and not entry.is_filler else 0


def _may_hold_wanted(reader: StoreReader, span: FileRange, wanted: Wanted) -> bool:
    offsets = wanted.log_offsets
    if span.end <= offsets.least or span.start > offsets.most:
        return False
    times = wanted.store_times
    if times.is_all:
        return True
    first_ms = _store_ms(reader, span.start)
    next_ms = _store_ms(reader, span.end) if not span.is_last else None
    is_before = next_ms is not None and next_ms < times.least
    is_behind = first_ms is not None and first_ms > times.most
    return not is_before and not is_behind


def _store_ms(reader: StoreReader, log_offset: int) -> int | None:
    """When the record that begins here was stored; None if that can not be told."""
    try:
        segment = reader.segments.at(log_offset)
        return decode_record(segment.view, log_offset - segment.start).store_timestamp_ms
    except MQError:
        # Whatever is wrong there, the task that reads it will tell.
        return None


def _queues(reader: StoreReader, indexed_to: int, wanted: Wanted, min_pieces: int) -> Iterator[QueueRange]:
    """The parts of the wanted queues that are on disk, cut into pieces."""
    total = reader.segments.end - reader.segments.start
    for (topic, queue_id), queue in reader.queues:
        is_wanted = wanted.topics is None or topic in wanted.topics
        if not is_wanted or not (wanted.queue_ids is None or queue_id in wanted.queue_ids):
            continue
        first, end = _bounds_in(reader, queue, indexed_to, wanted)
        if first >= end:
            continue
        sample = min(_SAMPLED_ENTRIES, end - first)
        mean_bytes = max(1, queue.size_bytes(first, first + sample) // sample)
        step = max(1, _piece_bytes(total, min_pieces) // mean_bytes)
        directory = str(reader.root / "consumequeue" / topic / str(queue_id))
        for begin in range(first, end, step):
            stop = min(begin + step, end)
            yield QueueRange(
                directory=directory,
                file_bytes=reader.queues.file_bytes,
                segment_bytes=reader.segments.size_bytes,
                topic=topic,
                queue_id=queue_id,
                first=begin,
                end=stop,
                about_bytes=(stop - begin) * mean_bytes,
            )


def _bounds_in(reader: StoreReader, queue: ConsumeQueue, indexed_to: int, wanted: Wanted) -> tuple[int, int]:
    """The offsets ``[first, end)`` of a queue outside of which it has nothing that is wanted."""
    places = wanted.log_offsets
    before = queue.last_before(places.least) if places.least > reader.segments.start else None
    last = queue.last_before(min(indexed_to, places.most + 1))
    first = max(queue.min_offset, wanted.queue_offsets.least, 0 if before is None else before + 1)
    end = min(-1 if last is None else last, wanted.queue_offsets.most) + 1
    times = wanted.store_times
    if first >= end or times.is_all:
        return first, end

    def time_of(offset: int) -> int:
        entry = queue.entry(offset)
        found = None if entry.is_filler else _store_ms(reader, entry.log_offset)
        if found is None:
            raise _TimeUnknown
        return found

    try:
        return (
            offset_at_time(time_of, times.least, min_offset=first, max_offset=end, boundary=Boundary.LOWER),
            offset_at_time(
                time_of, times.most + 1, min_offset=first, max_offset=end, boundary=Boundary.LOWER
            ),
        )
    except _TimeUnknown:
        # Where a search meets an entry without a message nothing is left out: the tasks look at all of it.
        return first, end


class _TimeUnknown(Exception):
    """When an entry's message was stored can not be told."""


def _together(spans: list[Span], piece_bytes: int) -> Iterator[Piece]:
    """Small ranges of one kind make one piece: a task costs more than to read a few messages."""
    piece: list[Span] = []
    filled = 0
    for span in spans:
        size = span.about_bytes
        if piece and filled + size > piece_bytes:
            yield tuple(piece)
            piece, filled = [], 0
        piece.append(span)
        filled += size
    if piece:
        yield tuple(piece)
