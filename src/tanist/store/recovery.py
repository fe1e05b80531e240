"""Finds the true end of the log after a stop, clean or not.

Walks the records and checks each: size, magic, checksum, and the log offset it carries. The first
that fails is the end, if what lies behind it can be explained by a crash. If it can not, bytes that
were safely on disk have been damaged, and cutting there would lose messages in silence: the store
refuses to open and says where.
"""

import itertools
import logging
import math
from collections.abc import Generator
from dataclasses import dataclass

from tanist.errors import CorruptRecord, OffsetOutOfRange, RemoteProtocolError
from tanist.protocol.queue_entry import QueueEntry
from tanist.protocol.record import MAGIC_PREFIX, check_record, decode_record
from tanist.store.checkpoint import Checkpoint
from tanist.store.plain_records import pass_plain
from tanist.store.queues import Queues
from tanist.store.segment import Segment
from tanist.store.segments import Segments

_log = logging.getLogger(__name__)

_REPAIR = "restore the file from a replica, or accept the loss of all behind it with `tanist store repair`"
_CHECKS_A_TURN = 256


@dataclass(frozen=True, slots=True)
class LogScan:
    """What a walk over the log found."""

    start: int
    """Where the walk began: everything before it was trusted."""
    end: int
    """One past the last sound record: where the log goes on."""
    last_timestamp_ms: int
    """The store time of the last sound record that was walked over, 0 if there was none."""
    reason: str
    """Why the walk ended there."""
    is_closed_end: bool = False
    """Whether the log was closed at this end, so that nothing lies behind it."""


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """What a walk over one file found."""

    end: int
    """Where the walk stopped: the file's end, or the first byte that is no sound record."""
    record_count: int
    last_record: int | None
    reason: str


def scan(segments: Segments, start: int, *, flushed_to: float) -> LogScan:
    """Walk and check the records from ``start``, which must be the start of one, to the first that fails.

    Those before ``flushed_to`` were on disk whole.
    """
    position, last, reason = start, None, "the log is empty"
    for segment in segments:
        if segment.end <= start:
            continue
        if position != max(segment.start, start):
            break
        found = scan_segment(segment, position, flushed_to=flushed_to)
        position, reason = found.end, found.reason
        last = found.last_record if found.last_record is not None else last
    timestamp_ms = _store_timestamp_ms(segments, last) if last is not None else 0
    return LogScan(start, position, timestamp_ms, reason)


def scan_segment(segment: Segment, log_offset: int, *, flushed_to: float) -> SegmentScan:
    """Walk and check the records of one file from an offset on."""
    view, base = segment.view, segment.start
    position, last, count = log_offset - base, None, 0
    try:
        while position < segment.size_bytes:
            at = base + position
            size = check_record(view, position, log_offset=at, is_flushed=at < flushed_to)
            if size == 0:
                return SegmentScan(segment.end, count, last, "a blank fills the last file")
            last = at
            position += size
            count += 1
    except RemoteProtocolError as error:
        return SegmentScan(base + position, count, last, str(error))
    return SegmentScan(segment.end, count, last, "the last file is full")


def whole_to(segments: Segments, start: int, end: int) -> int:
    """Where the last whole record before ``end`` ends; one begins at ``start``.

    What came over a link was checked there: so checksums are not looked at again.
    """
    position = start
    while position < end:
        segment = segments.at(position)
        behind, _ = pass_plain(segment, position, end)
        if behind == position:
            behind = _whole_behind(segment, position)
            if behind is None or behind > end:
                break
        position = behind
    return position


def sound_in_turns(segments: Segments, start: int, end: int) -> Generator[int]:
    """The same, but each record is checked whole. A place at a time, for who has others to serve: the last
    one is where the last sound record ends.
    """
    position = start
    for number in itertools.count(1):
        behind = _whole_behind(segments.at(position), position) if position < end else None
        if behind is None or behind > end:
            break
        position = behind
        if number % _CHECKS_A_TURN == 0:
            yield position
    yield position


def _whole_behind(segment: Segment, log_offset: int) -> int | None:
    """Where the record or blank ends that begins here; None if it is none."""
    try:
        size = check_record(segment.view, log_offset - segment.start, log_offset=log_offset, is_flushed=True)
    except RemoteProtocolError:
        return None
    return log_offset + size if size else segment.end


def trusted_to(segments: Segments, queues: Queues, checkpoint: Checkpoint, *, was_closed: bool) -> int:
    """Up to where log and indexes are taken as they are: a record begins there."""
    if not len(queues):
        # Nothing is indexed: perhaps somebody deleted the queues so that they are built again.
        return segments.start
    if checkpoint.indexed_to is not None and checkpoint.queue_total is not None:
        found = queues.total_before(checkpoint.indexed_to)
        if found != checkpoint.queue_total:
            # Who trusted them would give the same offsets to other messages.
            _log.warning("queues have lost entries expected=%d found=%s", checkpoint.queue_total, found)
            return segments.start
    if was_closed:
        start = _start_after_close(segments, queues.indexed_to)
    else:
        start = _start_after_crash(segments, checkpoint)
    while (suspect := _lowest_suspect(segments, queues, start)) is not None:
        start = segments.at(suspect).start
        _log.warning("queue points at no message of its own log_offset=%d checked_from=%d", suspect, start)
    return start


def flushed_to(checkpoint: Checkpoint, *, was_closed: bool) -> float:
    """Up to where the log was on disk whole: closing a store flushes everything."""
    if was_closed:
        return math.inf
    return checkpoint.flushed_to or 0


def flushed_ms(checkpoint: Checkpoint, *, was_closed: bool) -> float:
    """The store time before which the log was on disk whole, for when no offset tells."""
    return math.inf if was_closed else checkpoint.log_timestamp_ms


def _start_after_crash(segments: Segments, checkpoint: Checkpoint) -> int:
    """Where to begin after a crash: at the checkpoint's offset, if it has one.

    RocketMQ's has none: then with the last file whose first record is older than its time.
    """
    if checkpoint.indexed_to is not None and segments.start <= checkpoint.indexed_to <= segments.end:
        return checkpoint.indexed_to
    for segment in reversed(list(segments)):
        timestamp_ms = _first_timestamp_ms(segment)
        if timestamp_ms is not None and 0 < timestamp_ms <= checkpoint.recover_from_ms:
            return segment.start
    return segments.start


def _start_after_close(segments: Segments, indexed_to: int) -> int:
    """Where to begin after a clean stop: at the end of what the indexes know, which was all there was."""
    return indexed_to if segments.start <= indexed_to <= segments.end else segments.start


def check_cut(segments: Segments, found: LogScan, *, flushed_to: int | None, flushed_ms: float) -> None:
    """Refuse to cut at ``found.end`` if a crash can not explain it.

    ``flushed_to`` is up to where the log was on disk for sure. Where that is not known, because
    RocketMQ wrote the checkpoint, ``flushed_ms`` is the store time before which it was: a sound
    record behind the bad one that is older than that shows that the bad one was on disk too.
    """
    survivor = _record_behind(segments, found.end)
    if flushed_to is not None:
        is_damage = found.end < flushed_to
    else:
        is_damage = survivor is not None and _store_timestamp_ms(segments, survivor) < flushed_ms
    if is_damage and not len(segments):
        raise CorruptRecord(segments.directory, found.end, f"the folder is empty; {_REPAIR}")
    if is_damage:
        segment = segments.at(found.end) if found.end < segments.end else segments[-1]
        raise CorruptRecord(segment.path, found.end - segment.start, f"{found.reason}; {_REPAIR}")
    if survivor is not None:
        _log.warning("unfinished records are cut log_end=%d first_sound_behind=%d", found.end, survivor)


def _lowest_suspect(segments: Segments, queues: Queues, end: int) -> int | None:
    """Where a queue's last message before ``end`` should be and is not; None if all are sound.

    Either the log is damaged there, or the queue is: RocketMQ leaves entries behind when it cuts a
    queue, and they then point at other queues' messages.
    """
    suspects: list[int] = []
    for (topic, queue_id), queue in queues:
        queue_offset = queue.last_before(end)
        if queue_offset is None:
            continue
        entry = queue.entry(queue_offset)
        is_kept = entry.log_offset >= segments.start
        if is_kept and not points_at(
            segments, entry, topic=topic, queue_id=queue_id, queue_offset=queue_offset
        ):
            suspects.append(entry.log_offset)
    return min(suspects, default=None)


def points_at(segments: Segments, entry: QueueEntry, *, topic: str, queue_id: int, queue_offset: int) -> bool:
    """Whether a queue's entry points at a sound message of that queue and with that offset."""
    if entry.is_filler:
        return True
    try:
        segment = segments.at(entry.log_offset)
        position = entry.log_offset - segment.start
        check_record(segment.view, position, log_offset=entry.log_offset, is_flushed=True)
        record = decode_record(segment.view, position)
    except (RemoteProtocolError, OffsetOutOfRange):
        return False
    found = (record.topic, record.queue_id, record.queue_offset, record.size_bytes)
    return found == (topic, queue_id, queue_offset, entry.size_bytes)


def _record_behind(segments: Segments, log_offset: int) -> int | None:
    """The first sound record behind a bad one, found by its magic."""
    for segment in segments:
        if segment.end <= log_offset:
            continue
        position = max(log_offset - segment.start, 0)
        while (found := segment.find(MAGIC_PREFIX, position)) >= 0:
            start = found - 4
            try:
                if start >= 0 and check_record(segment.view, start, log_offset=segment.start + start):
                    return segment.start + start
            except RemoteProtocolError:
                pass
            position = found + 1
    return None


def _first_timestamp_ms(segment: Segment) -> int | None:
    try:
        if check_record(segment.view, 0, log_offset=segment.start, is_flushed=True):
            return decode_record(segment.view, 0).store_timestamp_ms
    except RemoteProtocolError:
        pass
    return None


def _store_timestamp_ms(segments: Segments, log_offset: int) -> int:
    segment = segments.at(log_offset)
    return decode_record(segment.view, log_offset - segment.start).store_timestamp_ms
