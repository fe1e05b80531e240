"""Topics changed on one broker, and a message sent to look whether one comes through."""

import msgspec

from tanist.client.message import Message
from tanist.client.sending.send_request import STATUSES
from tanist.client.session.wire import Wire
from tanist.model.property_names import KEYS, TAGS, UNIQ_KEY, WAIT
from tanist.model.topics import AUTO_CREATE_TOPIC, TopicConfig
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.headers.nameserver import DeleteTopicInNameserverRequest
from tanist.protocol.headers.send import SendMessageRequestV2, SendMessageResponse
from tanist.protocol.headers.topics import UpdateTopicRequest
from tanist.protocol.properties import encode_properties
from tanist.protocol.tags import KEY_SEPARATOR

TEST_GROUP = "TANIST_CONSOLE"
"""The producer group of test messages."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a test message went."""

    message_id: str
    offset_id: str
    queue_id: int
    queue_offset: int
    status: str


async def update_topic(
    wire: Wire, address: str, config: TopicConfig, *, attributes: str | None = None
) -> None:
    """Make a topic on one broker, or change it."""
    header = UpdateTopicRequest(
        topic=config.topic_name,
        default_topic=AUTO_CREATE_TOPIC,
        read_queue_count=config.read_queue_count,
        write_queue_count=config.write_queue_count,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type.value,
        topic_sys_flag=config.topic_sys_flag,
        is_ordered=config.is_ordered,
        attributes=attributes,
    )
    await wire.ask(address, Command.request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))


async def delete_topic_at_broker(wire: Wire, address: str, topic: str) -> None:
    """Delete a topic, its messages and its offsets on one broker."""
    header = TopicRequest(topic=topic)
    await wire.ask(address, Command.request(RequestCode.DELETE_TOPIC_IN_BROKER, header))


async def delete_topic_at_name_server(
    wire: Wire, address: str, topic: str, *, cluster: str | None = None
) -> None:
    """Have a name server forget a topic, or only where it is in one cluster."""
    header = DeleteTopicInNameserverRequest(topic=topic, cluster_name=cluster)
    await wire.ask(address, Command.request(RequestCode.DELETE_TOPIC_IN_NAMESRV, header))


async def send_test_message(
    wire: Wire, address: str, message: Message, *, message_id: str, now_ms: int
) -> Sent:
    """Send one message to a queue that the broker picks; where it went, and how safely."""
    properties = {UNIQ_KEY: message_id, WAIT: "true", **message.properties}
    if message.tags:
        properties[TAGS] = message.tags
    if message.keys:
        properties[KEYS] = KEY_SEPARATOR.join(message.keys)
    header = SendMessageRequestV2(
        producer_group=TEST_GROUP,
        topic=message.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_count=4,
        queue_id=-1,
        sys_flag=0,
        born_timestamp_ms=now_ms,
        flag=0,
        properties=encode_properties(properties).decode(),
        reconsume_times=0,
        is_unit_mode=False,
        is_batch=False,
    )
    command = Command.request(RequestCode.SEND_MESSAGE_V2, header, body=message.body)
    answer = await wire.ask(address, command, accepted=STATUSES)
    told = answer.header(SendMessageResponse)
    return Sent(
        message_id=message_id,
        offset_id=told.msg_id,
        queue_id=told.queue_id,
        queue_offset=told.queue_offset,
        status=STATUSES[answer.code].value,
    )
