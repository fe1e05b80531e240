"""Messages looked up: by id, by key, by their place in a queue, and what their clients told of them."""

from collections.abc import Sequence
from contextlib import suppress

from tanist.admin.cluster import topic_route
from tanist.admin.groups import group_brokers
from tanist.admin.message_search import (
    ALWAYS,
    Holder,
    Standing,
    TimeSpan,
    Track,
    first_answer,
    groups_of,
    message_of_id,
    messages_by_key,
    replicas_of,
    track_message,
)
from tanist.admin.parallel import in_parallel
from tanist.admin.refused import NotThere
from tanist.admin.rows import Row
from tanist.client.received import ReceivedMessage
from tanist.client.session.wire import Wire
from tanist.client.tracing.trace_format import Trace, decode_traces
from tanist.errors import RemoteProtocolError
from tanist.model.host import host_and_port, unpack_host
from tanist.model.offsets import QueueOffset
from tanist.model.route import BrokerData
from tanist.model.topics import TRACE_TOPIC
from tanist.protocol.bodies.running import ConsumeDirectlyResult
from tanist.protocol.bodies.stats import ConsumeQueueView
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.client import ConsumeMessageDirectlyRequest
from tanist.protocol.headers.messages import QueryConsumeQueueRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.message_id import OffsetId, decode_offset_id

DEFAULT_COUNT = 64
"""So many messages ``mqadmin`` asks for."""
_QUERY_TIMEOUT_S = 15.0


class KeyRow(Row, frozen=True, kw_only=True):
    """One of several messages with a key."""

    message_id: str
    broker_name: str
    queue_id: int
    queue_offset: int
    stored_at_ms: int


class MessageView(Row, frozen=True, kw_only=True):
    """One message, whole."""

    message_id: str
    offset_id: str
    topic: str
    tags: str | None
    keys: list[str]
    broker_name: str
    queue_id: int
    queue_offset: int
    log_offset: int
    reconsume_times: int
    born_at_ms: int
    stored_at_ms: int
    born_host: str
    store_host: str
    properties: dict[str, str]
    body_bytes: int
    body: str


async def find_by_id(wire: Wire, name_server: str, *, topic: str, message_id: str) -> list[ReceivedMessage]:
    """The messages with this id: the one its producer gave it, or that of its place in a log.

    Raises NotThere if no broker of the topic has one.
    """
    brokers = (await topic_route(wire, name_server, topic)).broker_datas
    # Most texts are no id of a place, and such an id may well be another cluster's.
    with suppress(RemoteProtocolError, NotThere):
        holders = _holders(brokers, decode_offset_id(message_id))
        return [(await message_of_id(wire, holders, message_id, topic=topic))[0]]
    return await find_by_key(wire, name_server, topic=topic, key=message_id, is_unique_key=True, what="id")


def _holders(brokers: Sequence[BrokerData], place: OffsetId) -> list[Holder]:
    """Who may have a message of this place: the replicas of its broker, or all if none is listed there."""
    address = host_and_port(*unpack_host(place.store_host))
    named = [each for each in brokers if address in each.broker_addrs.values()]
    return [holder for broker in named or brokers for holder in replicas_of(broker)]


async def find_by_key(
    wire: Wire,
    name_server: str,
    *,
    topic: str,
    key: str,
    max_count: int = DEFAULT_COUNT,
    span: TimeSpan = ALWAYS,
    is_unique_key: bool = False,
    what: str = "key",
) -> list[ReceivedMessage]:
    """The messages with a key at all brokers of a topic, the oldest first. Raises NotThere for none."""

    async def ask(holder: Holder) -> list[ReceivedMessage]:
        return await messages_by_key(
            wire, holder, topic, key, is_unique=is_unique_key, span=span, max_count=max_count
        )

    route = await topic_route(wire, name_server, topic)
    brokers = [each for each in route.broker_datas if each.broker_addrs]
    parts = await in_parallel(brokers, lambda broker: first_answer(replicas_of(broker), ask))
    found = sorted((each for part in parts for each in part), key=lambda each: each.store_timestamp_ms)
    if not found:
        raise NotThere(f"no broker of {topic} has a message with the {what} {key}; it may be deleted already")
    return found[:max_count]


async def find_traces(
    wire: Wire,
    name_server: str,
    *,
    message_id: str,
    topic: str | None,
    span: TimeSpan,
    max_count: int,
) -> list[Trace]:
    """What clients told of a message, if they were told to, the oldest first."""
    found = await find_by_key(
        wire,
        name_server,
        topic=topic or TRACE_TOPIC,
        key=message_id,
        max_count=max_count,
        span=span,
        what="trace of",
    )
    traces = [trace for message in found for trace in decode_traces(message.body.decode("utf-8", "replace"))]
    wanted = [trace for trace in traces if trace.message_id == message_id]
    return sorted(wanted, key=lambda trace: trace.timestamp_ms)


async def consume_directly(
    wire: Wire, name_server: str, *, group: str, client_id: str, message: ReceivedMessage
) -> ConsumeDirectlyResult:
    """Have one client consume one message now, at whichever offset it stands.

    Who stored it may be gone: the first replica that can be reached hands it on.
    """
    header = ConsumeMessageDirectlyRequest(
        consumer_group=group,
        client_id=client_id,
        msg_id=message.offset_id,
        topic=message.queue.topic,
        broker_name=message.queue.broker_name,
    )

    async def ask(holder: Holder) -> ConsumeDirectlyResult:
        command = Command.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        answer = await wire.ask(holder.address, command, timeout_s=_QUERY_TIMEOUT_S)
        return decode_java_json(answer.body, ConsumeDirectlyResult)

    return await first_answer(await holders_of(wire, name_server, message), ask)


async def tracks_of(wire: Wire, name_server: str, message: ReceivedMessage) -> list[Track]:
    """Each group of a message's topic, and what became of the message there, as the first replica tells."""

    async def look(holder: Holder) -> list[Track]:
        groups = await groups_of(wire, holder, message.queue.topic)
        return await in_parallel(groups, lambda group: track(holder, group))

    async def track(holder: Holder, group: str) -> Track:
        try:
            await group_brokers(wire, name_server, group)
        except NotThere as error:
            # Only its offsets are there, as of a group that pulls by itself: mqadmin does not know it either.
            return Track(group, Standing.UNKNOWN, is_online=False, consumer_offset=None, note=str(error))
        return await track_message(wire, holder, message, group)

    return await first_answer(await holders_of(wire, name_server, message), look)


async def holders_of(wire: Wire, name_server: str, message: ReceivedMessage) -> list[Holder]:
    """The replicas of the broker that a message was found at, its master first. Raises NotThere."""
    queue = message.queue
    route = await topic_route(wire, name_server, queue.topic)
    found = [each for each in route.broker_datas if each.broker_name == queue.broker_name]
    if not found:
        raise NotThere(f"no broker {queue.broker_name} has the topic {queue.topic} any more")
    return replicas_of(found[0])


async def queue_entries(
    wire: Wire, address: str, *, topic: str, queue_id: int, start: int, count: int, group: str | None
) -> ConsumeQueueView:
    """Raw entries of a consume queue."""
    header = QueryConsumeQueueRequest(
        topic=topic, queue_id=queue_id, queue_offset=QueueOffset(start), count=count, consumer_group=group
    )
    answer = await wire.ask(address, Command.request(RequestCode.QUERY_CONSUME_QUEUE, header))
    return decode_java_json(answer.body, ConsumeQueueView)


def key_rows(messages: Sequence[ReceivedMessage]) -> list[KeyRow]:
    """Messages as a table."""
    return [
        KeyRow(
            message_id=each.message_id,
            broker_name=each.queue.broker_name,
            queue_id=each.queue.queue_id,
            queue_offset=each.queue_offset,
            stored_at_ms=each.store_timestamp_ms,
        )
        for each in messages
    ]


def view_of(message: ReceivedMessage, *, charset: str = "utf-8") -> MessageView:
    """A message as operators read it; bytes of the body that are no text are shown as such."""
    return MessageView(
        message_id=message.message_id,
        offset_id=message.offset_id,
        topic=message.topic,
        tags=message.tags,
        keys=message.keys,
        broker_name=message.queue.broker_name,
        queue_id=message.queue.queue_id,
        queue_offset=message.queue_offset,
        log_offset=message.log_offset,
        reconsume_times=message.reconsume_times,
        born_at_ms=message.born_timestamp_ms,
        stored_at_ms=message.store_timestamp_ms,
        born_host=host_and_port(*message.born_host),
        store_host=host_and_port(*message.store_host),
        properties=message.properties,
        body_bytes=len(message.body),
        body=message.body.decode(charset, "backslashreplace"),
    )
