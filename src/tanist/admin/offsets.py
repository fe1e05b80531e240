"""Where groups stand: how far they are behind, queue by queue, and one group's offsets given to another."""

from collections.abc import Iterable, Sequence

from tanist.admin.cluster import broker_consume_stats, topic_route
from tanist.admin.groups import addresses_in, group_brokers, group_members
from tanist.admin.parallel import Told, ask_each, in_parallel
from tanist.admin.rows import Row
from tanist.admin.topics import topic_names
from tanist.client.session.wire import Wire
from tanist.errors import MQError, ResponseError
from tanist.model.route import MessageQueue
from tanist.model.topics import RETRY_PREFIX
from tanist.protocol.bodies.running import ConsumerStatus
from tanist.protocol.bodies.stats import ConsumeStats, QueueConsumeStats
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.groups import GetConsumeStatsRequest
from tanist.protocol.headers.offsets import CloneGroupOffsetRequest
from tanist.protocol.headers.reset import InvokeConsumerStatusRequest
from tanist.protocol.java_json import decode_java_json

_STATS_TIMEOUT_S = 15.0


class ProgressRow(Row, frozen=True, kw_only=True):
    """One queue as a group sees it. ``inflight`` was pulled and is not consumed yet."""

    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    diff: int
    inflight: int
    client_ip: str | None
    last_consumed_at_ms: int


class Progress(Row, frozen=True, kw_only=True):
    """How far one group is behind."""

    group: str
    consume_tps: float
    diff_total: int
    inflight_total: int
    queues: list[ProgressRow]


class GroupRow(Row, frozen=True, kw_only=True):
    """One group among all: who is there of it, and how far it is behind."""

    group: str
    count: int
    version: int | None
    consume_type: str | None
    message_model: str | None
    consume_tps: float
    diff_total: int


class BehindRow(Row, frozen=True, kw_only=True):
    """One queue of a broker as one of its groups sees it."""

    topic: str
    group: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    diff: int
    last_consumed_at_ms: int


async def consume_stats(wire: Wire, address: str, group: str, topic: str | None = None) -> ConsumeStats:
    """How far a group is behind on one broker."""
    header = GetConsumeStatsRequest(consumer_group=group, topic=topic)
    answer = await wire.ask(
        address, Command.request(RequestCode.GET_CONSUME_STATS, header), timeout_s=_STATS_TIMEOUT_S
    )
    return decode_java_json(answer.body, ConsumeStats)


async def group_progress(
    wire: Wire, name_server: str, group: str, *, topic: str | None = None, with_clients: bool = False
) -> Progress:
    """How far a group is behind on all brokers, in one topic or in all that it consumes.

    Raises NotThere for a group that no broker knows: it has no retry topic then.
    """
    addresses = await group_brokers(wire, name_server, group)
    found = await in_parallel(addresses, lambda address: consume_stats(wire, address, group, topic))
    owners = await _owners(wire, addresses, found, group) if with_clients else {}
    return progress_of(group, found, owners)


def progress_of(
    group: str, found: Sequence[ConsumeStats], owners: dict[MessageQueue, str] | None = None
) -> Progress:
    """The figures of several brokers as one table, queue by queue."""
    queues = {queue: stats for part in found for queue, stats in part.offset_table.items()}
    rows = [_row(queue, stats, (owners or {}).get(queue)) for queue, stats in sorted(queues.items())]
    return Progress(
        group=group,
        consume_tps=sum(part.consume_tps for part in found),
        diff_total=sum(row.diff for row in rows),
        inflight_total=sum(row.inflight for row in rows),
        queues=rows,
    )


async def all_groups(wire: Wire, name_server: str) -> list[GroupRow]:
    """Every group that brokers keep retries for: its members and how far it is behind."""
    names = [name for name in await topic_names(wire, name_server) if name.startswith(RETRY_PREFIX)]

    async def look(topic: str) -> GroupRow:
        group = topic.removeprefix(RETRY_PREFIX)
        try:
            progress = await group_progress(wire, name_server, group)
        except MQError:
            # It consumes nothing, or was deleted since.
            progress = progress_of(group, [])
        try:
            members = await group_members(wire, name_server, group)
        except ResponseError:
            members = None
        return GroupRow(
            group=group,
            count=0 if members is None else len(members.connections),
            version=None if members is None else min(each.version for each in members.connections),
            consume_type=None if members is None else members.consume_type,
            message_model=None if members is None else members.message_model,
            consume_tps=progress.consume_tps,
            diff_total=progress.diff_total,
        )

    rows = await in_parallel(names, look, at_once=8)
    return sorted(rows, key=lambda row: (-row.diff_total, row.group))


async def broker_progress(
    wire: Wire, address: str, *, is_ordered: bool, least_diff: int
) -> tuple[list[BehindRow], int]:
    """Every queue of a broker on which a group is at least so far behind, and how far all are together."""
    stats = await broker_consume_stats(wire, address, is_ordered=is_ordered)
    rows = [
        BehindRow(
            topic=queue.topic,
            group=group,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            broker_offset=found.broker_offset,
            consumer_offset=found.consumer_offset,
            diff=found.broker_offset - found.consumer_offset,
            last_consumed_at_ms=found.last_timestamp_ms,
        )
        for item in stats.consume_stats_list
        for group, parts in item.items()
        for part in parts
        for queue, found in part.offset_table.items()
        if found.broker_offset - found.consumer_offset >= least_diff
    ]
    return sorted(rows, key=lambda row: (row.topic, row.group, row.queue_id)), stats.total_diff


async def clone_group_offset(
    wire: Wire, name_server: str, *, source: str, destination: str, topic: str, is_offline: bool
) -> list[Told[None]]:
    """Let a group go on where another one stands in a topic, on all its brokers."""
    header = CloneGroupOffsetRequest(
        source_group=source, destination_group=destination, topic=topic, is_offline=is_offline
    )

    async def clone(address: str) -> None:
        await wire.ask(address, Command.request(RequestCode.CLONE_GROUP_OFFSET, header))

    return await ask_each(addresses_in(await topic_route(wire, name_server, topic)), clone)


def _row(queue: MessageQueue, stats: QueueConsumeStats, client_ip: str | None) -> ProgressRow:
    pulled_to = stats.consumer_offset if stats.pull_offset is None else stats.pull_offset
    return ProgressRow(
        topic=queue.topic,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        broker_offset=stats.broker_offset,
        consumer_offset=stats.consumer_offset,
        diff=stats.broker_offset - stats.consumer_offset,
        inflight=max(0, pulled_to - stats.consumer_offset),
        client_ip=client_ip,
        last_consumed_at_ms=stats.last_timestamp_ms,
    )


async def _owners(
    wire: Wire, addresses: Sequence[str], found: Iterable[ConsumeStats], group: str
) -> dict[MessageQueue, str]:
    """Which client has which queue, as the clients say."""
    topics = sorted({queue.topic for part in found for queue in part.offset_table})
    owners: dict[MessageQueue, str] = {}

    async def look(topic: str) -> None:
        header = InvokeConsumerStatusRequest(topic=topic, group=group)
        command = Command.request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
        for told in await ask_each(
            addresses, lambda address: wire.ask(address, command, timeout_s=_STATS_TIMEOUT_S)
        ):
            if told.value is not None:
                table = decode_java_json(told.value.body, ConsumerStatus).consumer_table
                for client_id, queues in table.items():
                    owners.update(dict.fromkeys(queues, client_id.partition("@")[0]))

    await in_parallel(topics, look)
    return owners
