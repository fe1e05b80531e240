"""Messages that are to come later: where they lie until then, and how they come. Pure.

A message with a delay level waits in the level's queue of SCHEDULE_TOPIC_XXXX, one with a time of its
own in rmq_sys_wheel_timer. Both carry their real topic and queue as properties. What is delivered is a
copy with the properties that RocketMQ leaves on it, those of the waiting included.
"""

from dataclasses import dataclass

import msgspec

from tanist.broker.settings import BrokerSettings
from tanist.errors import MQError, ResponseError
from tanist.model.integers import INT64_MAX
from tanist.model.message import Message
from tanist.model.property_names import (
    DELAY,
    REAL_QID,
    REAL_TOPIC,
    TIMER_DEL_UNIQKEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    UNIQ_KEY,
)
from tanist.model.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import find_property, replace_properties
from tanist.protocol.record import MAX_PROPERTIES_BYTES, Record

TIMER_QUEUE_ID = 0

_TIMERS = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
_INT64_DIGITS = len(str(INT64_MAX))
_ROOM_BYTES = 128
"""What delivery adds to the properties of a timer message, and a little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayRules:
    """How long messages may wait, as one broker's settings say."""

    levels: tuple[int, ...]
    """Milliseconds per delay level, the first level first."""
    is_timer_enabled: bool
    max_timer_ms: int
    precision_ms: int

    @classmethod
    def of(cls, settings: BrokerSettings, levels: tuple[int, ...]) -> "DelayRules":
        return cls(
            levels=levels,
            is_timer_enabled=settings.timer_wheel_enable,
            max_timer_ms=settings.timer_max_delay_sec * 1000,
            precision_ms=settings.precision_ms,
        )


class NotDeliverable(MQError):
    """A message that waits can not be read as one that is to be delivered; RocketMQ drops it too."""


def postpone(message: Message, rules: DelayRules, *, now_ms: int) -> Message:
    """The message as it lies until its time comes; itself if it is not delayed.

    A level goes before a timer, which is then taken off the message.
    """
    properties = message.properties
    text = find_property(properties, DELAY)
    level = _number(text, ResponseCode.SYSTEM_ERROR) if text is not None else 0
    if level > 0:
        level = min(level, len(rules.levels))
        changes = {**dict.fromkeys(_TIMERS), DELAY: str(level)}
        return _moved(message, changes, topic=SCHEDULE_TOPIC, queue_id=level - 1, room_bytes=0)
    timer = next((name for name in _TIMERS if find_property(properties, name)), None)
    if timer is None or find_property(properties, TIMER_OUT_MS):
        return message
    if not rules.is_timer_enabled:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, "timer messages are not taken: timerWheelEnable is false"
        )
    deliver_ms = _deliver_ms(timer, find_property(properties, timer) or b"", now_ms)
    if deliver_ms > now_ms:
        return _postpone_to(message, deliver_ms, rules, now_ms=now_ms)
    if find_property(properties, TIMER_DEL_UNIQKEY):
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL, "the timer that is to be taken back is over already"
        )
    return message


def slot_ms(deliver_ms: int, precision_ms: int) -> int:
    """The slot of a time: the last one that begins before it."""
    return (deliver_ms - 1) // precision_ms * precision_ms


def deliver_by_level(record: Record) -> Message:
    """What a message with a delay level becomes when it is due."""
    return _delivered(record, {})


def deliver_by_timer(record: Record, *, precision_ms: int, now_ms: int) -> Message:
    """What a timer message becomes when it is due.

    It tells when the timer took it, which is the greatest number of Java if it was late already, and
    when it was let go.
    """
    taken_ms = record.store_timestamp_ms // precision_ms * precision_ms
    is_late = timer_out_ms(bytes(record.properties)) < taken_ms
    enqueue_ms = INT64_MAX if is_late else taken_ms
    return _delivered(record, {TIMER_ENQUEUE_MS: str(enqueue_ms), TIMER_DEQUEUE_MS: str(now_ms)})


def timer_out_ms(properties: bytes) -> int:
    """The slot in which a timer message lies."""
    text = find_property(properties, TIMER_OUT_MS) or b""
    if not text.isdigit() or len(text) > _INT64_DIGITS:
        raise NotDeliverable(f"it waits for the time {text!r}, which is none")
    return int(text)


def cancel_key(properties: bytes) -> bytes:
    """What names this message in the message that takes it back."""
    return b"%s+%s" % (
        find_property(properties, REAL_TOPIC) or b"",
        find_property(properties, UNIQ_KEY) or b"",
    )


def _deliver_ms(timer: str, text: bytes, now_ms: int) -> int:
    number = _number(text, ResponseCode.MESSAGE_ILLEGAL)
    if timer == TIMER_DELIVER_MS:
        return number
    return now_ms + (1000 * number if timer == TIMER_DELAY_SEC else number)


def _number(text: bytes, code: ResponseCode) -> int:
    digits = text[1:] if text[:1] in (b"-", b"+") else text
    if not digits.isdigit() or len(digits) > _INT64_DIGITS:
        raise ResponseError(code, f"{text!r} is no delay; send a whole number")
    return int(text)


def _postpone_to(message: Message, deliver_ms: int, rules: DelayRules, *, now_ms: int) -> Message:
    if deliver_ms - now_ms > rules.max_timer_ms:
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"a timer of {deliver_ms - now_ms} ms; timerMaxDelaySec allows {rules.max_timer_ms} ms",
        )
    changes: dict[str, str | None] = {TIMER_OUT_MS: str(slot_ms(deliver_ms, rules.precision_ms))}
    return _moved(message, changes, topic=TIMER_TOPIC, queue_id=TIMER_QUEUE_ID, room_bytes=_ROOM_BYTES)


def _moved(
    message: Message, changes: dict[str, str | None], *, topic: str, queue_id: int, room_bytes: int
) -> Message:
    """The message in another place, with its own as properties, and room for what delivery adds to them."""
    target = {REAL_TOPIC: message.topic, REAL_QID: str(message.queue_id)}
    properties = replace_properties(message.properties, changes | target)
    if len(properties) + room_bytes > MAX_PROPERTIES_BYTES:
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"{len(properties)} bytes of properties with those of the delay; "
            f"at most {MAX_PROPERTIES_BYTES - room_bytes} are taken",
        )
    return msgspec.structs.replace(message, topic=topic, queue_id=queue_id, properties=properties)


def _delivered(record: Record, changes: dict[str, str | None]) -> Message:
    properties = bytes(record.properties)
    topic, queue_id = find_property(properties, REAL_TOPIC), find_property(properties, REAL_QID)
    if topic is None or queue_id is None or not queue_id.isdigit():
        raise NotDeliverable(f"it names no topic and queue to go to, but {topic!r} and {queue_id!r}")
    return Message(
        topic=topic.decode("utf-8", "replace"),
        queue_id=int(queue_id[:_INT64_DIGITS]),
        body=record.body,
        properties=replace_properties(properties, changes) if changes else properties,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp_ms=record.born_timestamp_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times,
    )
