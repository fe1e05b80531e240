"""The copy of a message that a consumer sends to its group's retry topic itself. Pure.

Brokers write that copy from their log. If they can not, because the log does not have the message any
more or the broker is gone, then the consumer still has it, and any broker of the group takes it.
"""

from tanist.client.message import MAX_DELAY_LEVEL
from tanist.client.received import ReceivedMessage
from tanist.model.property_names import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRAN_MSG,
)
from tanist.model.route import MessageQueue
from tanist.model.topics import AUTO_CREATE_TOPIC
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.send import SendMessageRequestV2
from tanist.protocol.properties import replace_properties

_FIRST_DELAY_LEVEL = 3
"""What brokers give a message that comes again for the first time: 10 s."""


def make_retry_copy(
    message: ReceivedMessage, queue: MessageQueue, *, group: str, delay_level: int, max_retries: int
) -> Command:
    """The request that has a broker store the copy; ``queue`` is one of the group's retry topic.

    A broker makes it a dead letter if it came again more often than it may. With a ``delay_level`` below
    0 that is said to be so.
    """
    level = delay_level or _FIRST_DELAY_LEVEL + message.reconsume_times
    changes: dict[str, str | None] = {
        # It waits by its level alone, and is no half of a transaction even if its original was one.
        **dict.fromkeys((TRAN_MSG, TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)),
        DELAY: str(max(0, min(MAX_DELAY_LEVEL, level))),
        RETRY_TOPIC: message.topic,
        ORIGIN_MESSAGE_ID: message.properties.get(ORIGIN_MESSAGE_ID) or message.offset_id,
    }
    body, sys_flag = message.as_stored()
    header = SendMessageRequestV2(
        producer_group=group,
        topic=queue.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_count=1,
        queue_id=queue.queue_id,
        sys_flag=sys_flag,
        born_timestamp_ms=message.born_timestamp_ms,
        flag=message.flag,
        properties=replace_properties(message.raw_properties, changes).decode("utf-8", "replace"),
        reconsume_times=message.reconsume_times + 1,
        max_reconsume_times=message.reconsume_times if delay_level < 0 else max_retries,
        broker_name=queue.broker_name,
    )
    return Command.request(RequestCode.SEND_MESSAGE_V2, header, body=body)
