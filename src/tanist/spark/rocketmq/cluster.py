"""Asks name servers and brokers, on the driver, which queues there are and what they hold."""

import asyncio
import random
import re
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from tanist.client.session.nameservers import NameServers
from tanist.client.session.wire import Wire
from tanist.client.settings import ClientSettings
from tanist.errors import MQError, RemotingError
from tanist.model.route import MASTER_ID, BrokerData, MessageQueue
from tanist.protocol.bodies.tables import TopicList
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.common import QueueOffsetResponse, TopicQueueRequest
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
)
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import TopicNotFound
from tanist.spark.errors import SparkError, UnknownName
from tanist.spark.rocketmq.offsets import GROUP, Bound, QueueState, queue_name
from tanist.spark.rocketmq.options import ANY, MASTER, RocketMQOptions

_OFFSET_OR_NONE = (int(ResponseCode.SUCCESS), int(ResponseCode.QUERY_NOT_FOUND))


WAITS_S = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0)
"""How long to wait each time no replica answers, before it is an error: an election is over by then."""


class NoReplica(SparkError):
    """A broker has no replica that may be read, now."""


def look_up(options: RocketMQOptions) -> list[QueueState]:
    """All queues that are to be read, as their brokers tell them now."""
    return asyncio.run(_look_up(options))


def look_up_patiently(options: RocketMQOptions) -> list[QueueState]:
    """The same, but while brokers are away it waits for them or for whoever takes over."""
    for wait_s in WAITS_S:
        try:
            return look_up(options)
        except MQError as error:
            if isinstance(error, SparkError) and not isinstance(error, NoReplica):
                raise
            time.sleep(wait_s)
    return look_up(options)


@asynccontextmanager
async def wired(settings: ClientSettings) -> AsyncGenerator[Wire]:
    """Connections that last as long as the block."""
    wire = Wire(settings, {}, on_connect=_nobody_cares, on_disconnect=_nobody_cares)
    try:
        yield wire
    finally:
        await wire.close()


def replicas_of(broker: BrokerData, read_from: str) -> tuple[str, ...]:
    """The addresses to read a broker's queues from, the best first."""
    master = [address for broker_id, address in broker.broker_addrs.items() if broker_id == MASTER_ID]
    slaves = [address for broker_id, address in broker.broker_addrs.items() if broker_id != MASTER_ID]
    if read_from == MASTER:
        return tuple(master)
    random.shuffle(slaves)
    # Whoever spares masters would rather read them than fail, if he says so.
    return tuple(slaves + master) if read_from == ANY else tuple(slaves)


async def addresses_of(queue: MessageQueue, options: RocketMQOptions, wire: Wire) -> tuple[str, ...]:
    """Who has a queue now, the best first: after a failover that is somebody else."""
    route = await NameServers(options.client_settings, wire.remoting).route_of(queue.topic)
    found = (broker for broker in route.broker_datas if broker.broker_name == queue.broker_name)
    return tuple(address for broker in found for address in replicas_of(broker, options.read_from))


async def _look_up(options: RocketMQOptions) -> list[QueueState]:
    async with wired(options.client_settings) as wire:
        names = NameServers(options.client_settings, wire.remoting)
        topics = await _topics(options, wire)
        found = [one for topic in sorted(topics) for one in await _queues(topic, options, names)]
        if options.assign:
            known = {queue for queue, _ in found}
            for queue in sorted(options.assign - known):
                raise UnknownName("queue", queue_name(queue), map(queue_name, known))
            found = [one for one in found if one[0] in options.assign]
        return list(await asyncio.gather(*(_state(wire, queue, at, options) for queue, at in found)))


async def _topics(options: RocketMQOptions, wire: Wire) -> Iterable[str]:
    if options.assign:
        return {queue.topic for queue in options.assign}
    if options.pattern is None:
        return options.subscribe
    known = await _all_topics(options, wire)
    found = {topic for topic in known if re.fullmatch(options.pattern, topic)}
    if not found:
        raise SparkError(
            f"subscribePattern={options.pattern!r} matches no topic; there is {', '.join(sorted(known))}"
        )
    return found


async def _all_topics(options: RocketMQOptions, wire: Wire) -> frozenset[str]:
    failure: MQError = SparkError("there is no name server")
    for address in options.namesrv:
        command = Command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        try:
            answer = await wire.ask(address, command)
        except MQError as error:
            failure = error
            continue
        return decode_java_json(answer.body, TopicList).topics
    raise failure


async def _queues(
    topic: str, options: RocketMQOptions, names: NameServers
) -> list[tuple[MessageQueue, tuple[str, ...]]]:
    try:
        route = await names.route_of(topic)
    except TopicNotFound as error:
        raise SparkError(f"topic {topic} does not exist; the name servers have no route to it") from error
    brokers = {broker.broker_name: broker for broker in route.broker_datas}
    found: list[tuple[MessageQueue, tuple[str, ...]]] = []
    for offered in route.queue_datas:
        broker = brokers.get(offered.broker_name)
        if not offered.is_readable or broker is None:
            continue
        addresses = replicas_of(broker, options.read_from)
        if not addresses:
            raise NoReplica(
                f"broker {broker.broker_name} has no replica for readFrom={options.read_from}; "
                "readFrom=any takes what there is"
            )
        for queue_id in range(offered.read_queue_count):
            queue = MessageQueue(topic=topic, broker_name=broker.broker_name, queue_id=queue_id)
            found.append((queue, addresses))
    return found


async def _state(
    wire: Wire, queue: MessageQueue, addresses: tuple[str, ...], options: RocketMQOptions
) -> QueueState:
    """Ask the replicas in turn; whoever answers is read first."""
    failure: MQError = SparkError(f"nobody is known who has {queue_name(queue)}")
    for number, address in enumerate(addresses):
        try:
            ordered = (address, *addresses[:number], *addresses[number + 1 :])
            return await _ask_state(wire, queue, address, ordered, options)
        except RemotingError as error:
            failure = error
    raise failure


async def _ask_state(
    wire: Wire, queue: MessageQueue, address: str, addresses: tuple[str, ...], options: RocketMQOptions
) -> QueueState:
    topic, queue_id = queue.topic, queue.queue_id

    async def offset(code: RequestCode, header: Header) -> int:
        answer = await wire.ask(address, Command.request(code, header))
        return answer.header(QueueOffsetResponse).queue_offset

    async def at_time(bound: Bound | None) -> int | None:
        if bound is None or bound.timestamp_ms is None:
            return None
        header = SearchOffsetRequest(topic=topic, queue_id=queue_id, timestamp_ms=bound.timestamp_ms)
        return await offset(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    least = TopicQueueRequest(topic=topic, queue_id=queue_id)
    most = GetMaxOffsetRequest(topic=topic, queue_id=queue_id)
    return QueueState(
        queue=queue,
        addresses=addresses,
        min_offset=await offset(RequestCode.GET_MIN_OFFSET, least),
        max_offset=await offset(RequestCode.GET_MAX_OFFSET, most),
        group_offset=await _group_offset(wire, queue, address, options.group)
        if options.start is not None and options.start.word == GROUP
        else None,
        start_at_time=await at_time(options.start),
        end_at_time=await at_time(options.end),
    )


async def _group_offset(wire: Wire, queue: MessageQueue, address: str, group: str) -> int | None:
    header = QueryConsumerOffsetRequest(consumer_group=group, topic=queue.topic, queue_id=queue.queue_id)
    command = Command.request(RequestCode.QUERY_CONSUMER_OFFSET, header)
    answer = await wire.ask(address, command, accepted=_OFFSET_OR_NONE)
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    return answer.header(ConsumerOffsetResponse).consumer_offset


def _nobody_cares(_address: str) -> None:
    pass
