"""Messages that are to come later: where they lie until then, and how they come. Pure.

A message with a delay level waits in the level's queue of SCHEDULE_TOPIC_XXXX, one with a time of its
own in rmq_sys_wheel_timer. Both carry their real topic and queue as properties. What is delivered is a
copy with the properties that RocketMQ leaves on it, those of the waiting included.
"""

from dataclasses import dataclass

import msgspec

from tanist.broker.settings import BrokerSettings
from tanist.errors import LocalProtocolError, MQError, ResponseError
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
from tanist.protocol.properties import decode_properties, encode_properties
from tanist.protocol.record import MAX_PROPERTIES_BYTES, Record

TIMER_QUEUE_ID = 0

_TIMERS = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
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
    properties = decode_properties(message.properties)
    level = _number(properties.get(DELAY), ResponseCode.SYSTEM_ERROR) if DELAY in properties else 0
    if level > 0:
        return _postpone_by_level(message, properties, min(level, len(rules.levels)))
    if TIMER_OUT_MS in properties or not any(name in properties for name in _TIMERS):
        return message
    if not rules.is_timer_enabled:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, "timer messages are not taken: timerWheelEnable is false"
        )
    deliver_ms = _deliver_ms(properties, now_ms)
    if deliver_ms > now_ms:
        return _postpone_to(message, properties, deliver_ms, rules, now_ms=now_ms)
    if TIMER_DEL_UNIQKEY in properties:
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL, "the timer that is to be taken back is over already"
        )
    return message


def slot_ms(deliver_ms: int, precision_ms: int) -> int:
    """The slot of a time: the last one that ends at this time or before it has passed."""
    return (deliver_ms - 1) // precision_ms * precision_ms


def deliver_by_level(record: Record) -> Message:
    """What a message with a delay level becomes when it is due."""
    return _delivered(record, decode_properties(record.properties))


def deliver_by_timer(record: Record, *, precision_ms: int, now_ms: int) -> Message:
    """What a timer message becomes when it is due.

    It tells when the timer took it, which is the greatest number of Java if it was late already, and
    when it was let go.
    """
    properties = decode_properties(record.properties)
    taken_ms = timer_taken_ms(record, precision_ms)
    is_late = timer_out_ms(properties) < taken_ms
    properties[TIMER_ENQUEUE_MS] = str(INT64_MAX if is_late else taken_ms)
    properties[TIMER_DEQUEUE_MS] = str(now_ms)
    return _delivered(record, properties)


def timer_taken_ms(record: Record, precision_ms: int) -> int:
    """The slot in which a timer message came."""
    return record.store_timestamp_ms // precision_ms * precision_ms


def timer_out_ms(properties: dict[str, str]) -> int:
    """The slot in which a timer message lies."""
    text = properties.get(TIMER_OUT_MS, "")
    if not text.isascii() or not text.isdecimal() or int(text[:20]) > INT64_MAX:
        raise NotDeliverable(f"it waits for the time {text!r}, which is none")
    return int(text)


def cancel_key(properties: dict[str, str]) -> str:
    """What names this message in the message that takes it back."""
    return f"{properties.get(REAL_TOPIC)}+{properties.get(UNIQ_KEY)}"


def _deliver_ms(properties: dict[str, str], now_ms: int) -> int:
    if TIMER_DELAY_SEC in properties:
        return now_ms + 1000 * _number(properties[TIMER_DELAY_SEC], ResponseCode.MESSAGE_ILLEGAL)
    if TIMER_DELAY_MS in properties:
        return now_ms + _number(properties[TIMER_DELAY_MS], ResponseCode.MESSAGE_ILLEGAL)
    return _number(properties[TIMER_DELIVER_MS], ResponseCode.MESSAGE_ILLEGAL)


def _number(text: str | None, code: ResponseCode) -> int:
    digits = (text or "").removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > len(str(INT64_MAX)):
        raise ResponseError(code, f"{text!r} is no delay; send a whole number")
    return -int(digits) if text and text.startswith("-") else int(digits)


def _postpone_by_level(message: Message, properties: dict[str, str], level: int) -> Message:
    for name in _TIMERS:
        properties.pop(name, None)
    properties[DELAY] = str(level)
    return _moved(message, properties, SCHEDULE_TOPIC, level - 1, room_bytes=0)


def _postpone_to(
    message: Message, properties: dict[str, str], deliver_ms: int, rules: DelayRules, *, now_ms: int
) -> Message:
    if deliver_ms - now_ms > rules.max_timer_ms:
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"a timer of {deliver_ms - now_ms} ms; timerMaxDelaySec allows {rules.max_timer_ms} ms",
        )
    properties[TIMER_OUT_MS] = str(slot_ms(deliver_ms, rules.precision_ms))
    return _moved(message, properties, TIMER_TOPIC, TIMER_QUEUE_ID, room_bytes=_ROOM_BYTES)


def _moved(
    message: Message, properties: dict[str, str], topic: str, queue_id: int, *, room_bytes: int
) -> Message:
    properties[REAL_TOPIC] = message.topic
    properties[REAL_QID] = str(message.queue_id)
    try:
        raw = encode_properties(properties)
    except LocalProtocolError as error:
        raise ResponseError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    if len(raw) + room_bytes > MAX_PROPERTIES_BYTES:
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"{len(raw)} bytes of properties: a timer message may have {MAX_PROPERTIES_BYTES - room_bytes}",
        )
    return msgspec.structs.replace(message, topic=topic, queue_id=queue_id, properties=raw)


def _delivered(record: Record, properties: dict[str, str]) -> Message:
    topic, queue_id = properties.get(REAL_TOPIC), properties.get(REAL_QID, "")
    if not topic or not queue_id.isascii() or not queue_id.isdecimal():
        raise NotDeliverable(f"it names no topic and queue to go to, but {topic!r} and {queue_id!r}")
    try:
        raw = encode_properties(properties)
    except LocalProtocolError as error:
        raise NotDeliverable(str(error)) from error
    return Message(
        topic=topic,
        queue_id=int(queue_id[:10]),
        body=record.body,
        properties=raw,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp_ms=record.born_timestamp_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times,
    )
