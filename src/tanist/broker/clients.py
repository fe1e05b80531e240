"""Who is connected to a broker: producers, consumers, and what the consumers want.

    heartbeat --> member --goodbye, lost connection, 120 s of silence--> forgotten

Pure. The shell feeds the events in and carries the actions out. A member is a connection and not a
client id, because broadcasting consumers of one machine may share an id. A group lives as long as it
has a member; its subscriptions go with the last one.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tanist.broker.client_limits import check_group_count, check_heartbeat, check_room, subscriptions_bytes
from tanist.broker.consumer_group import (
    Client,
    ClientConnection,
    ConsumerGroup,
    Member,
    merge_subscriptions,
)
from tanist.broker.slave_consume.live_view import ExpectedMembers
from tanist.broker.sql import Condition, compile_condition
from tanist.errors import ResponseError
from tanist.model.groups import ConsumeType, MessageModel
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.client import (
    Connection,
    ConsumerConnections,
    ConsumerData,
    HeartbeatData,
    ProducerConnections,
    ProducerMember,
    ProducerTable,
)
from tanist.protocol.codes import ResponseCode

SILENCE_LIMIT_MS = 120_000


@dataclass(frozen=True, slots=True)
class EnsureGroup:
    """See to it that the group has its settings and its retry topic."""

    group: str
    is_unit_mode: bool = False


@dataclass(frozen=True, slots=True)
class NotifyMembers:
    """Tell these connections that the group has other members or other topics than before."""

    group: str
    connections: tuple[ClientConnection, ...]


@dataclass(frozen=True, slots=True)
class AskForSubscriptions:
    """Answer that the next heartbeat has to be a full one: this one stood for subscriptions we lack."""

    group: str


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close a connection whose client has gone silent."""

    connection: ClientConnection
    reason: str


Action: TypeAlias = EnsureGroup | NotifyMembers | AskForSubscriptions | CloseConnection


@dataclass(slots=True)
class _Registrations:
    """The groups of one connection."""

    consumer_groups: set[str] = field(default_factory=set[str])
    producer_groups: set[str] = field(default_factory=set[str])

    def __len__(self) -> int:
        return len(self.consumer_groups) + len(self.producer_groups)


class ClientTable:
    """All clients of one broker, by group and connection.

    On a slave the table only listens, so that redirected pulls find their subscription: creating
    groups and telling their members is for the master. So it does where another broker of the group is read.
    """

    def __init__(self, *, is_master: bool = True) -> None:
        self.is_master = is_master
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers: dict[str, dict[ClientConnection, Member]] = {}
        self._registrations: dict[ClientConnection, _Registrations] = {}
        self._producer_by_id: dict[str, Client] = {}
        self._member_count = 0
        self._subscription_bytes = 0
        self._expected = ExpectedMembers()

    def on_heartbeat(self, client: Client, heartbeat: HeartbeatData, *, now_ms: int) -> list[Action]:
        """Take in all groups of a client, or none: raises ResponseError if that would be too much."""
        check_heartbeat(heartbeat)
        mine = self._registrations.get(client.connection, _Registrations())
        consumer_groups = mine.consumer_groups | {
            consumer.group_name for consumer in heartbeat.consumer_data_set
        }
        producer_groups = mine.producer_groups | {
            producer.group_name for producer in heartbeat.producer_data_set
        }
        grown = _Registrations(consumer_groups, producer_groups)
        check_group_count(len(grown))
        self._check_room(heartbeat, joining_count=len(grown) - len(mine))
        self._member_count += len(grown) - len(mine)
        if len(grown):
            self._registrations[client.connection] = grown
        for producer in heartbeat.producer_data_set:
            self._on_producer(client, producer.group_name, now_ms)
        actions: list[Action] = []
        for consumer in heartbeat.consumer_data_set:
            actions += self._on_consumer(client, consumer, heartbeat, now_ms)
        return actions

    def on_unregister(
        self, connection: ClientConnection, *, consumer_group: str | None, producer_group: str | None
    ) -> list[Action]:
        """A client says goodbye to a group of each kind, or to one of them."""
        mine = self._registrations.get(connection, _Registrations())
        if producer_group in mine.producer_groups:
            self._drop_producer(connection, producer_group)
        if consumer_group in mine.consumer_groups:
            return self._drop_consumers([(connection, consumer_group)])
        return []

    def on_lost(self, connection: ClientConnection) -> list[Action]:
        """A connection is gone, and with it all that its client was."""
        mine = self._registrations.get(connection, _Registrations())
        for group in [*mine.producer_groups]:
            self._drop_producer(connection, group)
        return self._drop_consumers([(connection, group) for group in mine.consumer_groups])

    def on_tick(self, now_ms: int) -> list[Action]:
        """Forget members that sent no heartbeat for too long, and close what nobody uses any more."""
        heard_since_ms = now_ms - SILENCE_LIMIT_MS
        silent_producers = _silent(self._producers.items(), heard_since_ms)
        silent_consumers = _silent(
            ((name, group.members) for name, group in self._consumers.items()), heard_since_ms
        )
        for connection, group in silent_producers:
            self._drop_producer(connection, group)
        actions = self._drop_consumers(silent_consumers)
        silent = dict.fromkeys(connection for connection, _group in silent_producers + silent_consumers)
        reason = f"no heartbeat for {SILENCE_LIMIT_MS // 1000} s"
        for connection in silent:
            if connection not in self._registrations:
                actions.append(CloseConnection(connection, reason))
        return actions

    def listen(self) -> None:
        """Only note who is there from now on: another broker of the group is read."""
        self.is_master = False

    def on_readable(self) -> list[Action]:
        """Whoever was noted is a member from now on."""
        self.is_master = True
        return [EnsureGroup(name) for name in self._consumers]

    def forget_consumers(self, may_stay: Callable[[Client], bool]) -> list[ClientConnection]:
        """Let all consumers go but these, and tell nobody: the connections that are to be closed."""
        leaving = [
            (connection, name)
            for name, group in self._consumers.items()
            for connection, member in group.members.items()
            if not may_stay(member.client)
        ]
        self._drop_consumers(leaving)
        return list(dict.fromkeys(connection for connection, _name in leaving))

    def expect(self, members: Mapping[str, Iterable[str]]) -> None:
        """Count these clients as members, by group, until they come or ``on_expected_over``."""
        self._expected.expect(members)
        for name, group in self._consumers.items():
            for client_id in group.client_ids:
                self._expected.on_came(name, client_id)

    def on_expected_over(self) -> list[Action]:
        """Whoever was expected and has not come is no member: the others divide its queues."""
        return self._notify(self._expected.end())

    def members(self) -> dict[str, tuple[str, ...]]:
        """The client ids of all groups whose members share the queues."""
        return {
            name: tuple(group.client_ids)
            for name, group in self._consumers.items()
            if group.message_model is not MessageModel.BROADCASTING
        }

    def member_ids(self, group: str) -> list[str]:
        """The client ids of a consumer group and those that it expects, sorted; none if nobody is there."""
        found = self._consumers.get(group)
        if found is None:
            return []
        missing = self._expected.missing(group)
        return sorted({*found.client_ids, *missing}) if missing else found.client_ids

    def subscription(
        self, group: str, topic: str, *, sub_version: int, is_broadcast_allowed: bool
    ) -> SubscriptionData:
        """What a group that pulls wants of a topic. Raises ResponseError as long as that is not known.

        ``sub_version`` is the one the consumer goes by. If it is ahead of ours, its heartbeat is still
        on the way, and messages would be filtered by a subscription it has given up.
        """
        found = self._consumers.get(group)
        if found is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
                f"group {group} has no consumer here before its heartbeat",
            )
        if found.message_model is MessageModel.BROADCASTING and not is_broadcast_allowed:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"group {group} may not broadcast: its consumeBroadcastEnable is false",
            )
        subscription = found.subscriptions.get(topic)
        if subscription is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, f"group {group} has not subscribed to topic {topic}"
            )
        if subscription.sub_version < sub_version:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_NOT_LATEST,
                f"group {group} has a newer subscription to topic {topic} than its heartbeats said",
            )
        return subscription

    def condition(self, group: str, subscription: SubscriptionData) -> Condition:
        """What a subscription by SQL asks of messages; that of the group itself is compiled once."""
        found = self._consumers.get(group)
        return compile_condition(subscription.expression) if found is None else found.condition(subscription)

    def subscriptions(self, group: str) -> Mapping[str, SubscriptionData]:
        """What a group wants, by topic; nothing if nobody is there."""
        found = self._consumers.get(group)
        return {} if found is None else found.subscriptions

    def groups_of(self, topic: str) -> set[str]:
        """The groups with members that want a topic."""
        return {name for name, group in self._consumers.items() if topic in group.subscriptions}

    def consumer_connections(self, group: str) -> ConsumerConnections | None:
        """A consumer group as operators see it; None if nobody is there."""
        found = self._consumers.get(group)
        if found is None:
            return None
        return ConsumerConnections(
            connections=_connections(found.members.values()),
            subscription_table=dict(found.subscriptions),
            consume_type=found.consume_type,
            message_model=found.message_model,
            consume_from_where=found.consume_from_where,
        )

    def producer_connections(self, group: str) -> ProducerConnections | None:
        """A producer group as operators see it; None if nobody is there."""
        found = self._producers.get(group)
        return None if found is None else ProducerConnections(connections=_connections(found.values()))

    def producer_table(self) -> ProducerTable:
        """Every producer, by group."""
        return ProducerTable(
            producers={
                group: [_producer_member(member) for member in members.values()]
                for group, members in self._producers.items()
            }
        )

    def producers(self) -> list[Client]:
        """Every producer once, however many groups it has."""
        members = (member.client for group in self._producers.values() for member in group.values())
        return list({client.connection: client for client in members}.values())

    def consumers(self) -> Iterator[tuple[str, ConsumeType, Client]]:
        """Every member of every consumer group."""
        for name, group in self._consumers.items():
            for member in group.members.values():
                yield name, group.consume_type, member.client

    def find_consumer(self, group: str, client_id: str) -> Client | None:
        """Where to ask one member of a consumer group."""
        found = self._consumers.get(group)
        return None if found is None else found.find(client_id)

    def find_group(self, group: str) -> ConsumerGroup | None:
        """A consumer group with its members, to look at; None if nobody is there."""
        return self._consumers.get(group)

    def member_at(self, group: str, connection: ClientConnection) -> Client | None:
        """Who is at the other end of a connection; None if no member of the group is."""
        found = self._consumers.get(group)
        member = None if found is None else found.members.get(connection)
        return None if member is None else member.client

    def find_producer(self, client_id: str) -> Client | None:
        """Where to reach the client of this id that has any producer: replies are sent there."""
        return self._producer_by_id.get(client_id)

    def pick_producer(self, group: str, number: int) -> Client | None:
        """One of the producers of a group, another one for the next number; None if nobody is there."""
        members = self._producers.get(group)
        if not members:
            return None
        return next(itertools.islice(members.values(), number % len(members), None)).client

    def _check_room(self, heartbeat: HeartbeatData, *, joining_count: int) -> None:
        after: dict[str, Mapping[str, SubscriptionData]] = {}
        if not is_short(heartbeat):
            # A group may be listed twice, and keep what is newer than the heartbeat.
            for consumer in heartbeat.consumer_data_set:
                name = consumer.group_name
                before = after[name] if name in after else self.subscriptions(name)
                after[name] = merge_subscriptions(before, consumer.subscription_data_set)
        growth_bytes = sum(
            subscriptions_bytes(kept.values()) - subscriptions_bytes(self.subscriptions(name).values())
            for name, kept in after.items()
        )
        # Whoever takes no more than before is welcome, also where there is no room.
        if joining_count > 0 or growth_bytes > 0:
            check_room(
                member_count=self._member_count + joining_count,
                subscription_bytes=self._subscription_bytes + growth_bytes,
            )

    def _on_consumer(
        self, client: Client, consumer: ConsumerData, heartbeat: HeartbeatData, now_ms: int
    ) -> list[Action]:
        name = consumer.group_name
        actions: list[Action] = [EnsureGroup(name, consumer.is_unit_mode)] if self.is_master else []
        group = self._consumers.get(name)
        if group is None:
            group = ConsumerGroup(consumer.consume_type, consumer.message_model, consumer.consume_from_where)
            self._consumers[name] = group
        group.consume_type = consumer.consume_type
        group.message_model = consumer.message_model
        group.consume_from_where = consumer.consume_from_where
        is_changed = group.join(client, now_ms=now_ms)
        self._expected.on_came(name, client.client_id)
        if is_short(heartbeat):
            if heartbeat.heartbeat_fingerprint != group.fingerprint:
                actions.append(AskForSubscriptions(name))
        else:
            before_bytes = group.subscription_bytes
            is_changed |= group.subscribe(consumer.subscription_data_set)
            self._subscription_bytes += group.subscription_bytes - before_bytes
            group.fingerprint = heartbeat.heartbeat_fingerprint
        return actions + self._notify([name] if is_changed else [])

    def _on_producer(self, client: Client, group: str, now_ms: int) -> None:
        members = self._producers.setdefault(group, {})
        before = members.get(client.connection)
        members[client.connection] = Member(client, now_ms)
        if before is not None and before.client.client_id != client.client_id:
            self._forget_producer_id(before.client)
        self._producer_by_id[client.client_id] = client

    def _drop_producer(self, connection: ClientConnection, group: str) -> None:
        members = self._producers[group]
        client = members.pop(connection).client
        if not members:
            del self._producers[group]
        self._registrations[connection].producer_groups.discard(group)
        self._member_count -= 1
        self._forget_producer_id(client)
        self._forget_idle(connection)

    def _forget_producer_id(self, client: Client) -> None:
        """Unless the client has another producer group on this connection, or moved to a newer one."""
        found = self._producer_by_id.get(client.client_id)
        if found is None or found.connection != client.connection:
            return
        groups = self._registrations[client.connection].producer_groups
        members = (self._producers.get(group, {}).get(client.connection) for group in groups)
        if not any(member is not None and member.client.client_id == client.client_id for member in members):
            del self._producer_by_id[client.client_id]

    def _drop_consumers(self, leaving: list[tuple[ClientConnection, str]]) -> list[Action]:
        changed: dict[str, None] = {}
        for connection, name in leaving:
            group = self._consumers[name]
            if group.leave(connection):
                changed[name] = None
            if not group.members:
                self._subscription_bytes -= group.subscription_bytes
                del self._consumers[name]
            self._registrations[connection].consumer_groups.discard(name)
            self._member_count -= 1
            self._forget_idle(connection)
        return self._notify(changed)

    def _notify(self, changed: Iterable[str]) -> list[Action]:
        """Members of a broadcasting group share nothing, so a change of one is nothing to the others."""
        if not self.is_master:
            return []
        return [
            NotifyMembers(name, tuple(group.members))
            for name in changed
            if (group := self._consumers.get(name)) is not None
            and group.message_model is not MessageModel.BROADCASTING
        ]

    def _forget_idle(self, connection: ClientConnection) -> None:
        if not len(self._registrations[connection]):
            del self._registrations[connection]


def is_short(heartbeat: HeartbeatData) -> bool:
    """Whether it only names the number of the full heartbeat for which it stands."""
    return heartbeat.is_without_sub and heartbeat.heartbeat_fingerprint != 0


def _silent(
    groups: Iterable[tuple[str, dict[ClientConnection, Member]]], heard_since_ms: int
) -> list[tuple[ClientConnection, str]]:
    return [
        (connection, group)
        for group, members in groups
        for connection, member in members.items()
        if member.seen_ms < heard_since_ms
    ]


def _connections(members: Iterable[Member]) -> list[Connection]:
    return [
        Connection(
            client_id=client.client_id,
            client_addr=client.connection.peer,
            language=client.language,
            version=client.version,
        )
        for client in (member.client for member in members)
    ]


def _producer_member(member: Member) -> ProducerMember:
    client = member.client
    return ProducerMember(
        client_id=client.client_id,
        # RocketMQ's tools print this as it is, and RocketMQ's brokers write a slash before the address.
        remote_ip=f"/{client.connection.peer}",
        language=client.language,
        version=client.version,
        last_update_timestamp_ms=member.seen_ms,
    )
