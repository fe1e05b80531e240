"""Consumer and producer groups: their settings, their members, and what those do."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tanist.admin.cluster import cluster_info, consumer_connections, group_configs, topic_route
from tanist.admin.parallel import Told, ask_each, in_parallel
from tanist.admin.refused import NotThere
from tanist.admin.rows import Row
from tanist.admin.topics import some_address
from tanist.client.session.wire import Wire
from tanist.errors import ConfigError, MQError, ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.route import TopicRouteData
from tanist.model.topics import retry_topic
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.client import (
    Connection,
    ConsumerConnections,
    MessageRequestMode,
    ProducerConnections,
    ProducerTable,
)
from tanist.protocol.bodies.running import ConsumerRunningInfo
from tanist.protocol.bodies.sync import GroupConfigList
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.client import ConsumerRunningInfoRequest
from tanist.protocol.headers.groups import DeleteGroupRequest, ProducerGroupRequest
from tanist.protocol.java_json import BAD_JSON, decode_java_json
from tanist.protocol.response_errors import TopicNotFound

_RUNNING_TIMEOUT_S = 15.0
"""A broker hands the question on to the client, and waits for it."""


class MemberRow(Row, frozen=True, kw_only=True):
    """One member of a group that is connected."""

    client_id: str
    client_addr: str
    language: str
    version: int


class ProducerRow(Row, frozen=True, kw_only=True):
    """One producer that is connected to a broker."""

    producer_group: str
    client_id: str
    client_addr: str
    language: str
    version: int
    last_seen_at_ms: int


class GroupConfigRow(Row, frozen=True, kw_only=True):
    """A group's settings on one broker."""

    broker_name: str
    cluster_name: str
    config: SubscriptionGroupConfig


class Running(Row, frozen=True, kw_only=True):
    """What one member of a group is doing, or why it does not tell."""

    client_id: str
    version: int
    info: ConsumerRunningInfo | None
    failure: str | None = None


async def update_group(
    wire: Wire, addresses: Sequence[str], config: SubscriptionGroupConfig
) -> list[Told[None]]:
    """Create a consumer group on these brokers, or change it."""
    body = encode_body(config)

    async def update(address: str) -> None:
        await wire.ask(address, Command.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body))

    return await ask_each(addresses, update)


async def update_groups(
    wire: Wire, addresses: Sequence[str], configs: list[SubscriptionGroupConfig]
) -> list[Told[None]]:
    """Create many consumer groups on these brokers, or change them, in one request each."""
    body = encode_body(GroupConfigList(configs=configs))

    async def update(address: str) -> None:
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST
        await wire.ask(address, Command.request(code, body=body))

    return await ask_each(addresses, update)


def read_group_configs(data: bytes) -> list[SubscriptionGroupConfig]:
    """The groups in a file for ``updateSubGroupList``. Raises ConfigError for one that makes no sense."""
    try:
        return msgspec.json.decode(data, type=list[SubscriptionGroupConfig], strict=False)
    except BAD_JSON as error:
        raise ConfigError("filename", "...", f'a JSON array of {{"groupName": …}} ({error})') from error


def read_retry_policy(text: str) -> dict[str, Any]:
    """The JSON of a group's retry policy. Raises ConfigError for what is no object with a type."""
    try:
        policy = msgspec.json.decode(text.encode("utf-8", "surrogateescape"), type=dict[str, Any])
    except BAD_JSON as error:
        raise ConfigError("groupRetryPolicy", text, f"a JSON object ({error})") from error
    if policy.get("type") not in ("EXPONENTIAL", "CUSTOMIZED"):
        raise ConfigError("groupRetryPolicy", text, 'one with "type": "EXPONENTIAL" or "CUSTOMIZED"')
    return policy


async def delete_group(
    wire: Wire, addresses: Sequence[str], group: str, *, are_offsets_deleted: bool
) -> list[Told[None]]:
    """Delete a group's settings on these brokers, and its offsets if that is wished."""
    header = DeleteGroupRequest(
        group_name=group, clean_offset=are_offsets_deleted, remove_offset=are_offsets_deleted
    )

    async def delete(address: str) -> None:
        await wire.ask(address, Command.request(RequestCode.DELETE_SUBSCRIPTIONGROUP, header))

    return await ask_each(addresses, delete)


async def is_group_there(wire: Wire, addresses: Sequence[str], group: str) -> bool:
    """Whether one of these brokers has settings of the group; one that does not tell may have."""
    told = await ask_each(addresses, lambda address: group_configs(wire, address))
    return any(each.value is None or group in each.value for each in told)


async def set_consume_mode(
    wire: Wire, addresses: Sequence[str], mode: MessageRequestMode
) -> list[Told[None]]:
    """Say how a group gets the messages of a topic. Tanist knows pulling alone, and refuses this."""

    async def update(address: str) -> None:
        command = Command.request(RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(mode))
        await wire.ask(address, command)

    return await ask_each(addresses, update)


async def group_config(wire: Wire, name_server: str, group: str) -> list[GroupConfigRow]:
    """A group's settings at all masters that have it. Raises NotThere if none has."""
    info = await cluster_info(wire, name_server)
    masters = [each for each in info.broker_addr_table.values() if each.master_addr is not None]
    told = await ask_each(
        [some_address(each) for each in masters], lambda address: group_configs(wire, address)
    )
    rows = [
        GroupConfigRow(broker_name=broker.broker_name, cluster_name=broker.cluster, config=each.value[group])
        for broker, each in zip(masters, told, strict=True)
        if each.value is not None and group in each.value
    ]
    if not rows:
        failures = [str(each.failure) for each in told if each.failure is not None]
        raise NotThere("; ".join([f"no broker has settings of the group {group}", *failures]))
    return sorted(rows, key=lambda row: row.broker_name)


async def group_members(
    wire: Wire, name_server: str, group: str, *, address: str | None = None
) -> ConsumerConnections:
    """Who of a group is connected, at one broker or at all that have it. Raises ConsumerOffline if nobody."""
    addresses = [address] if address is not None else await group_brokers(wire, name_server, group)
    told = await ask_each(addresses, lambda each: consumer_connections(wire, each, group))
    found = [each.value for each in told if each.value is not None]
    if not found:
        raise next(each.failure for each in told if each.failure is not None)
    return msgspec.structs.replace(found[-1], connections=_once(part.connections for part in found))


async def group_brokers(wire: Wire, name_server: str, group: str) -> list[str]:
    """Where the members of a group are connected: the brokers that keep its retries. Raises NotThere."""
    try:
        route = await topic_route(wire, name_server, retry_topic(group))
    except TopicNotFound as error:
        raise NotThere(
            f"no broker keeps retries of the group {group}: it is misspelt, or none of it was ever connected"
        ) from error
    return addresses_in(route)


def addresses_in(route: TopicRouteData) -> list[str]:
    """One address of each group in a route, the master's if it has one."""
    brokers = sorted(route.broker_datas, key=lambda each: each.broker_name)
    return [some_address(broker) for broker in brokers if broker.broker_addrs]


async def producer_members(wire: Wire, name_server: str, *, group: str, topic: str) -> list[MemberRow]:
    """The producers of a group that are connected to brokers of a topic. Raises NotThere if nobody is."""
    addresses = addresses_in(await topic_route(wire, name_server, topic))

    async def look(address: str) -> ProducerConnections:
        header = ProducerGroupRequest(producer_group=group)
        answer = await wire.ask(address, Command.request(RequestCode.GET_PRODUCER_CONNECTION_LIST, header))
        return decode_java_json(answer.body, ProducerConnections)

    told = await ask_each(addresses, look)
    found = [each.value for each in told if each.value is not None]
    if not found:
        failure = next(each.failure for each in told if each.failure is not None)
        # Brokers, RocketMQ's too, have no code of their own for it.
        if isinstance(failure, ResponseError) and failure.code == ResponseCode.SYSTEM_ERROR:
            raise NotThere(
                f"no producer of {group} is connected to a broker of {topic}: {failure.remark}"
            ) from failure
        raise failure
    return rows_of(_once(part.connections for part in found))


async def all_producers(wire: Wire, address: str) -> ProducerTable:
    """The producers that are connected to a broker, by group."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_ALL_PRODUCER_INFO))
    return decode_java_json(answer.body, ProducerTable)


def producer_rows(table: ProducerTable) -> list[ProducerRow]:
    """Producers as a table."""
    return [
        ProducerRow(
            producer_group=group,
            client_id=member.client_id,
            client_addr=member.remote_ip,
            language=member.language,
            version=member.version,
            last_seen_at_ms=member.last_update_timestamp_ms,
        )
        for group, members in sorted(table.producers.items())
        for member in sorted(members, key=lambda each: each.client_id)
    ]


async def running_members(
    wire: Wire,
    name_server: str,
    group: str,
    *,
    client_id: str | None = None,
    address: str | None = None,
    with_stacks: bool = False,
) -> list[Running]:
    """What the members of a group say of themselves, or one of them. Raises NotThere for one who is away."""
    addresses = [address] if address is not None else await group_brokers(wire, name_server, group)
    members = (await group_members(wire, name_server, group, address=address)).connections
    wanted = [member for member in members if client_id in (None, member.client_id)]
    if not wanted:
        known = ", ".join(member.client_id for member in members)
        raise NotThere(f"the group {group} has no client {client_id}; it has {known}")

    async def look(member: Connection) -> Running:
        header = ConsumerRunningInfoRequest(
            consumer_group=group, client_id=member.client_id, is_jstack_enabled=with_stacks
        )
        command = Command.request(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
        try:
            answer = await _first_answer(wire, addresses, command)
        except MQError as error:
            return Running(client_id=member.client_id, version=member.version, info=None, failure=str(error))
        info = decode_java_json(answer.body, ConsumerRunningInfo)
        return Running(client_id=member.client_id, version=member.version, info=info)

    return await in_parallel(wanted, look)


def rows_of(connections: Iterable[Connection]) -> list[MemberRow]:
    """Connections as a table."""
    return [
        MemberRow(
            client_id=each.client_id,
            client_addr=each.client_addr,
            language=each.language,
            version=each.version,
        )
        for each in connections
    ]


async def _first_answer(wire: Wire, addresses: Sequence[str], command: Command) -> Command:
    """A client may be connected to one of the brokers only: the others do not know it."""
    for address in addresses[:-1]:
        try:
            return await wire.ask(address, command, timeout_s=_RUNNING_TIMEOUT_S)
        except MQError:
            continue
    return await wire.ask(addresses[-1], command, timeout_s=_RUNNING_TIMEOUT_S)


def _once(parts: Iterable[Sequence[Connection]]) -> list[Connection]:
    """Clients are connected to several brokers, from a port each; each client counts once."""
    found: dict[str, Connection] = {}
    for part in parts:
        for connection in part:
            found.setdefault(connection.client_id, connection)
    return [found[client_id] for client_id in sorted(found)]
