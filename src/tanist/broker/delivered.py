"""Finds what was delivered before the last stop although nobody wrote that down any more.

Progress is saved now and then; the deliveries since then lie in the log. A message that was due before
the log's last record was written may be among them, so its copy is looked for: same queue, unique id,
birth, retries and body. A copy counts for one message only, in case a producer sent two such messages.
"""

import logging

from tanist.model.message import Message
from tanist.model.property_names import REAL_TOPIC, TIMER_ROLL_TIMES, UNIQ_KEY
from tanist.model.topics import TIMER_TOPIC
from tanist.protocol.properties import find_property
from tanist.protocol.record import Record
from tanist.store import MessageStore

_log = logging.getLogger(__name__)

_CLOCK_SLACK_MS = 60_000
"""How far the clock may have been set back before the last record."""


class EarlierDeliveries:
    """What the log held when the store was opened."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._log_end = store.log.log_end
        self._last_ms = store.last_timestamp_ms + _CLOCK_SLACK_MS
        self._claimed: set[int] = set()

    def has(self, source: Record, copy: Message, due_ms: int) -> bool:
        """Whether ``copy``, which ``source`` would become, was delivered before."""
        if source.log_offset >= self._log_end or due_ms > self._last_ms:
            return False
        if find_property(bytes(source.properties), UNIQ_KEY) is None:
            _log.warning("message may be delivered twice: it has no id log_offset=%d", source.log_offset)
        for found in self._same_id(copy.topic, source):
            is_copy = (
                found.queue_id == copy.queue_id
                and _is_same(found, source)
                and find_property(bytes(found.properties), REAL_TOPIC) is not None
            )
            if is_copy and found.log_offset not in self._claimed:
                self._claimed.add(found.log_offset)
                return True
        return False

    def is_rolled(self, source: Record) -> bool:
        """Whether RocketMQ has put a timer message into the queue again, as it does with long ones."""
        if source.log_offset >= self._log_end:
            return False
        count = _roll_count(source)
        return any(
            _is_same(found, source) and _roll_count(found) > count
            for found in self._same_id(TIMER_TOPIC, source)
        )

    def _same_id(self, topic: str, source: Record) -> list[Record]:
        """The messages of a topic with the same unique id that came later."""
        unique_key = find_property(bytes(source.properties), UNIQ_KEY)
        if unique_key is None:
            return []
        key = unique_key.decode("utf-8", "replace")
        found = self._store.find_by_key(topic, key, begin_ms=source.store_timestamp_ms)
        return [record for record in found if source.log_offset < record.log_offset < self._log_end]


def _is_same(one: Record, other: Record) -> bool:
    """Whether two records are of the same message."""
    return (
        one.born_timestamp_ms == other.born_timestamp_ms
        and one.born_host == other.born_host
        and one.reconsume_times == other.reconsume_times
        and one.body_crc == other.body_crc
        and len(one.body) == len(other.body)
    )


def _roll_count(record: Record) -> int:
    value = find_property(bytes(record.properties), TIMER_ROLL_TIMES)
    return int(value) if value is not None and value.isdigit() else 0
