"""Finds messages: by queue offset, by key, by time. Records come back as views of the log."""

from collections.abc import Iterator
from itertools import islice

from tanist.errors import RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.protocol.record import MIN_RECORD_BYTES, Record, decode_record, record_store_time
from tanist.protocol.tags import index_keys
from tanist.store.commitlog import CommitLog
from tanist.store.deletions import Deletions
from tanist.store.key_index import KeyIndex
from tanist.store.queues import Queues
from tanist.store.time_lookup import Boundary, offset_at_time

MAX_TIMESTAMP_MS = (1 << 63) - 1


class Lookup:
    """Reads one store's log through its indexes."""

    def __init__(self, log: CommitLog, queues: Queues, index: KeyIndex, deletions: Deletions) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._deletions = deletions

    def records(self, topic: str, queue_id: int, queue_offset: int, max_count: int) -> list[Record]:
        """The messages of a queue from an offset on. Fillers are passed over."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return []
        entries = queue.entries(queue_offset, max_count)
        while entries and all(entry.is_filler for entry in entries):
            queue_offset += len(entries)
            entries = queue.entries(queue_offset, max_count)
        return [
            decode_record(self._log.read(entry.log_offset, entry.size_bytes))
            for entry in entries
            if not entry.is_filler
        ]

    def record_at(self, log_offset: int) -> Record | None:
        """The record that begins at a log offset; None if none does (any more).

        RocketMQ does not take cut messages out of its index, and clients may ask for any offset.
        """
        if not self._log.log_start <= log_offset < self._log.log_end:
            return None
        try:
            record = decode_record(self._ahead(log_offset))
        except RemoteProtocolError:
            return None
        return record if record.log_offset == log_offset else None

    def find_by_key(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = MAX_TIMESTAMP_MS,
        max_count: int = 64,
        has_deleted: bool = False,
    ) -> list[Record]:
        """The newest messages of a topic that carry a key (or have it as unique id), newest first.

        With ``has_deleted`` also those that went with their topic, as long as the log holds them.
        """
        found = self.walk_key(topic, key, begin_ms=begin_ms, end_ms=end_ms, has_deleted=has_deleted)
        return list(islice((record for record in found if record is not None), max_count))

    def walk_key(
        self, topic: str, key: str, *, begin_ms: int, end_ms: int, has_deleted: bool = False
    ) -> Iterator[Record | None]:
        """All messages of a topic that carry a key, newest first, and None for each that was passed over.

        There may be millions to pass over, so whoever has others to serve rests on the way. A record is
        not to be kept over a rest: the file it lies in may go.
        """
        log_start = self._log.log_start
        first_kept = log_start if has_deleted else self._deletions.first_kept(topic, log_start)
        last_offset = -1
        for log_offset in self._index.find(topic, key, begin_ms, end_ms):
            if log_offset is not None and log_offset < first_kept:
                # The newest come first, so behind a deleted one there are only deleted ones.
                return
            # A message that has the key twice stands twice in a row.
            if log_offset is None or log_offset == last_offset:
                yield None
                continue
            last_offset = log_offset
            record = self.record_at(log_offset)
            # Only hashes are indexed: the message itself says whether it is meant.
            is_meant = (
                record is not None
                and begin_ms <= record.store_timestamp_ms <= end_ms
                and record.topic == topic
                and key in index_keys(record.properties)
            )
            yield record if is_meant else None

    def offset_at_time(self, topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary) -> QueueOffset:
        """The queue offset that belongs to a time; 0 for a queue that is not there.

        It looks at one entry and the first bytes of one record a step, and each step halves what is left.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return QueueOffset(0)

        def time_of(queue_offset: int) -> int:
            log_offset = queue.entry(queue_offset).log_offset
            return record_store_time(self._log.read_ahead(log_offset, MIN_RECORD_BYTES))

        return offset_at_time(
            time_of, timestamp_ms, min_offset=queue.min_offset, max_offset=queue.max_offset, boundary=boundary
        )

    def _ahead(self, log_offset: int) -> memoryview:
        return self._log.read_ahead(log_offset, self._log.segments.size_bytes)
