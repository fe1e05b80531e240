"""Who is in a cluster, what each broker of it tells of itself, and which topics and groups it has."""

from tanist.client.session.wire import Wire
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.route import ClusterInfo, TopicRouteData
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.client import ConsumerConnections
from tanist.protocol.bodies.config_text import decode_config
from tanist.protocol.bodies.replication import EpochCache
from tanist.protocol.bodies.stats import BrokerConsumeStats, TopicStatsTable
from tanist.protocol.bodies.sync import SubscriptionGroupTable, TopicConfigTable
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import ConsumerGroupRequest, TopicRequest
from tanist.protocol.headers.groups import BrokerConsumeStatsRequest
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.java_json import decode_java_json


async def cluster_info(wire: Wire, name_server: str, *, timeout_s: float | None = None) -> ClusterInfo:
    """Every broker that the name server knows.

    >>> async with asking() as wire:
    ...     print(list((await cluster_info(wire, "127.0.0.1:9876")).broker_addr_table))
    ['broker-a']
    """
    command = Command.request(RequestCode.GET_BROKER_CLUSTER_INFO)
    return decode_java_json((await wire.ask(name_server, command, timeout_s=timeout_s)).body, ClusterInfo)


async def topic_route(wire: Wire, name_server: str, topic: str) -> TopicRouteData:
    """Where a topic lives. Raises ResponseError if the name server knows no broker of it."""
    command = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic))
    return decode_java_json((await wire.ask(name_server, command)).body, TopicRouteData)


async def runtime_info(wire: Wire, address: str) -> dict[str, str]:
    """All that a broker measures, by RocketMQ's names."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_BROKER_RUNTIME_INFO))
    return decode_java_json(answer.body, KVTable).table


async def broker_config(wire: Wire, address: str) -> dict[str, str]:
    """The settings that a broker runs with, secrets hidden."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_BROKER_CONFIG))
    return decode_config(answer.body)


async def broker_epochs(wire: Wire, address: str) -> EpochCache:
    """The epochs in a replica's log. Raises ResponseError if it is under no controller."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_BROKER_EPOCH_CACHE))
    return decode_java_json(answer.body, EpochCache)


async def topic_configs(wire: Wire, address: str) -> dict[str, TopicConfig]:
    """All topics of a broker, by name."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_ALL_TOPIC_CONFIG))
    return decode_java_json(answer.body, TopicConfigTable).topics


async def group_configs(wire: Wire, address: str) -> dict[str, SubscriptionGroupConfig]:
    """All consumer groups of a broker, by name."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
    return decode_java_json(answer.body, SubscriptionGroupTable).groups


async def broker_consume_stats(wire: Wire, address: str, *, is_ordered: bool = False) -> BrokerConsumeStats:
    """How far every group of a broker is behind, queue by queue; with ``is_ordered`` in ordered topics."""
    header = BrokerConsumeStatsRequest(is_ordered=is_ordered)
    answer = await wire.ask(address, Command.request(RequestCode.GET_BROKER_CONSUME_STATS, header))
    return decode_java_json(answer.body, BrokerConsumeStats)


async def topic_stats(wire: Wire, address: str, topic: str) -> TopicStatsTable:
    """What each queue of a topic holds on one broker."""
    answer = await wire.ask(
        address, Command.request(RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic=topic))
    )
    return decode_java_json(answer.body, TopicStatsTable)


async def consumer_connections(wire: Wire, address: str, group: str) -> ConsumerConnections:
    """The members of a group that are connected to a broker. Raises ResponseError if there are none."""
    header = ConsumerGroupRequest(consumer_group=group)
    answer = await wire.ask(address, Command.request(RequestCode.GET_CONSUMER_CONNECTION_LIST, header))
    return decode_java_json(answer.body, ConsumerConnections)
