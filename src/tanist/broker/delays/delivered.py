"""Finds what was delivered before the last stop although nobody had written that down.

Progress is saved now and then; the deliveries since then lie in the log. A message that was due before
the log's last record was written may be among them, so its copy is looked for: of the same id, birth,
retries, body and delay. A producer may have sent several such messages, which come in their order: then
as many copies must be there as messages up to this one.
"""

import logging

from tanist.model.message import Message
from tanist.model.property_names import DELAY, REAL_QID, REAL_TOPIC, TIMER_OUT_MS, TIMER_ROLL_TIMES, UNIQ_KEY
from tanist.model.topics import TIMER_TOPIC
from tanist.protocol.properties import find_property
from tanist.protocol.record import Record
from tanist.store import MessageStore

_log = logging.getLogger(__name__)

_CLOCK_SLACK_MS = 60_000
"""How far the clock may have been set back before the last record."""
_MAX_FOUND = 1024
"""How many messages of one id are looked at. One that is sent more often may come twice."""
_SAME_PROPERTIES = (DELAY, TIMER_OUT_MS, REAL_TOPIC, REAL_QID)


class EarlierDeliveries:
    """What the log held when the store was opened."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._log_end = store.log.log_end
        self._last_ms = store.last_timestamp_ms + _CLOCK_SLACK_MS

    def has(self, source: Record, copy: Message, due_ms: int) -> bool:
        """Whether ``copy``, which ``source`` would become, was delivered before."""
        if source.log_offset >= self._log_end or due_ms > self._last_ms:
            return False
        if find_property(bytes(source.properties), UNIQ_KEY) is None:
            _log.warning("message may be delivered twice: it has no id log_offset=%d", source.log_offset)
            return False
        copies = [found for found in self._alike(copy.topic, source) if found.queue_id == copy.queue_id]
        if not copies:
            return False
        rolls = _roll_count(source)
        before = [
            found
            for found in self._alike(source.topic, source)
            if found.log_offset < source.log_offset and _roll_count(found) == rolls
        ]
        return len(copies) > len(before)

    def is_rolled(self, source: Record) -> bool:
        """Whether RocketMQ has put a timer message into the queue again, as it does with long ones."""
        if source.log_offset >= self._log_end:
            return False
        rolls = _roll_count(source)
        return any(_roll_count(found) > rolls for found in self._alike(TIMER_TOPIC, source))

    def _alike(self, topic: str, source: Record) -> list[Record]:
        """The messages of a topic that are the same but for where they lie."""
        properties = bytes(source.properties)
        unique_key = find_property(properties, UNIQ_KEY)
        if unique_key is None:
            return []
        delay = [find_property(properties, name) for name in _SAME_PROPERTIES]
        found = self._store.find_by_key(topic, unique_key.decode("utf-8", "replace"), max_count=_MAX_FOUND)
        return [
            record
            for record in found
            if record.log_offset < self._log_end
            and record.born_timestamp_ms == source.born_timestamp_ms
            and record.born_host == source.born_host
            and record.reconsume_times == source.reconsume_times
            and record.body_crc == source.body_crc
            and [find_property(bytes(record.properties), name) for name in _SAME_PROPERTIES] == delay
        ]


def _roll_count(record: Record) -> int:
    value = find_property(bytes(record.properties), TIMER_ROLL_TIMES)
    return int(value) if value is not None and value.isdigit() else 0
