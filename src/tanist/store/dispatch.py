"""Builds the indexes from the log: consume queues first, then the key index.

Dispatch follows the log and never leads it: it can be run again over the same records, and what is
there already is left alone. Records are taken in batches: each queue is told once a batch what is new.
What this process appended itself is indexed from what it knows, without reading the log again. What
others appended, as a slave has it from its master, is read by ``_native`` where that could be built: it
takes plain records in one walk and stops before any other, which is then read here.

Under a controller it stops where the log is confirmed. What is in no index no consumer sees, and neither do
delays and transactions: so a message that was seen is on every replica that may become master.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from tanist.errors import CorruptRecord, LocalProtocolError, RemoteProtocolError
from tanist.model.delay_levels import due_ms
from tanist.model.message import Appended, is_keyed, is_queued
from tanist.model.offsets import LogOffset
from tanist.model.property_names import DELAY
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.protocol.compiled import native
from tanist.protocol.properties import find_property
from tanist.protocol.queue_entry import ENTRY_BYTES, encode_entry
from tanist.protocol.record import BLANK_BYTES, MAGIC_BLANK, Record, decode_record, peek_record
from tanist.protocol.tags import find_tag, index_keys, tags_code
from tanist.store.commitlog import CommitLog
from tanist.store.key_index import KeyIndex
from tanist.store.queues import Queues, check_topic_name
from tanist.store.segment import Segment

if TYPE_CHECKING:
    from tanist.protocol._native import Walked

_log = logging.getLogger(__name__)

BATCH_RECORDS = 1024
"""So many records are indexed together."""
_STEP_RECORDS = BATCH_RECORDS if native is not None else 128
"""What takes about a millisecond."""
_MAX_DUE_MS = (1 << 63) - 1
"""What an entry has room for: whoever wrote the log may have had a clock from nowhere."""


class Dispatcher:
    """Everything before ``dispatched_to`` is in the indexes."""

    def __init__(
        self, log: CommitLog, queues: Queues, index: KeyIndex, *, delay_levels: tuple[int, ...]
    ) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._delay_levels = delay_levels
        self._runs: dict[tuple[str, int], _QueueRun] = {}
        self._fresh: list[tuple[tuple[str, int], Appended]] = []
        self.dispatched_to = log.log_start
        self.confirmed_to: int | None = None
        """Nothing behind this is indexed yet, so that consumers do not see it; None: all may be."""
        self._taken_ms = 0
        self.last_timestamp_ms = 0
        """The store time of the last record dispatched."""
        self.listeners: list[Callable[[str, int, int], None]] = []
        """Told that a queue has grown: its topic, its id, and one past its last offset."""

    def note(self, queue: tuple[str, int], place: Appended) -> None:
        """Take note of what was appended just now: the next run need not read it from the log."""
        # When a delayed message is due does not stand in it; such are read like those of others.
        if len(self._fresh) < BATCH_RECORDS and queue[0] != SCHEDULE_TOPIC:
            self._fresh.append((queue, place))

    def run(self, limit: int | None = None) -> int:
        """Index the records up to ``limit`` (the log's end if not said); how many there were.

        A record that is not whole yet, as a slave may have at its end, waits for its rest.
        """
        end = self._end if limit is None else min(limit, self._end)
        self.dispatched_to = max(self.dispatched_to, self._log.log_start)
        count = self._fresh_batch(end)
        while self.dispatched_to < end and (batch := self._batch(end, BATCH_RECORDS)):
            count += batch
        return count

    def step(self) -> bool:
        """Index as much as takes a millisecond or two; whether there is more.

        For who has others to serve: a slave that catches up has millions of records to index.
        """
        end = self._end
        self.dispatched_to = max(self.dispatched_to, self._log.log_start)
        self._fresh_batch(end)
        if self.dispatched_to >= end:
            return False
        return self._batch(end, _STEP_RECORDS) == _STEP_RECORDS and self.dispatched_to < end

    def rewind(self, log_offset: int) -> None:
        """Go on from an earlier offset, after the log was cut there."""
        self._fresh.clear()
        self.dispatched_to = LogOffset(min(self.dispatched_to, log_offset))
        if self.confirmed_to is not None:
            # What comes in the place of what was cut is not confirmed.
            self.confirmed_to = min(self.confirmed_to, log_offset)

    def next_offsets(self) -> dict[tuple[str, int], int]:
        """The offset of each queue's next message: the log may hold some behind what is indexed."""
        offsets = self._queues.next_offsets()
        position, log_end = max(self.dispatched_to, self._log.log_start), self._log.log_end
        while log_end - position >= BLANK_BYTES:
            segment = self._log.segments.at(position)
            # There may be many: all that came in while one replica was slow.
            walked = self._walk_plain(segment, position, log_end, BATCH_RECORDS)
            if walked is not None and walked[1]:
                for topic, queue_id, queue_offset, entries, _ in walked[2]:
                    next_offset = queue_offset + len(entries) // ENTRY_BYTES
                    offsets[topic, queue_id] = max(offsets.get((topic, queue_id), 0), next_offset)
                position = segment.start + walked[0]
                continue
            size, magic = peek_record(segment.view, position - segment.start)
            behind = segment.end if magic == MAGIC_BLANK else position + size
            if behind > log_end:
                break
            if magic != MAGIC_BLANK:
                record = _decode(segment, position - segment.start)
                if is_queued(record.sys_flag):
                    queue = (record.topic, record.queue_id)
                    offsets[queue] = max(offsets.get(queue, 0), record.queue_offset + 1)
            position = behind
        return offsets

    @property
    def confirmed_log_end(self) -> int | None:
        """Up to where the log that is here is confirmed; None: that is not asked."""
        return None if self.confirmed_to is None else min(self.confirmed_to, self._log.log_end)

    @property
    def is_behind(self) -> bool:
        """Whether something may be indexed that is not, as far as it is whole."""
        return self.dispatched_to < self._end

    @property
    def _end(self) -> int:
        """Up to where records may be indexed now."""
        confirmed_to = self.confirmed_log_end
        return self._log.log_end if confirmed_to is None else confirmed_to

    def _fresh_batch(self, end: int) -> int:
        """Index what was noted, as far as it follows what is indexed; how many records that were."""
        fresh, self._fresh = self._fresh, []
        position = int(self.dispatched_to)
        count = 0
        try:
            for number, (queue, place) in enumerate(fresh):
                behind = position + place.size_bytes
                # Where something lies between, such as the end of a file, the log has the last word.
                if place.log_offset != position:
                    break
                if behind > end:
                    # It is known until it is confirmed.
                    self._fresh = fresh[number:]
                    break
                entry_count = len(place.entries) // ENTRY_BYTES
                if entry_count:
                    self._run_at(queue, place.queue_offset).add(place.entries, behind)
                if place.keyed:
                    self._index.extend(place.keyed)
                self._taken_ms = place.store_timestamp_ms
                count += entry_count or 1
                position = behind
        finally:
            self._settle(position)
        return count

    def _batch(self, end: int, max_count: int) -> int:
        """Index one batch; how many records it had. 0: nothing more is there, or nothing whole."""
        position = int(self.dispatched_to)
        count = 0
        try:
            while count < max_count and end - position >= BLANK_BYTES:
                segment = self._log.segments.at(position)
                behind, taken = self._walk(segment, position, end, max_count - count)
                if not taken:
                    size, magic = peek_record(segment.view, position - segment.start)
                    behind = segment.end if magic == MAGIC_BLANK else position + size
                    if behind > end:
                        break
                    if magic != MAGIC_BLANK:
                        self._take(_decode(segment, position - segment.start))
                        taken = 1
                position = behind
                count += taken
        finally:
            # What was read before a bad record is indexed all the same.
            self._settle(position)
        return count

    def _walk(self, segment: Segment, log_offset: int, end: int, max_count: int) -> tuple[int, int]:
        """Take the plain records from an offset on, if that can be done in C; where they end, how many."""
        walked = self._walk_plain(segment, log_offset, end, max_count)
        if walked is None:
            return log_offset, 0
        stopped_at, count, runs, keyed, self._taken_ms = walked
        for topic, queue_id, queue_offset, entries, indexed_to in runs:
            self._run_at((topic, queue_id), queue_offset).add(entries, indexed_to)
        self._index.extend(keyed)
        return segment.start + stopped_at, count

    def _walk_plain(self, segment: Segment, log_offset: int, end: int, max_count: int) -> "Walked | None":
        """The plain records from an offset on, as C reads them; None if it can not, or there are none."""
        if native is None:
            return None
        start = segment.start
        return native.walk_records(
            segment.view, log_offset - start, end - start, start, max_count, self._delay_levels
        )

    def _take(self, record: Record) -> None:
        properties = bytes(record.properties)
        try:
            check_queue(record)
        except LocalProtocolError as error:
            _log.error("message is not indexed log_offset=%d reason=%s", record.log_offset, error)
            return
        if is_queued(record.sys_flag):
            entry = encode_entry(record.log_offset, record.size_bytes, self._tags_code(record, properties))
            run = self._run_at((record.topic, record.queue_id), record.queue_offset)
            run.add(entry, record.log_offset + record.size_bytes)
        if is_keyed(record.sys_flag):
            self._index.put(
                record.topic, index_keys(properties), record.log_offset, record.store_timestamp_ms
            )
        self._taken_ms = record.store_timestamp_ms

    def _run_at(self, queue: tuple[str, int], queue_offset: int) -> "_QueueRun":
        """The entries of a queue that are being gathered, if the next one is this; else new ones."""
        run = self._runs.get(queue)
        if run is None or run.next_offset != queue_offset:
            if run is not None:
                self._write_run(queue, run)
            run = self._runs[queue] = _QueueRun(queue_offset)
        return run

    def _tags_code(self, record: Record, properties: bytes) -> int:
        """The hash of the tag; for a delayed message the time at which it is due."""
        if record.topic == SCHEDULE_TOPIC:
            # Nine digits are more than there are levels, and any number of them may stand there.
            level = (find_property(properties, DELAY) or b"").lstrip(b"0")
            if level.isdigit():
                return min(due_ms(self._delay_levels, int(level[:9]), record.store_timestamp_ms), _MAX_DUE_MS)
        return tags_code(find_tag(properties))

    def _settle(self, position: int) -> None:
        """Write what was taken; only then it counts as indexed."""
        try:
            self._write_runs()
        finally:
            self._index.write_many()
        self.dispatched_to = LogOffset(position)
        self.last_timestamp_ms = self._taken_ms

    def _write_runs(self) -> None:
        # If the disk is full they are dropped here and read again: the log may be cut before there is room.
        runs, self._runs = self._runs, {}
        for key, run in runs.items():
            self._write_run(key, run)

    def _write_run(self, key: tuple[str, int], run: "_QueueRun") -> None:
        try:
            self._queues.append(*key, run.first_offset, run.data, run.indexed_to)
        except CorruptRecord as error:
            # One bad offset must not keep the whole store shut; the messages stay in the log.
            _log.error("messages are not queued before=%d reason=%s", run.indexed_to, error)
            return
        for listener in self.listeners:
            listener(*key, run.next_offset)


class _QueueRun:
    """Entries of one queue that follow each other, on their way to the disk."""

    __slots__ = ("data", "first_offset", "indexed_to", "next_offset")

    def __init__(self, queue_offset: int) -> None:
        self.first_offset = queue_offset
        self.next_offset = queue_offset
        self.data = bytearray()
        self.indexed_to = 0

    def add(self, entries: bytes, indexed_to: int) -> None:
        self.data += entries
        self.next_offset += len(entries) // ENTRY_BYTES
        self.indexed_to = indexed_to


def check_queue(record: Record) -> None:
    """Refuse a record that says a queue or an offset that there can not be."""
    check_topic_name(record.topic)
    if record.queue_id < 0 or record.queue_offset < 0:
        raise LocalProtocolError(f"queue {record.queue_id} can not have an offset {record.queue_offset}")


def _decode(segment: Segment, position: int) -> Record:
    try:
        record = decode_record(segment.view, position)
    except RemoteProtocolError as error:
        raise CorruptRecord(segment.path, position, str(error)) from error
    if record.log_offset != segment.start + position:
        raise CorruptRecord(
            segment.path, position, f"the record says it lies at log offset {record.log_offset}"
        )
    return record
