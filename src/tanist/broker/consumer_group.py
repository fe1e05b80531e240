"""One consumer group as its members' heartbeats describe it. Pure."""

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tanist.broker.client_limits import subscriptions_bytes
from tanist.broker.sql import Condition, compile_condition
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.subscription import SubscriptionData
from tanist.protocol.command import Command


class ClientConnection(Protocol):
    """What a broker needs of the connection to a client. The connection itself is the key, not its peer."""

    @property
    def peer(self) -> str: ...
    def send(self, data: bytes | Command) -> None: ...
    def request(self, command: Command, timeout_s: float) -> Awaitable[Command]: ...
    def close(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Client:
    """Who is at the other end of a connection. ``language`` is a name."""

    connection: ClientConnection
    client_id: str
    language: str
    version: int


@dataclass(slots=True)
class Member:
    """A client in a group, and when it was last heard of there."""

    client: Client
    seen_ms: int


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """The members by connection, and what they want.

    All members ought to want the same. Where they do not, the last heartbeat counts, as in RocketMQ.
    """

    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    members: dict[ClientConnection, Member] = field(
        default_factory=dict[ClientConnection, Member], init=False
    )
    subscriptions: dict[str, SubscriptionData] = field(
        default_factory=dict[str, SubscriptionData], init=False
    )
    subscription_bytes: int = field(default=0, init=False)
    """Roughly what the subscriptions take in memory."""
    _conditions: dict[str, Condition] = field(default_factory=dict[str, Condition], init=False)
    """Those of the subscriptions by SQL, by topic, from the first pull on."""
    fingerprint: int = field(default=0, init=False)
    """Of the last full heartbeat: a short one with the same number stands for the same subscriptions."""

    @property
    def client_ids(self) -> list[str]:
        """Each id once, however many connections it has: members divide the queues by this list."""
        return sorted({member.client.client_id for member in self.members.values()})

    def join(self, client: Client, *, now_ms: int) -> bool:
        """Take in a member or refresh it. Returns whether the list of client ids changes."""
        known = self.members.get(client.connection)
        if known is not None and known.client == client:
            known.seen_ms = now_ms
            return False
        before = self.client_ids
        self.members[client.connection] = Member(client, now_ms)
        return self.client_ids != before

    def leave(self, connection: ClientConnection) -> bool:
        """Let a member go. Returns whether the list of client ids changes."""
        left = self.members.pop(connection)
        return all(member.client.client_id != left.client.client_id for member in self.members.values())

    def subscribe(self, wanted: Iterable[SubscriptionData]) -> bool:
        """Want exactly these topics from now on. Returns whether the set of topics changes."""
        before, after = self.subscriptions, merge_subscriptions(self.subscriptions, wanted)
        self.subscriptions = after
        self._conditions = {
            topic: condition
            for topic, condition in self._conditions.items()
            if after.get(topic) is before[topic]
        }
        self.subscription_bytes = subscriptions_bytes(after.values())
        return after.keys() != before.keys()

    def condition(self, subscription: SubscriptionData) -> Condition:
        """What a subscription by SQL asks of messages, compiled once for as long as it is the group's."""
        topic = subscription.topic
        if self.subscriptions.get(topic) is not subscription:
            return compile_condition(subscription.expression)
        condition = self._conditions.get(topic)
        if condition is None:
            condition = self._conditions[topic] = compile_condition(subscription.expression)
        return condition

    def find(self, client_id: str) -> Client | None:
        """The connection of this client that was heard of last."""
        found = [member for member in self.members.values() if member.client.client_id == client_id]
        return max(found, key=lambda member: member.seen_ms).client if found else None


def merge_subscriptions(
    before: Mapping[str, SubscriptionData], wanted: Iterable[SubscriptionData]
) -> dict[str, SubscriptionData]:
    """What a group wants that wants exactly these topics from now on.

    A heartbeat may have been overtaken by a newer one, so a subscription that is not newer than the one
    there is changes nothing.
    """
    after: dict[str, SubscriptionData] = {}
    for new in wanted:
        old = after.get(new.topic) or before.get(new.topic)
        after[new.topic] = old if old is not None and old.sub_version >= new.sub_version else new
    return after
