"""Messages that a group could not consume: how often they come again, and what they say then. Pure.

    send-back --> retry topic, after a delay that rises --> consumed again --> ... --> dead letter topic

A consumer sends a message back by its place in the log (CONSUMER_SEND_MSG_BACK), and the broker writes
the copy. Where that fails, and for a group that consumes in order, the client sends the copy itself, as
a message to the retry topic.
"""

import msgspec

from tanist.broker.transactions.halves import without_transaction
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.message import Message
from tanist.model.property_names import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRAN_MSG,
    WAIT,
)
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import find_property, replace_properties
from tanist.protocol.record import Record

FIRST_DELAY_LEVEL = 3
"""The first retry waits this long, 10 s by default, and each further one a level longer."""

_LIMIT_VERSION = 121
"""Clients since RocketMQ 3.4.9 say themselves how often they try."""
_NEVER_DELAYED = "-1"

# A copy waits by its level alone, and is no half of a transaction even if its original was one.
_DONE_WITH = {TRAN_MSG: None, TIMER_DELAY_SEC: None, TIMER_DELAY_MS: None, TIMER_DELIVER_MS: None}


def max_retries(group: SubscriptionGroupConfig, asked: int | None, *, client_version: int) -> int:
    """How often a message may come again: as often as the client says, or else its group."""
    return group.retry_max_times if asked is None or client_version < _LIMIT_VERSION else asked


def retry_delay_level(record: Record, asked: int) -> int:
    """The level at which a message waits: the one asked for, or one that rises each time."""
    return asked or FIRST_DELAY_LEVEL + record.reconsume_times


def copy_to_retry(record: Record, *, topic: str, queue_id: int, delay_level: int) -> Message:
    """The message that a group gets again in place of ``record``.

    It remembers the topic and the id of the first of all its copies. Its ``delay_level`` is 0 in the
    dead letter topic.
    """
    properties = bytes(record.properties)
    origin_id = find_property(properties, ORIGIN_MESSAGE_ID)
    changes: dict[str, str | None] = {
        **_DONE_WITH,
        DELAY: str(delay_level),
        # As in RocketMQ, where nobody waits for this copy. Here the consumer does, whatever the copy says.
        WAIT: "false",
    }
    if origin_id is None:
        changes[ORIGIN_MESSAGE_ID] = encode_offset_id(record.store_host, record.log_offset)
    if find_property(properties, RETRY_TOPIC) is None:
        changes[RETRY_TOPIC] = record.topic
    return Message(
        topic=topic,
        queue_id=queue_id,
        body=record.body,
        properties=replace_properties(properties, changes),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp_ms=record.born_timestamp_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times + 1,
    )


def to_dead_letter(message: Message, topic: str) -> Message:
    """A message for the retry topic as it goes to the dead letter topic instead, at once."""
    properties = replace_properties(message.properties, {**_DONE_WITH, DELAY: _NEVER_DELAYED})
    return msgspec.structs.replace(
        without_transaction(message), topic=topic, queue_id=0, properties=properties
    )
