"""Reads what is known of transactions out of the store: halves, and notes of those that are done with."""

import logging
from collections.abc import Iterator

from tanist.broker.queue_look import queue_bounds
from tanist.broker.transactions.halves import HALF_QUEUE_ID, Half
from tanist.broker.transactions.open_transactions import HalfPlace
from tanist.errors import RemoteProtocolError
from tanist.model.message import TRANSACTION_MASK, SysFlag
from tanist.model.offsets import QueueOffset
from tanist.model.topics import HALF_OP_TOPIC, HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.record import Record
from tanist.store import MessageStore

_log = logging.getLogger(__name__)

_READ_COUNT = 128


class HalfQueue:
    """The half topic of one store, and the op topic beside it."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    @property
    def bounds(self) -> tuple[QueueOffset, QueueOffset]:
        return queue_bounds(self._store, HALF_TOPIC, HALF_QUEUE_ID)

    @property
    def note_bounds(self) -> tuple[QueueOffset, QueueOffset]:
        return queue_bounds(self._store, HALF_OP_TOPIC, HALF_QUEUE_ID)

    def read(self, queue_offset: int) -> list[Half]:
        """The next halves from an offset on; none if the queue has no more."""
        return [Half(record) for record in self._records(HALF_TOPIC, queue_offset, _READ_COUNT)]

    def find(self, queue_offset: int) -> Half | None:
        """The half at an offset; None if the log has deleted it."""
        low, high = self.bounds
        if not low <= queue_offset < high:
            return None
        records = self._records(HALF_TOPIC, queue_offset, 1)
        return Half(records[0]) if records and records[0].queue_offset == queue_offset else None

    def at(self, log_offset: int) -> Half | None:
        """The half that lies at a log offset; None if none does.

        A body may look like a record to whoever names an offset within it. The queue knows better.
        """
        record = self._store.record_at(log_offset)
        if record is None or record.topic != HALF_TOPIC:
            return None
        return Half(record) if self._log_offset(record.queue_offset) == log_offset else None

    def place(self, half: Half) -> HalfPlace:
        """Which transaction a half is of, and where it stands in the queue."""
        origin = half.origin
        first = half.first_queue_offset
        if first is not None and origin == half.record.log_offset:
            # RocketMQ names the first half by its place in the queue.
            origin = self._log_offset(first) or origin
        return HalfPlace(origin, half.record.queue_offset)

    def notes(self, queue_offset: int) -> Iterator[Record]:
        """All notes from an offset of the op topic on."""
        end = self.note_bounds[1]
        while queue_offset < end:
            records = self._records(HALF_OP_TOPIC, queue_offset, _READ_COUNT)
            if not records:
                return
            yield from records
            queue_offset = records[-1].queue_offset + 1

    def is_committed(self, origin: int, *, topic: str, unique_id: str) -> bool:
        """Whether the message of a transaction was written: it tells where the half of it lies.

        A delayed one waits elsewhere first and stays there when it is delivered. That its topic was deleted
        since makes no difference.
        """
        for record in (
            record
            for place in (topic, SCHEDULE_TOPIC, TIMER_TOPIC)
            for record in self._store.find_by_key(place, unique_id, has_deleted=True)
        ):
            if record.sys_flag & TRANSACTION_MASK == SysFlag.COMMIT:
                half = self.at(record.prepared_transaction_offset)
                if half is not None and self.place(half).origin == origin:
                    return True
        return False

    def _records(self, topic: str, queue_offset: int, max_count: int) -> list[Record]:
        """The next messages of a queue. What can not be read is told of and passed over."""
        end = queue_bounds(self._store, topic, HALF_QUEUE_ID)[1]
        while queue_offset < end:
            try:
                return self._store.records(topic, HALF_QUEUE_ID, queue_offset, max_count)
            except RemoteProtocolError as error:
                if max_count == 1:
                    _log.error(
                        "message of a transaction can not be read topic=%s queue_offset=%d reason=%s",
                        *(topic, queue_offset, error),
                    )
                    queue_offset += 1
                # All up to the one that can not be read, one by one, and then what is behind it.
                max_count = 1
        return []

    def _log_offset(self, queue_offset: int) -> int | None:
        low, high = self.bounds
        queue = self._store.queues.find(HALF_TOPIC, HALF_QUEUE_ID)
        if queue is None or not low <= queue_offset < high:
            return None
        return queue.entry(queue_offset).log_offset
