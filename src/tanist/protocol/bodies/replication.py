"""Replication and elections, as brokers, controllers and operators tell each other."""

import msgspec

from tanist.model.integers import INT64_MAX, Int32, Int64, LogOffset64
from tanist.model.offsets import LogOffset
from tanist.model.route import BrokerMemberGroup
from tanist.protocol.bodies.base import Body

OPEN_END = LogOffset(INT64_MAX)
"""The end of the epoch that is still being written."""


class SyncStateSet(Body, frozen=True, kw_only=True):
    """The replicas in step with the master, by their ids, and the epoch of that set."""

    broker_ids: frozenset[Int64] = msgspec.field(name="syncStateSet", default=frozenset())
    epoch: Int32 = msgspec.field(name="syncStateSetEpoch", default=0)


class ElectMasterAnswer(Body, frozen=True, kw_only=True):
    """Who is there after an election. No member group if the master stayed."""

    broker_member_group: BrokerMemberGroup | None = None
    sync_state_set: frozenset[Int64] = frozenset()


class ReplicaView(Body, frozen=True, kw_only=True):
    """One replica as the controller sees it."""

    broker_name: str
    broker_id: Int64
    broker_address: str
    is_alive: bool = msgspec.field(name="alive", default=False)


class ReplicaGroupView(Body, frozen=True, kw_only=True):
    """One replica group as the controller sees it."""

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 = 0
    sync_state_set_epoch: Int32 = 0
    in_sync_replicas: list[ReplicaView] = msgspec.field(default=[])
    not_in_sync_replicas: list[ReplicaView] = msgspec.field(default=[])


class SyncStateData(Body, frozen=True, kw_only=True):
    """Replica groups by name."""

    groups: dict[str, ReplicaGroupView] = msgspec.field(name="replicasInfoTable", default={})


class EpochView(Body, frozen=True, kw_only=True):
    """One epoch of a log: ``[start, end)``, in bytes."""

    epoch: Int32
    start: LogOffset64 = msgspec.field(name="startOffset")
    end: LogOffset64 = msgspec.field(name="endOffset", default=OPEN_END)


class EpochCache(Body, frozen=True, kw_only=True):
    """All epochs in a replica's log."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    epochs: list[EpochView] = msgspec.field(name="epochList", default=[])
    log_end: LogOffset64 = msgspec.field(name="maxOffset", default=LogOffset(0))


class HAClientView(Body, frozen=True, kw_only=True):
    """A slave's side of its link."""

    master_addr: str | None = None
    bytes_per_second: Int64 = msgspec.field(name="transferredByteInSecond", default=0)
    log_end: LogOffset64 = msgspec.field(name="maxOffset", default=LogOffset(0))
    last_read_timestamp_ms: Int64 = msgspec.field(name="lastReadTimestamp", default=0)
    last_write_timestamp_ms: Int64 = msgspec.field(name="lastWriteTimestamp", default=0)
    master_flushed_to: LogOffset64 = msgspec.field(name="masterFlushOffset", default=LogOffset(0))


class HAConnectionView(Body, frozen=True, kw_only=True):
    """One slave, as its master sees the link."""

    addr: str
    acked_to: LogOffset64 = msgspec.field(name="slaveAckOffset")
    lag_bytes: Int64 = msgspec.field(name="diff")
    is_in_sync: bool = msgspec.field(name="inSync")
    bytes_per_second: Int64 = msgspec.field(name="transferredByteInSecond", default=0)
    sent_from: LogOffset64 = msgspec.field(name="transferFromWhere", default=LogOffset(0))


class HARuntimeInfo(Body, frozen=True, kw_only=True):
    """A broker's replication: its slaves if it is master, its link if it is a slave."""

    is_master: bool = msgspec.field(name="master")
    log_end: LogOffset64 = msgspec.field(name="masterCommitLogMaxOffset", default=LogOffset(0))
    in_sync_slave_count: Int32 = msgspec.field(name="inSyncSlaveNums", default=0)
    slaves: list[HAConnectionView] = msgspec.field(name="haConnectionInfo", default=[])
    client: HAClientView = msgspec.field(name="haClientRuntimeInfo", default=HAClientView())
