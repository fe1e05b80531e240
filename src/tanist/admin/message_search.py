"""Messages looked up: at their place in the log, by a key, by the time they came; and who consumed one."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from enum import StrEnum
from typing import NamedTuple, TypeVar

from tanist.admin.cluster import consumer_connections
from tanist.admin.refused import NotThere
from tanist.client.received import ReceivedMessage, decode_message, decode_messages
from tanist.client.session.wire import Wire
from tanist.errors import MQError, RemotingError, ResponseError
from tanist.model.groups import TOOLS_CONSUMER_GROUP, ConsumeType, MessageModel
from tanist.model.integers import INT64_MAX
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.route import BrokerData, MessageQueue
from tanist.model.subscription import EVERYTHING, TAG, SubscriptionData
from tanist.protocol.bodies.client import ConsumerConnections
from tanist.protocol.bodies.tables import GroupList
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import QueueOffsetResponse, TopicRequest
from tanist.protocol.headers.messages import QueryMessageRequest, ViewMessageRequest
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
)
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.message_id import decode_offset_id
from tanist.protocol.record import decode_record
from tanist.protocol.response_errors import ConsumerOffline, NotFound

_PULL_ANSWERS = frozenset(
    {
        int(ResponseCode.SUCCESS),
        int(ResponseCode.PULL_NOT_FOUND),
        int(ResponseCode.PULL_RETRY_IMMEDIATELY),
        int(ResponseCode.PULL_OFFSET_MOVED),
    }
)
_MESSAGES_A_PULL = 32
_MAX_ID_CHARS = 255
_QUERY_TIMEOUT_S = 15.0

_T = TypeVar("_T")


class Holder(NamedTuple):
    """A broker that has messages, and the replica group whose name their queues carry."""

    broker_name: str
    address: str


class TimeSpan(NamedTuple):
    """``[begin_ms, end_ms]``, by the clock of the broker that stored a message."""

    begin_ms: int
    end_ms: int


ALWAYS = TimeSpan(0, INT64_MAX)


def replicas_of(broker: BrokerData) -> list[Holder]:
    """All of one replica group, its master first."""
    return [Holder(broker.broker_name, address) for _, address in sorted(broker.broker_addrs.items())]


async def first_answer(holders: Sequence[Holder], ask: Callable[[Holder], Awaitable[_T]]) -> _T:
    """What the first of these replicas tells that can be reached. Raises what is wrong with the last."""
    for holder in holders[:-1]:
        try:
            return await ask(holder)
        except RemotingError:
            continue
    return await ask(holders[-1])


async def message_of_id(
    wire: Wire, holders: Iterable[Holder], offset_id: str, *, topic: str | None = None
) -> tuple[ReceivedMessage, Holder]:
    """The message at the place that an id names, from the first of these brokers that has it.

    Raises RemoteProtocolError for what is no such id, and NotThere.
    """
    place = decode_offset_id(offset_id)
    failure = "nobody answers whom it could be asked of"
    for holder in holders:
        try:
            message = await message_at(wire, holder, place.log_offset, topic=topic)
        except MQError as error:
            reason = error.remark if isinstance(error, ResponseError) else str(error)
            failure = f"{holder.broker_name} has no message there: {reason}"
            continue
        if message.offset_id == offset_id.upper():
            return message, holder
    raise NotThere(f"no message {offset_id[:_MAX_ID_CHARS]} was found; {failure}")


async def message_at(
    wire: Wire, holder: Holder, log_offset: int, *, topic: str | None = None
) -> ReceivedMessage:
    """The message that begins at a place of a broker's log. Raises ResponseError if none does.

    Brokers of RocketMQ 5 with access rules want to know its topic.
    """
    header = ViewMessageRequest(log_offset=LogOffset(log_offset), topic=topic)
    answer = await wire.ask(holder.address, Command.request(RequestCode.VIEW_MESSAGE_BY_ID, header))
    return decode_message(answer.body, broker_name=holder.broker_name)


async def messages_by_key(
    wire: Wire, holder: Holder, topic: str, key: str, *, is_unique: bool, span: TimeSpan, max_count: int
) -> list[ReceivedMessage]:
    """The newest messages with a key, or with the id that their producer gave them.

    The index of a broker has hashes of keys, which different keys may share; here they are compared.
    """
    header = QueryMessageRequest(
        topic=topic,
        key=key,
        max_count=max_count,
        begin_timestamp_ms=span.begin_ms,
        end_timestamp_ms=span.end_ms,
        is_unique_key=is_unique,
    )
    try:
        command = Command.request(RequestCode.QUERY_MESSAGE, header)
        answer = await wire.ask(holder.address, command, timeout_s=_QUERY_TIMEOUT_S)
    except NotFound:
        return []
    found = decode_stored(bytes(answer.body), broker_name=holder.broker_name)
    return [message for message in found if (message.message_id == key if is_unique else key in message.keys)]


def decode_stored(data: bytes, *, broker_name: str) -> list[ReceivedMessage]:
    """Messages as they lie in a log, one after the other, each of its own queue."""
    found: list[ReceivedMessage] = []
    position = 0
    while position < len(data):
        end = position + decode_record(data, position).size_bytes
        found.append(decode_message(data[position:end], broker_name=broker_name))
        position = end
    return found


async def offset_at(wire: Wire, holder: Holder, queue: MessageQueue, at_ms: int) -> QueueOffset:
    """The first message of a queue that was stored at a time or after."""
    header = SearchOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, timestamp_ms=at_ms)
    command = Command.request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
    return (await wire.ask(holder.address, command)).header(QueueOffsetResponse).queue_offset


async def walk_queue(
    wire: Wire, holder: Holder, queue: MessageQueue, span: TimeSpan
) -> AsyncGenerator[ReceivedMessage]:
    """The messages of a queue that came in a span of time, the oldest first, read as they are wanted."""
    offset = await offset_at(wire, holder, queue, span.begin_ms)
    while True:
        answer = await wire.ask(holder.address, _pull(queue, offset), accepted=_PULL_ANSWERS)
        header = answer.header(PullMessageResponse)
        if answer.code == ResponseCode.SUCCESS:
            for message in decode_messages(answer.body, queue):
                if message.store_timestamp_ms > span.end_ms:
                    return
                if message.store_timestamp_ms >= span.begin_ms:
                    yield message
        if answer.code == ResponseCode.PULL_NOT_FOUND or header.next_begin_offset <= offset:
            return
        offset = header.next_begin_offset


async def messages_by_time(
    wire: Wire, holder: Holder, queue: MessageQueue, span: TimeSpan, *, max_count: int
) -> list[ReceivedMessage]:
    """The first messages of a queue that came in a span of time."""
    found: list[ReceivedMessage] = []
    async with aclosing(walk_queue(wire, holder, queue, span)) as messages:
        async for message in messages:
            found.append(message)
            if len(found) >= max_count:
                break
    return found


class Standing(StrEnum):
    """What became of a message in a group, by the names of RocketMQ's TrackType."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    """The group is past it, and its subscription does not want it."""
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    """Every member keeps its own offset, so that the broker can not tell."""
    PULL = "PULL"
    """Its members choose themselves what they read, and where they stand says nothing."""
    NOT_ONLINE = "NOT_ONLINE"
    """No member is connected, and more ``mqadmin`` does not say."""
    UNKNOWN = "UNKNOWN"


class Track(NamedTuple):
    """One group, and what became of the message in it."""

    group: str
    standing: Standing
    is_online: bool
    consumer_offset: int | None
    note: str = ""

    @property
    def track_type(self) -> Standing:
        """What ``mqadmin`` says of it: where a group stands that is away it does not look at."""
        is_away = not self.is_online and self.standing is not Standing.UNKNOWN
        return Standing.NOT_ONLINE if is_away else self.standing


async def groups_of(wire: Wire, holder: Holder, topic: str) -> list[str]:
    """The groups that consume a topic, or left offsets in it."""
    header = TopicRequest(topic=topic)
    answer = await wire.ask(holder.address, Command.request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header))
    return sorted(decode_java_json(answer.body, GroupList).groups)


async def track_message(wire: Wire, holder: Holder, message: ReceivedMessage, group: str) -> Track:
    """Whether a group has consumed a message, as far as offsets and subscriptions tell."""
    try:
        members = await consumer_connections(wire, holder.address, group)
    except ConsumerOffline:
        members = ConsumerConnections()
    except MQError as error:
        return Track(group, Standing.UNKNOWN, is_online=False, consumer_offset=None, note=str(error))
    header = QueryConsumerOffsetRequest(
        consumer_group=group,
        topic=message.queue.topic,
        queue_id=message.queue.queue_id,
        set_zero_if_not_found=False,
    )
    try:
        answer = await wire.ask(holder.address, Command.request(RequestCode.QUERY_CONSUMER_OFFSET, header))
        offset = answer.header(ConsumerOffsetResponse).consumer_offset
    except NotFound:
        offset = None
    except MQError as error:
        return Track(group, Standing.UNKNOWN, bool(members.connections), None, str(error))
    return judge(group, members, message, offset)


def judge(
    group: str, members: ConsumerConnections, message: ReceivedMessage, consumer_offset: int | None
) -> Track:
    """What the offset of a group says of one message. Pure."""
    is_online = bool(members.connections)
    if members.message_model is MessageModel.BROADCASTING:
        standing = Standing.CONSUME_BROADCASTING
    elif consumer_offset is None or consumer_offset <= message.queue_offset:
        is_pulling = members.consume_type is ConsumeType.ACTIVELY
        standing = Standing.PULL if is_pulling else Standing.NOT_CONSUME_YET
    elif is_online and not _is_wanted(members.subscription_table.get(message.queue.topic), message.tags):
        standing = Standing.CONSUMED_BUT_FILTERED
    else:
        standing = Standing.CONSUMED
    return Track(group, standing, is_online, consumer_offset)


def _is_wanted(subscription: SubscriptionData | None, tag: str | None) -> bool:
    """Whether a subscription takes a message with this tag; what is not by tags is taken to."""
    if subscription is None or subscription.expression_type not in (None, "", TAG):
        return True
    if subscription.expression in ("", EVERYTHING):
        return True
    wanted: Collection[str] = subscription.tags
    return tag is not None and tag in wanted


def _pull(queue: MessageQueue, offset: QueueOffset) -> Command:
    return Command.request(
        RequestCode.PULL_MESSAGE,
        PullMessageRequest(
            consumer_group=TOOLS_CONSUMER_GROUP,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_message_count=_MESSAGES_A_PULL,
            sys_flag=int(PullSysFlag.SUBSCRIPTION),
            consumer_offset=QueueOffset(0),
            suspend_timeout_ms=0,
            subscription=EVERYTHING,
            sub_version=0,
            expression_type=TAG,
        ),
    )
