"""Topics: made, changed and deleted on brokers, and what is known of them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tanist.admin import topic_changes
from tanist.admin.cluster import cluster_info, topic_route, topic_stats
from tanist.admin.nameservers import ORDER_NAMESPACE, get_value, put_value
from tanist.admin.parallel import Told, ask_each, in_parallel
from tanist.admin.refused import NotThere
from tanist.admin.replication import cluster_masters
from tanist.admin.rows import Row
from tanist.client.queues.allocation import Averagely, sort_queues
from tanist.client.session.wire import Wire
from tanist.errors import ConfigError, ResponseError
from tanist.model.route import BrokerData, MessageQueue, TopicRouteData
from tanist.model.topics import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    TopicConfig,
    TopicSysFlag,
)
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.sync import TopicConfigList
from tanist.protocol.bodies.tables import GroupList, TopicList
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.java_json import BAD_JSON, decode_java_json
from tanist.protocol.response_errors import NotFound


class TopicRow(Row, frozen=True, kw_only=True):
    """A topic, and who consumes it in one cluster."""

    cluster_name: str
    topic: str
    consumer_group: str | None


class TopicQueueRow(Row, frozen=True, kw_only=True):
    """What one queue of a topic holds: ``[min_offset, max_offset)``."""

    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int
    last_updated_at_ms: int


class OfferRow(Row, frozen=True, kw_only=True):
    """What one broker offers of a topic."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    broker_addrs: list[str]


def read_attributes(text: str | None) -> str | None:
    """The attributes of a topic as brokers want them: ``+key=value,-key``. Raises ConfigError.

    >>> read_attributes("+message.type=FIFO")
    '+message.type=FIFO'
    """
    for part in (text or "").split(",") if text else []:
        if not part.strip().startswith(("+", "-")) or ("=" in part) != part.strip().startswith("+"):
            raise ConfigError("attributes", text, "+key=value to set one and -key to drop it, with commas")
    return text


def sys_flag_of(*, is_unit: bool, has_unit_sub: bool) -> int:
    """The flag that says of a topic that it is of one unit of several."""
    return int((TopicSysFlag.UNIT if is_unit else 0) | (TopicSysFlag.UNIT_SUB if has_unit_sub else 0))


async def update_topic(
    wire: Wire, addresses: Sequence[str], config: TopicConfig, *, attributes: str | None = None
) -> list[Told[None]]:
    """Create a topic on these brokers, or change it."""
    return await ask_each(
        addresses, lambda each: topic_changes.update_topic(wire, each, config, attributes=attributes)
    )


async def order_of(wire: Wire, name_server: str, topic: str) -> dict[str, int]:
    """Which queues of an ordered topic each broker has, as a name server keeps it."""
    try:
        kept = await get_value(wire, name_server, namespace=ORDER_NAMESPACE, key=topic) or ""
    except NotFound:
        return {}
    pairs = [part.rpartition(":") for part in kept.split(";")]
    return {
        name.strip(): int(count) for name, _, count in pairs if name.strip() and count.strip().isdecimal()
    }


async def set_order(wire: Wire, name_servers: Sequence[str], *, topic: str, queues: Mapping[str, int]) -> str:
    """Tell name servers which queues of an ordered topic each broker has; what they keep."""
    kept = ";".join(f"{broker_name}:{count}" for broker_name, count in sorted(queues.items()))
    for told in await put_value(wire, name_servers, namespace=ORDER_NAMESPACE, key=topic, value=kept):
        if told.failure is not None:
            raise told.failure
    return kept


async def broker_names(wire: Wire, name_server: str, addresses: Iterable[str]) -> dict[str, str]:
    """The names of these brokers, by address."""
    info = await cluster_info(wire, name_server)
    wanted = set(addresses)
    return {
        address: group.broker_name
        for group in info.broker_addr_table.values()
        for address in group.broker_addrs.values()
        if address in wanted
    }


async def update_topics(wire: Wire, addresses: Sequence[str], configs: list[TopicConfig]) -> list[Told[None]]:
    """Create many topics on these brokers, or change them, in one request each."""
    body = encode_body(TopicConfigList(configs=configs))

    async def update(address: str) -> None:
        await wire.ask(address, Command.request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body))

    return await ask_each(addresses, update)


def read_topic_configs(data: bytes) -> list[TopicConfig]:
    """The topics in a file for ``updateTopicList``. Raises ConfigError for one that makes no sense."""
    try:
        return msgspec.json.decode(data, type=list[TopicConfig], strict=False)
    except BAD_JSON as error:
        raise ConfigError("filename", "...", f'a JSON array of {{"topicName": …}} ({error})') from error


async def update_permission(
    wire: Wire, route: TopicRouteData, addresses: Sequence[str], *, topic: str, permission: int
) -> list[Told[None]]:
    """Change only what may be done with a topic, on those of its brokers that are masters at these addresses.

    Raises NotThere if none of them has the topic.
    """
    offers = {offer.broker_name: offer for offer in route.queue_datas}
    told: list[Told[None]] = []
    for broker in sorted(route.broker_datas, key=lambda each: each.broker_name):
        address, offer = broker.master_addr, offers.get(broker.broker_name)
        if address is not None and address in addresses and offer is not None:
            config = TopicConfig(
                topic_name=topic,
                read_queue_count=offer.read_queue_count,
                write_queue_count=offer.write_queue_count,
                topic_sys_flag=offer.topic_sys_flag,
                perm=permission,
            )
            told += await update_topic(wire, [address], config)
    if not told:
        raise NotThere(f"none of {', '.join(addresses)} is a master that has the topic {topic}")
    return told


async def delete_topic(
    wire: Wire, name_servers: Sequence[str], name_server: str, *, cluster: str, topic: str
) -> list[Told[None]]:
    """Delete a topic on all masters of a cluster that answer, whose slaves follow, and its routes."""
    addresses = await cluster_masters(wire, name_server, cluster)
    told = await ask_each(addresses, lambda each: topic_changes.delete_topic_at_broker(wire, each, topic))
    return told + await ask_each(
        name_servers,
        lambda each: topic_changes.delete_topic_at_name_server(wire, each, topic, cluster=cluster),
    )


async def topic_names(wire: Wire, name_server: str) -> list[str]:
    """All topics that the name server knows, by name."""
    code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
    answer = await wire.ask(name_server, Command.request(code))
    return sorted(decode_java_json(answer.body, TopicList).topics)


async def consuming_groups(wire: Wire, route: TopicRouteData, topic: str) -> list[str]:
    """The groups that have offsets in a topic, or members that want it."""

    async def look(broker: BrokerData) -> frozenset[str]:
        command = Command.request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicRequest(topic=topic))
        return decode_java_json((await wire.ask(some_address(broker), command)).body, GroupList).groups

    found = await in_parallel([each for each in route.broker_datas if each.broker_addrs], look)
    return sorted({group for groups in found for group in groups})


async def topics_by_cluster(wire: Wire, name_server: str) -> list[TopicRow]:
    """Every topic but those of retries and dead letters, with its cluster and the groups that consume it."""
    names = [
        name
        for name in await topic_names(wire, name_server)
        if not name.startswith((RETRY_PREFIX, DLQ_PREFIX))
    ]

    async def look(topic: str) -> list[TopicRow]:
        try:
            route = await topic_route(wire, name_server, topic)
            groups: Sequence[str | None] = await consuming_groups(wire, route, topic) or [None]
        except ResponseError:
            # It was deleted since, or a broker does not tell.
            return []
        cluster = min(clusters_in(route), default="")
        return [TopicRow(cluster_name=cluster, topic=topic, consumer_group=group) for group in groups]

    return [row for rows in await in_parallel(names, look, at_once=8) for row in rows]


async def topic_queues(wire: Wire, route: TopicRouteData, topic: str) -> list[TopicQueueRow]:
    """What each queue of a topic holds, at all its brokers."""

    async def look(broker: BrokerData) -> list[TopicQueueRow]:
        stats = await topic_stats(wire, some_address(broker), topic)
        return [
            TopicQueueRow(
                broker_name=queue.broker_name,
                queue_id=queue.queue_id,
                min_offset=found.min_offset,
                max_offset=found.max_offset,
                last_updated_at_ms=found.last_update_timestamp_ms,
            )
            for queue, found in sorted(stats.offset_table.items())
        ]

    brokers = sorted(route.broker_datas, key=lambda each: each.broker_name)
    return [
        row
        for rows in await in_parallel([each for each in brokers if each.broker_addrs], look)
        for row in rows
    ]


def clusters_in(route: TopicRouteData) -> list[str]:
    """The clusters that a route leads to."""
    return sorted({broker.cluster for broker in route.broker_datas})


def offers_of(route: TopicRouteData) -> list[OfferRow]:
    """A route as a table."""
    addresses = {broker.broker_name: broker.broker_addrs for broker in route.broker_datas}
    return [
        OfferRow(
            broker_name=offer.broker_name,
            read_queue_nums=offer.read_queue_count,
            write_queue_nums=offer.write_queue_count,
            perm=offer.perm,
            broker_addrs=[
                f"{broker_id}:{address}"
                for broker_id, address in sorted(addresses.get(offer.broker_name, {}).items())
            ],
        )
        for offer in sorted(route.queue_datas, key=lambda each: each.broker_name)
    ]


def share_out(route: TopicRouteData, topic: str, clients: Sequence[str]) -> dict[str, list[MessageQueue]]:
    """Which queues each of these clients would get, if they shared them as clients do by default."""
    queues = sort_queues(
        MessageQueue(topic=topic, broker_name=offer.broker_name, queue_id=queue_id)
        for offer in route.queue_datas
        if offer.is_readable
        for queue_id in range(offer.read_queue_count)
    )
    share = Averagely()
    return {client: list(share.allocate("", client, queues, clients)) for client in clients}


def some_address(broker: BrokerData) -> str:
    """Where to ask a group: at its master, or at its first slave while it has none."""
    return broker.broker_addrs[min(broker.broker_addrs)]
