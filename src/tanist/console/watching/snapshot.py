"""What one look at a cluster found. Pure: values, and who of a replica group speaks for it."""

from collections.abc import Iterator

import msgspec

from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.reading import GroupRole
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.replication import EpochCache, HARuntimeInfo
from tanist.protocol.bodies.slave_consume import SlaveConsumeLedger, SlaveConsumeStatus
from tanist.protocol.bodies.stats import BrokerConsumeStats


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a broker is, and what name servers or other brokers call it."""

    address: str
    name: str
    broker_id: int
    cluster: str
    is_registered: bool = True
    """Whether the name server lists it now."""
    seen_ms: int = 0
    """When it was listed or answered last."""


class DeadLetterCount(msgspec.Struct, frozen=True, kw_only=True):
    """What a group gave up on, on one broker."""

    kept_count: int
    total_count: int
    """Since its topic was made; those that are deleted by now too."""
    last_ms: int


class BrokerTables(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked less often, because it is long or hardly changes."""

    config: dict[str, str] | None = None
    epochs: EpochCache | None = None
    ledger: SlaveConsumeLedger | None = None
    topics: dict[str, TopicConfig] = {}
    groups: dict[str, SubscriptionGroupConfig] = {}
    consume: BrokerConsumeStats | None = None
    dead_letters: dict[str, DeadLetterCount] = {}
    """By group."""


class BrokerLook(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker told, or why it did not."""

    place: Place
    failure: str | None = None
    runtime: dict[str, str] = {}
    ha: HARuntimeInfo | None = None
    slave_consume: SlaveConsumeStatus | None = None
    no_slave_consume: str | None = None
    """Why it has nothing to tell of slave consumption."""
    tables: BrokerTables = BrokerTables()

    @property
    def address(self) -> str:
        return self.place.address

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def is_up(self) -> bool:
        return self.failure is None

    @property
    def is_master(self) -> bool:
        """Whether it says so; of one that does not answer, whether it was so listed."""
        if self.slave_consume is not None:
            return self.slave_consume.role is GroupRole.MASTER
        if self.ha is not None:
            return self.ha.is_master
        return self.place.broker_id == 0

    @property
    def is_read_slave(self) -> bool:
        """Whether consumers read from it in its master's place."""
        return self.slave_consume is not None and not self.is_master and self.slave_consume.is_readable

    @property
    def broker_id(self) -> int:
        """Its own id: name servers list a slave that is read as 0."""
        if self.slave_consume is not None:
            for assigned in self.slave_consume.brokers:
                if assigned.address == self.address:
                    return assigned.broker_id
        if self.ha is not None and self.ha.broker_id is not None:
            return self.ha.broker_id
        return self.place.broker_id


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the cluster."""

    taken_ms: int
    name_server: str
    """The one that answered, or that was asked last."""
    name_servers: tuple[str, ...] = ()
    """All that were given."""
    failure: str | None = None
    """Why no name server answered; then the brokers are those that were known before."""
    brokers: tuple[BrokerLook, ...] = ()
    call_count: int = 0
    """So many questions were asked."""

    @property
    def names(self) -> list[str]:
        """The replica groups."""
        return sorted({look.name for look in self.brokers})

    def group(self, name: str) -> list[BrokerLook]:
        """The brokers of a replica group, the master first, and before one that was it and is gone."""
        found = (look for look in self.brokers if look.name == name)
        return sorted(found, key=_place_in_group)

    def find(self, address: str) -> BrokerLook | None:
        return next((look for look in self.brokers if look.address == address), None)

    def speakers(self) -> Iterator[BrokerLook]:
        """Of each group the broker that has its topics and offsets: who is read, else the master."""
        for name in self.names:
            speaker = speaker_of(self.group(name))
            if speaker is not None:
                yield speaker


def speaker_of(group: list[BrokerLook]) -> BrokerLook | None:
    """Who of a group is asked about topics and consumers; None if nobody of it answers."""
    up = (look for look in group if look.is_up)
    return min(up, key=lambda look: (not look.is_read_slave, not look.is_master), default=None)


def _place_in_group(look: BrokerLook) -> tuple[bool, bool, int, str]:
    return not look.is_master, not look.is_up, look.broker_id, look.address
