"""Messages read straight from queues, between two times or from an offset on, without moving any group."""

from collections.abc import AsyncGenerator
from typing import NamedTuple

from tanist.admin.cluster import topic_route
from tanist.admin.refused import NotThere
from tanist.admin.topics import some_address
from tanist.client.pulling.fetched import Outcome, is_answer, read_answer
from tanist.client.received import ReceivedMessage
from tanist.client.session.wire import Wire
from tanist.errors import ConfigError
from tanist.model.groups import TOOLS_CONSUMER_GROUP
from tanist.model.offsets import QueueOffset
from tanist.model.route import MASTER_ID, MessageQueue, TopicRouteData
from tanist.model.subscription import SubscriptionData, subscribe
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import QueueOffsetResponse, TopicQueueRequest
from tanist.protocol.headers.offsets import GetMaxOffsetRequest, SearchOffsetRequest
from tanist.protocol.headers.pull import PullMessageRequest, PullSysFlag
from tanist.protocol.response_errors import error_of

_AT_ONCE = 32


class Wanted(NamedTuple):
    """Which messages to read: of which queues, from when to when, how many, with which tags."""

    topic: str
    broker_name: str | None = None
    queue_id: int | None = None
    offset: int | None = None
    """Where to begin in each queue; at its first message, or at ``begin_ms``, if there is none."""
    begin_ms: int | None = None
    end_ms: int | None = None
    expression: str | None = None
    max_count: int | None = None
    group: str = TOOLS_CONSUMER_GROUP


async def browse(wire: Wire, name_server: str, wanted: Wanted) -> AsyncGenerator[ReceivedMessage]:
    """The messages that are there now, queue by queue. Raises NotThere if there is no such queue."""
    try:
        subscription = subscribe(wanted.topic, wanted.expression, sub_version=0)
    except ValueError as error:
        raise ConfigError("subExpression", wanted.expression, "tags, as TagA || TagB") from error
    route = await topic_route(wire, name_server, wanted.topic)
    queues = queues_of(route, wanted)
    if not queues:
        raise NotThere(f"the topic {wanted.topic} has no such queue that may be read")
    count = 0
    for queue, address in queues:
        async for message in _read(wire, address, queue, subscription, wanted):
            yield message
            count += 1
            if count == wanted.max_count:
                return


def queues_of(route: TopicRouteData, wanted: Wanted) -> list[tuple[MessageQueue, str]]:
    """The queues that are wanted, and where each is read."""
    addresses = {each.broker_name: some_address(each) for each in route.broker_datas if each.broker_addrs}
    return [
        (MessageQueue(topic=wanted.topic, broker_name=offer.broker_name, queue_id=queue_id), address)
        for offer in sorted(route.queue_datas, key=lambda each: each.broker_name)
        if offer.is_readable
        and wanted.broker_name in (None, offer.broker_name)
        and (address := addresses.get(offer.broker_name)) is not None
        for queue_id in range(offer.read_queue_count)
        if wanted.queue_id in (None, queue_id)
    ]


async def _read(
    wire: Wire, address: str, queue: MessageQueue, subscription: SubscriptionData, wanted: Wanted
) -> AsyncGenerator[ReceivedMessage]:
    start, end = await _bounds(wire, address, queue, wanted)
    while start < end:
        request = PullMessageRequest(
            consumer_group=wanted.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=QueueOffset(start),
            max_message_count=min(_AT_ONCE, end - start),
            sys_flag=int(PullSysFlag.SUBSCRIPTION),
            consumer_offset=QueueOffset(0),
            suspend_timeout_ms=0,
            subscription=subscription.expression,
            sub_version=0,
            expression_type=subscription.expression_type,
        )
        command = Command.request(RequestCode.PULL_MESSAGE, request)
        answer = await wire.exchange(address, command, timeout_s=15.0)
        if not is_answer(answer):
            raise error_of(answer)
        fetched = read_answer(
            answer, queue, QueueOffset(start), subscription=subscription, broker_id=MASTER_ID
        )
        for message in fetched.messages:
            if message.queue_offset < end:
                yield message
        if fetched.outcome is Outcome.NOTHING or fetched.next_offset <= start:
            return
        start = fetched.next_offset


async def _bounds(wire: Wire, address: str, queue: MessageQueue, wanted: Wanted) -> tuple[int, int]:
    """``[start, end)`` of what is wanted of one queue."""
    names = TopicQueueRequest(topic=queue.topic, queue_id=queue.queue_id)
    if wanted.offset is not None:
        start = wanted.offset
    elif wanted.begin_ms is not None:
        start = await _at(wire, address, queue, wanted.begin_ms)
    else:
        answer = await wire.ask(address, Command.request(RequestCode.GET_MIN_OFFSET, names))
        start = answer.header(QueueOffsetResponse).queue_offset
    if wanted.end_ms is not None:
        return start, await _at(wire, address, queue, wanted.end_ms)
    header = GetMaxOffsetRequest(topic=queue.topic, queue_id=queue.queue_id)
    answer = await wire.ask(address, Command.request(RequestCode.GET_MAX_OFFSET, header))
    return start, answer.header(QueueOffsetResponse).queue_offset


async def _at(wire: Wire, address: str, queue: MessageQueue, at_ms: int) -> int:
    header = SearchOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, timestamp_ms=at_ms)
    answer = await wire.ask(address, Command.request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header))
    return answer.header(QueueOffsetResponse).queue_offset
