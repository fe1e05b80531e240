"""Finds what was delivered before the last stop although nobody had written that down.

Progress is saved now and then; the deliveries since then lie in the log. A message that was due before
the log's last record was written may be among them, so its copy is looked for: of the same id, birth,
retries, body and delay. A producer may have sent several such messages, which come in their order: then
as many copies must be there as messages up to this one, and behind the first that has none no other has.

Its topic may have been deleted since: the copy lies in the log all the same, and must not come back.
"""

import logging
from typing import NamedTuple

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
"""How many messages of one id are looked at. With more nobody can tell, and they may come twice."""
_SAME_PROPERTIES = (UNIQ_KEY, DELAY, TIMER_OUT_MS, REAL_TOPIC, REAL_QID)


class _Likeness(NamedTuple):
    """What a message and its copy have in common."""

    born_timestamp_ms: int
    born_host: bytes
    reconsume_times: int
    body_crc: int
    properties: tuple[bytes | None, ...]


class EarlierDeliveries:
    """What the log held when the store was opened."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._log_end = store.log.log_end
        self._last_ms = store.last_timestamp_ms + _CLOCK_SLACK_MS
        # Those that are alike often come one behind the other: they are looked for once.
        self._last: tuple[str, int, _Likeness] | None = None
        self._left_count = 0
        """How many copies there are for the messages that come and are like the last."""
        self._last_timer: _Likeness | None = None
        self._most_rolls = 0
        self._untold_count = 0

    def has(self, source: Record, copy: Message, due_ms: int) -> bool:
        """Whether ``copy``, which ``source`` would become, was delivered before."""
        if source.log_offset >= self._log_end or due_ms > self._last_ms:
            return False
        like, rolls = _likeness(source), _roll_count(source)
        if (source.topic, rolls, like) != self._last:
            self._last = (source.topic, rolls, like)
            self._left_count = self._count_left(source, copy, like, rolls)
        if self._left_count <= 0:
            return False
        self._left_count -= 1
        return True

    def is_rolled(self, source: Record) -> bool:
        """Whether RocketMQ has put a timer message into the queue again, as it does with long ones."""
        if source.log_offset >= self._log_end:
            return False
        like = _likeness(source)
        if like != self._last_timer:
            self._last_timer = like
            found = self._alike(TIMER_TOPIC, like) or []
            self._most_rolls = max(map(_roll_count, found), default=0)
        return self._most_rolls > _roll_count(source)

    def tell(self) -> None:
        """Tell of the messages that could not be looked for, if there are new ones."""
        if self._untold_count:
            _log.warning(
                "messages may be delivered twice: they have no id, or too many have the same count=%d",
                self._untold_count,
            )
            self._untold_count = 0

    def _count_left(self, source: Record, copy: Message, like: _Likeness, rolls: int) -> int:
        """How many more copies there are than messages that come before this one."""
        found = self._alike(copy.topic, like)
        copies = [record for record in found or () if record.queue_id == copy.queue_id]
        waiting = self._alike(source.topic, like) if copies else []
        if found is None or waiting is None:
            self._untold_count += 1
            return 0
        before = [
            record
            for record in waiting
            if record.log_offset < source.log_offset and _roll_count(record) == rolls
        ]
        return len(copies) - len(before)

    def _alike(self, topic: str, like: _Likeness) -> list[Record] | None:
        """The messages of a topic that are the same but for where they lie; None if nobody can tell."""
        unique_key = like.properties[0]
        if unique_key is None:
            return None
        found = self._store.find_by_key(
            topic, unique_key.decode("utf-8", "replace"), max_count=_MAX_FOUND, has_deleted=True
        )
        if len(found) >= _MAX_FOUND:
            return None
        return [record for record in found if record.log_offset < self._log_end and _likeness(record) == like]


def _likeness(record: Record) -> _Likeness:
    properties = bytes(record.properties)
    return _Likeness(
        record.born_timestamp_ms,
        bytes(record.born_host),
        record.reconsume_times,
        record.body_crc,
        tuple(find_property(properties, name) for name in _SAME_PROPERTIES),
    )


def _roll_count(record: Record) -> int:
    value = find_property(bytes(record.properties), TIMER_ROLL_TIMES)
    return int(value) if value is not None and value.isdigit() else 0
