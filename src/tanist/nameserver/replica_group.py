"""Replicas and the groups they form, as the name server sees them, and what brokers are told of a change."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from tanist.model.data_version import DataVersion
from tanist.model.route import MASTER_ID, BrokerData, BrokerMemberGroup


@dataclass(slots=True, kw_only=True)
class Replica:
    """One broker process that has registered. Its lease is renewed by whatever it sends."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    connection: Hashable
    data_version: DataVersion
    filter_servers: list[str]
    lease_s: float
    renewed_at_s: float

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others. Two clusters may use the same private addresses."""
        return self.cluster, self.address

    def is_expired(self, now_s: float) -> bool:
        return self.renewed_at_s + self.lease_s < now_s


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyMinBrokerId:
    """Tell these brokers which replica of their group has the smallest id now."""

    addresses: tuple[str, ...]
    broker_name: str
    min_broker_id: int
    min_broker_address: str
    offline_address: str | None = None
    """Who went, if that is what happened."""
    ha_address: str | None = None
    """Where the one who came serves replication, if that is what happened."""


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """End a connection over which nothing was heard for the length of a lease."""

    connection: Hashable


Action = NotifyMinBrokerId | CloseConnection


@dataclass(slots=True)
class ReplicaGroup:
    """The live replicas of one broker name, by id. It is dropped with its last replica."""

    cluster: str
    broker_name: str
    replicas: dict[int, Replica] = field(default_factory=dict[int, Replica])
    is_acting_master_enabled: bool = False
    zone_name: str | None = None

    @property
    def min_id(self) -> int:
        return min(self.replicas)

    @property
    def master(self) -> Replica | None:
        return self.replicas.get(MASTER_ID)

    @property
    def is_read_only(self) -> bool:
        """Whether a slave stands in for the master, which can serve reads and nothing else."""
        return self.is_acting_master_enabled and self.master is None

    def addresses(self) -> dict[int, str]:
        return {broker_id: replica.address for broker_id, replica in sorted(self.replicas.items())}

    def members(self) -> BrokerMemberGroup:
        return BrokerMemberGroup(
            cluster=self.cluster, broker_name=self.broker_name, broker_addrs=self.addresses()
        )

    def data(self, *, is_acting_master_shown: bool = False) -> BrokerData:
        """The group as a client sees it; the slave that stands in for the master under the master's id."""
        addresses = self.addresses()
        if is_acting_master_shown and self.is_read_only:
            addresses = {MASTER_ID: addresses.pop(self.min_id), **addresses}
        return BrokerData(
            cluster=self.cluster,
            broker_name=self.broker_name,
            broker_addrs=addresses,
            enable_acting_master=self.is_acting_master_enabled,
            zone_name=self.zone_name,
        )

    def someone_came(self, newcomer: Replica) -> NotifyMinBrokerId:
        """The news that ``newcomer`` has the smallest id now: for all others, or for it if alone."""
        others = [replica.address for replica in self.replicas.values() if replica is not newcomer]
        return self._news(others or [newcomer.address], ha_address=newcomer.ha_address)

    def someone_went(self, offline_address: str) -> NotifyMinBrokerId:
        """The news that the replica with the smallest id has gone, for all who are left."""
        return self._news(list(self.addresses().values()), offline_address=offline_address)

    def _news(
        self, addresses: list[str], *, offline_address: str | None = None, ha_address: str | None = None
    ) -> NotifyMinBrokerId:
        return NotifyMinBrokerId(
            addresses=tuple(addresses),
            broker_name=self.broker_name,
            min_broker_id=self.min_id,
            min_broker_address=self.replicas[self.min_id].address,
            offline_address=offline_address,
            ha_address=ha_address,
        )
