"""Topics: make, change, delete and look at them."""

from typing import BinaryIO

import click

from tanist.admin import topics
from tanist.admin.cluster import topic_route
from tanist.admin.nameservers import ORDER_NAMESPACE, delete_value, get_value, put_value
from tanist.cli.commanding import TOPIC, WHOM, Asker, command
from tanist.cli.shown import Shown, done_at, listing
from tanist.errors import ConfigError
from tanist.model.topics import TopicConfig

_DEFAULT_QUEUES = 8
_PERMISSION = click.IntRange(0, 15)
FILE = click.option(
    "-f",
    "--filename",
    "file",
    required=True,
    type=click.File("rb"),
    help="A file with a JSON array.",
)


@command(
    "updateTopic",
    *WHOM,
    TOPIC,
    click.option("-r", "--readQueueNums", "reads", type=click.IntRange(1), default=_DEFAULT_QUEUES),
    click.option("-w", "--writeQueueNums", "writes", type=click.IntRange(1), default=_DEFAULT_QUEUES),
    click.option("-p", "--perm", type=_PERMISSION, default=6, help="2 to write, 4 to read, 6 for both."),
    click.option("-o", "--order", "is_ordered", type=bool, default=False, help="Whether it is ordered."),
    click.option("-u", "--unit", "is_unit", type=bool, default=False, help="Whether it is of a unit."),
    click.option("-s", "--hasUnitSub", "has_unit_sub", type=bool, default=False),
    click.option("-a", "--attributes", help="+key=value,-key"),
)
async def update_topic(
    ask: Asker,
    *,
    address: str | None,
    cluster: str | None,
    topic: str,
    reads: int,
    writes: int,
    perm: int,
    is_ordered: bool,
    is_unit: bool,
    has_unit_sub: bool,
    attributes: str | None,
) -> Shown:
    """Create a topic on a broker or on all masters of a cluster, or change it."""
    config = TopicConfig(
        topic_name=topic,
        read_queue_count=reads,
        write_queue_count=writes,
        perm=perm,
        is_ordered=is_ordered,
        topic_sys_flag=topics.sys_flag_of(is_unit=is_unit, has_unit_sub=has_unit_sub),
    )
    wanted = topics.read_attributes(attributes)
    addresses = await ask.brokers(address, cluster)
    shown = done_at(
        await topics.update_topic(ask.wire, addresses, config, attributes=wanted), f"topic {topic} is there"
    )
    if not is_ordered or shown.exit_code:
        return shown
    name_server = await ask.name_server()
    names = await topics.broker_names(ask.wire, name_server, addresses)
    # One broker of several: what is kept of the others stays.
    others = await topics.order_of(ask.wire, name_server, topic) if address is not None else {}
    queues = others | dict.fromkeys(names.values(), writes)
    kept = await topics.set_order(ask.wire, ask.name_servers, topic=topic, queues=queues)
    return Shown(shown.value, [*shown.parts, f"order of {topic}: {kept}"])


@command("updateTopicList", *WHOM, FILE)
async def update_topic_list(ask: Asker, *, address: str | None, cluster: str | None, file: BinaryIO) -> Shown:
    """Create many topics, or change them, from a file: [{"topicName": "Orders", "readQueueNums": 8}, …]."""
    configs = topics.read_topic_configs(file.read())
    told = await topics.update_topics(ask.wire, await ask.brokers(address, cluster), configs)
    return done_at(told, f"{len(configs)} topics are there")


@command("updateTopicPerm", *WHOM, TOPIC, click.option("-p", "--perm", type=_PERMISSION, required=True))
async def update_topic_perm(
    ask: Asker, *, address: str | None, cluster: str | None, topic: str, perm: int
) -> Shown:
    """Change what may be done with a topic: 2 to write, 4 to read, 6 for both."""
    addresses = await ask.brokers(address, cluster)
    route = await topic_route(ask.wire, await ask.name_server(), topic)
    told = await topics.update_permission(ask.wire, route, addresses, topic=topic, permission=perm)
    return done_at(told, f"permission of {topic} is {perm}")


@command(
    "deleteTopic",
    TOPIC,
    click.option("-c", "--clusterName", "cluster", required=True, help="On all masters of this cluster."),
)
async def delete_topic(ask: Asker, *, cluster: str, topic: str) -> Shown:
    """Delete a topic with its messages on all masters of a cluster, whose slaves follow, and its routes."""
    told = await topics.delete_topic(
        ask.wire, ask.name_servers, await ask.name_server(), cluster=cluster, topic=topic
    )
    return done_at(told, f"topic {topic} is deleted")


@command(
    "topicRoute",
    TOPIC,
    click.option("-l", "--list", "is_list", is_flag=True, help="As a table."),
    repeats=True,
)
async def show_route(ask: Asker, *, topic: str, is_list: bool) -> Shown:
    """Show where a topic lives: its brokers, their queues and what may be done there."""
    del is_list  # Ours is a table in any case; mqadmin prints JSON without it.
    route = await topic_route(ask.wire, await ask.name_server(), topic)
    parts = listing(topics.offers_of(route), topics.OfferRow).parts
    order = [f"order: {route.order_topic_conf}"] if route.order_topic_conf else []
    return Shown(route, [*parts, *order])


@command(
    "topicStatus",
    TOPIC,
    click.option("-c", "--cluster", help="Where to find the route of a light queue: its parent topic."),
    repeats=True,
)
async def topic_status(ask: Asker, *, topic: str, cluster: str | None) -> Shown:
    """Show what each queue of a topic holds, and when it got its last message."""
    route = await topic_route(ask.wire, await ask.name_server(), cluster or topic)
    return listing(await topics.topic_queues(ask.wire, route, topic), topics.TopicQueueRow)


@command("topicClusterList", TOPIC, repeats=True)
async def topic_clusters(ask: Asker, *, topic: str) -> Shown:
    """Show which clusters have a topic."""
    found = topics.clusters_in(await topic_route(ask.wire, await ask.name_server(), topic))
    return Shown(found, found)


@command(
    "topicList",
    click.option("-c", "--clusterModel", "by_cluster", is_flag=True, help="With clusters and groups."),
    repeats=True,
)
async def topic_list(ask: Asker, *, by_cluster: bool) -> Shown:
    """Show all topics that the name server knows."""
    name_server = await ask.name_server()
    if by_cluster:
        return listing(await topics.topics_by_cluster(ask.wire, name_server), topics.TopicRow)
    found = await topics.topic_names(ask.wire, name_server)
    return Shown(found, found)


@command(
    "allocateMQ",
    TOPIC,
    click.option("-i", "--ipList", "clients", required=True, help="The clients, separated by commas."),
    repeats=True,
)
async def allocate_queues(ask: Asker, *, topic: str, clients: str) -> Shown:
    """Show which queues of a topic each of these clients would get, if they shared them evenly."""
    route = await topic_route(ask.wire, await ask.name_server(), topic)
    shares = topics.share_out(route, topic, [each.strip() for each in clients.split(",") if each.strip()])
    lines = [
        f"{client}: {', '.join(f'{each.broker_name}:{each.queue_id}' for each in queues) or 'nothing'}"
        for client, queues in shares.items()
    ]
    return Shown({"result": shares}, lines)


@command(
    "updateOrderConf",
    TOPIC,
    click.option("-m", "--method", type=click.Choice(["put", "get", "delete"]), required=True),
    click.option("-v", "--orderConf", "order", help="broker-a:4;broker-b:4"),
)
async def update_order(ask: Asker, *, topic: str, method: str, order: str | None) -> Shown:
    """Set, show or delete which queues of an ordered topic each broker has."""
    if method == "get":
        value = await get_value(ask.wire, await ask.name_server(), namespace=ORDER_NAMESPACE, key=topic)
        return Shown({"topic": topic, "orderConf": value}, [f"{topic}: {value}"])
    if method == "delete":
        told = await delete_value(ask.wire, ask.name_servers, namespace=ORDER_NAMESPACE, key=topic)
        return done_at(told, f"the order of {topic} is deleted")
    if not order or not order.strip():
        raise ConfigError("orderConf", order, "broker-a:4;broker-b:4, a broker and its queues each")
    told = await put_value(ask.wire, ask.name_servers, namespace=ORDER_NAMESPACE, key=topic, value=order)
    return done_at(told, f"order of {topic}: {order}")


COMMANDS = (
    update_topic,
    update_topic_list,
    update_topic_perm,
    delete_topic,
    show_route,
    topic_status,
    topic_clusters,
    topic_list,
    allocate_queues,
    update_order,
)
