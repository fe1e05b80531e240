"""Asks name servers and brokers, on the driver, which queues there are and what they hold."""

import asyncio
import random
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import NamedTuple, TypeVar

from tanist.admin.cluster import broker_epochs
from tanist.client.session.nameservers import NameServers
from tanist.client.session.wire import Wire
from tanist.client.settings import ClientSettings
from tanist.errors import MQError, RemotingError, ResponseError
from tanist.model.epochs import Epoch
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

_Answer = TypeVar("_Answer")

WAITS_S = (0.1, 0.2, 0.4, 0.8, *(1.0,) * 8, *(2.0,) * 10)
"""How long to wait each time no replica answers, before it is an error: an election is over by then."""


class NoReplica(SparkError):
    """A broker has no replica that may be read, now."""


class NoTopic(NoReplica):
    """No name server knows a topic: it never was, or the last broker that has it is away."""


def look_up(options: RocketMQOptions, *, with_epochs: bool = False) -> list[QueueState]:
    """All queues that are to be read, as their brokers tell them now."""
    return asyncio.run(_look_up(options, with_epochs=with_epochs))


def look_up_patiently(options: RocketMQOptions, *, with_epochs: bool = False) -> list[QueueState]:
    """The same, but while brokers are away it waits for them or for whoever takes over."""
    for wait_s in WAITS_S:
        try:
            return look_up(options, with_epochs=with_epochs)
        except MQError as error:
            if isinstance(error, SparkError) and not isinstance(error, NoReplica):
                raise
            time.sleep(wait_s)
    return look_up(options, with_epochs=with_epochs)


@asynccontextmanager
async def wired(settings: ClientSettings) -> AsyncGenerator[Wire]:
    """Connections that last as long as the block."""
    wire = Wire(settings, {}, on_connect=_nobody_cares, on_disconnect=_nobody_cares)
    try:
        yield wire
    finally:
        await wire.close()


@contextmanager
def connected(options: RocketMQOptions) -> Generator[tuple[asyncio.AbstractEventLoop, Wire]]:
    """The same for who has no event loop: one that runs only while it is asked to."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        opened = wired(options.client_settings)
        wire = loop.run_until_complete(opened.__aenter__())
        try:
            yield loop, wire
        finally:
            loop.run_until_complete(opened.__aexit__(None, None, None))


def replicas_of(broker: BrokerData, read_from: str) -> tuple[str, ...]:
    """The addresses to read a broker's queues from, the best first."""
    master = [address for broker_id, address in broker.broker_addrs.items() if broker_id == MASTER_ID]
    slaves = [address for broker_id, address in broker.broker_addrs.items() if broker_id != MASTER_ID]
    random.shuffle(slaves)
    if read_from == MASTER:
        # A slave is read for a master that does not answer, as consumers do it; whether it may be, it knows.
        return tuple(master + slaves)
    # Whoever spares masters would rather read them than fail, if he says so.
    return tuple(slaves + master) if read_from == ANY else tuple(slaves)


async def addresses_of(queue: MessageQueue, options: RocketMQOptions, wire: Wire) -> tuple[str, ...]:
    """Who has a queue now, the best first: after a failover that is somebody else."""
    route = await NameServers(options.client_settings, wire.remoting).route_of(queue.topic)
    found = (broker for broker in route.broker_datas if broker.broker_name == queue.broker_name)
    return tuple(address for broker in found for address in replicas_of(broker, options.read_from))


async def _look_up(options: RocketMQOptions, *, with_epochs: bool) -> list[QueueState]:
    async with wired(options.client_settings) as wire:
        names = NameServers(options.client_settings, wire.remoting)
        topics = await _topics(options, wire)
        found = [one for topic in sorted(topics) for one in await _queues(topic, options, names)]
        if options.assign:
            known = {one.queue for one in found}
            for queue in sorted(options.assign - known):
                raise UnknownName("queue", queue_name(queue), map(queue_name, known))
            found = [one for one in found if one.queue in options.assign]
        states = list(await asyncio.gather(*(_state(wire, one, options) for one in found)))
        return await _with_epochs(wire, states) if with_epochs else states


async def _with_epochs(wire: Wire, states: list[QueueState]) -> list[QueueState]:
    """The same, with the epochs of each broker's log where brokers are under a controller."""
    answering = sorted({state.addresses[0] for state in states})
    epochs = dict(zip(answering, await asyncio.gather(*(_epochs(wire, at) for at in answering)), strict=True))
    return [replace(state, epochs=epochs[state.addresses[0]]) for state in states]


async def _epochs(wire: Wire, address: str) -> tuple[Epoch, ...]:
    try:
        told = await broker_epochs(wire, address)
    except MQError:
        # Without a controller a broker knows no epochs, and most are not even asked such things.
        return ()
    return tuple(Epoch(one.epoch, one.start) for one in told.epochs)


async def _topics(options: RocketMQOptions, wire: Wire) -> Iterable[str]:
    if options.assign:
        return {queue.topic for queue in options.assign}
    if options.pattern is None:
        return options.subscribe
    known = await _all_topics(options, wire)
    found = {topic for topic in known if re.fullmatch(options.pattern, topic)}
    if not found:
        raise NoTopic(
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


class _Found(NamedTuple):
    """A queue of the route: who has it, the best first, who of them is master, and of which cluster."""

    queue: MessageQueue
    addresses: tuple[str, ...]
    master: str | None
    cluster: str


async def _queues(topic: str, options: RocketMQOptions, names: NameServers) -> list[_Found]:
    try:
        route = await names.route_of(topic)
    except TopicNotFound as error:
        raise NoTopic(f"topic {topic} does not exist; the name servers have no route to it") from error
    brokers = {broker.broker_name: broker for broker in route.broker_datas}
    found: list[_Found] = []
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
            found.append(_Found(queue, addresses, broker.master_addr, broker.cluster))
    return found


async def _state(wire: Wire, found: "_Found", options: RocketMQOptions) -> QueueState:
    """Ask the replicas in turn; whoever answers is read first."""

    async def ask(address: str) -> QueueState:
        others = (other for other in found.addresses if other != address)
        state = await _ask_state(wire, found.queue, address, (address, *others), options)
        return replace(state, is_of_master=address == found.master, cluster=found.cluster)

    return await _first_answer(found.queue, found.addresses, ask)


async def _first_answer(
    queue: MessageQueue, addresses: Iterable[str], ask: Callable[[str], Awaitable[_Answer]]
) -> _Answer:
    """What the first replica says that answers. Raises what will not pass, or the last failure."""
    failure: MQError = SparkError(f"nobody is known who has {queue_name(queue)}")
    for address in addresses:
        try:
            return await ask(address)
        except (RemotingError, ResponseError) as error:
            if isinstance(error, ResponseError) and not error.retriable:
                raise
            failure = error
    raise failure


async def _ask_state(
    wire: Wire, queue: MessageQueue, address: str, addresses: tuple[str, ...], options: RocketMQOptions
) -> QueueState:
    topic, queue_id = queue.topic, queue.queue_id

    async def at_time(bound: Bound | None) -> int | None:
        if bound is None or bound.timestamp_ms is None:
            return None
        return await _offset_at(wire, queue, address, bound.timestamp_ms)

    least = TopicQueueRequest(topic=topic, queue_id=queue_id)
    most = GetMaxOffsetRequest(topic=topic, queue_id=queue_id)
    return QueueState(
        queue=queue,
        addresses=addresses,
        min_offset=await _offset(wire, address, RequestCode.GET_MIN_OFFSET, least),
        max_offset=await _offset(wire, address, RequestCode.GET_MAX_OFFSET, most),
        group_offset=await group_offset(wire, queue, address, options.group)
        if options.start is not None and options.start.word == GROUP
        else None,
        start_at_time=await at_time(options.start),
        end_at_time=await at_time(options.end),
    )


async def _offset(wire: Wire, address: str, code: RequestCode, header: Header) -> int:
    answer = await wire.ask(address, Command.request(code, header))
    return answer.header(QueueOffsetResponse).queue_offset


async def _offset_at(wire: Wire, queue: MessageQueue, address: str, timestamp_ms: int) -> int:
    header = SearchOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, timestamp_ms=timestamp_ms)
    return await _offset(wire, address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)


async def group_offset(wire: Wire, queue: MessageQueue, address: str, group: str) -> int | None:
    """How far a group is in a queue, by one replica; None if it never committed there."""
    header = QueryConsumerOffsetRequest(consumer_group=group, topic=queue.topic, queue_id=queue.queue_id)
    command = Command.request(RequestCode.QUERY_CONSUMER_OFFSET, header)
    answer = await wire.ask(address, command, accepted=_OFFSET_OR_NONE)
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    return answer.header(ConsumerOffsetResponse).consumer_offset


def _nobody_cares(_address: str) -> None:
    pass
