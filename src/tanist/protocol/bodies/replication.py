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
    """A slave's side of its link. What follows the master's flush offset RocketMQ does not tell."""

    master_addr: str | None = None
    bytes_per_second: Int64 = msgspec.field(name="transferredByteInSecond", default=0)
    log_end: LogOffset64 = msgspec.field(name="maxOffset", default=LogOffset(0))
    last_read_timestamp_ms: Int64 = msgspec.field(name="lastReadTimestamp", default=0)
    last_write_timestamp_ms: Int64 = msgspec.field(name="lastWriteTimestamp", default=0)
    master_flushed_to: LogOffset64 = msgspec.field(name="masterFlushOffset", default=LogOffset(0))
    state: str | None = None
    is_refused: bool | None = msgspec.field(name="refused", default=None)
    """Whether the master does not take this slave, so that more tries will not help."""
    reason: str | None = None
    """Why the last link ended, and what to do; None while a link works."""
    master_log_end: LogOffset64 | None = msgspec.field(name="masterMaxOffset", default=None)
    """None while it is not known."""
    lag_bytes: Int64 | None = None
    aside_count: Int32 | None = None
    """How many old logs are kept until this slave is in step."""
    rebuild_failure: str | None = None
    """Why this slave did not begin anew when it was last told to."""


class HAConnectionView(Body, frozen=True, kw_only=True):
    """One slave, as its master sees the link. What follows the start position RocketMQ does not tell."""

    addr: str
    acked_to: LogOffset64 = msgspec.field(name="slaveAckOffset")
    lag_bytes: Int64 = msgspec.field(name="diff")
    is_in_sync: bool = msgspec.field(name="inSync")
    bytes_per_second: Int64 = msgspec.field(name="transferredByteInSecond", default=0)
    sent_from: LogOffset64 = msgspec.field(name="transferFromWhere", default=LogOffset(0))
    broker_id: Int64 | None = None
    """None for a slave of RocketMQ, which does not tell it."""
    dialect: str | None = None
    requested_to: LogOffset64 | None = msgspec.field(name="requestOffset", default=None)
    """The end of the slave's log when it came."""
    sent_to: LogOffset64 | None = msgspec.field(name="sentOffset", default=None)
    sent_bytes: Int64 | None = None
    lag_ms: Int64 | None = msgspec.field(name="lagMillis", default=None)
    ack_kind: str | None = None
    counts: bool | None = None
    """Whether its acks count for double write."""
    since_ms: Int64 | None = msgspec.field(name="since", default=None)


class HARefusedView(Body, frozen=True, kw_only=True):
    """A peer that was turned away from the port for slaves."""

    addr: str
    reason: str
    received: str
    """What it had sent: an offset, or its first bytes in hex."""
    at_ms: Int64 = msgspec.field(name="timestamp")


class ControlledView(Body, frozen=True, kw_only=True):
    """How a replica stands with its controllers. A view of ours."""

    state: str
    controller: str | None = None
    """Who leads, as far as is known."""
    replica_id: Int64 | None = None
    """The id that the controller gave; the one that name servers are told is 0 for a master."""
    role: str
    epoch: Int32 = 0
    confirmed_to: LogOffset64 = msgspec.field(name="confirmOffset", default=LogOffset(0))
    sync_state_set: list[Int64] = msgspec.field(default=[])
    """A master's: who is in step with it, itself included, as the controller has confirmed it."""
    counted: list[Int64] = msgspec.field(default=[])
    """A master's: who may be in the controller's set, and so is waited for."""
    set_epoch: Int32 | None = msgspec.field(name="syncStateSetEpoch", default=None)
    lease_ms: Int64 | None = msgspec.field(name="leaseMillis", default=None)
    """A master's: for how long it may still acknowledge alone; 0 if its lease is over."""
    reasons: list[str] = msgspec.field(default=[])
    """Why it is not as it should be; nothing if it is."""


class HARuntimeInfo(Body, frozen=True, kw_only=True):
    """A broker's replication: its slaves if it is master, its link if it is a slave.

    What follows the slave's link RocketMQ does not tell.
    """

    is_master: bool = msgspec.field(name="master")
    log_end: LogOffset64 = msgspec.field(name="masterCommitLogMaxOffset", default=LogOffset(0))
    in_sync_slave_count: Int32 = msgspec.field(name="inSyncSlaveNums", default=0)
    slaves: list[HAConnectionView] = msgspec.field(name="haConnectionInfo", default=[])
    client: HAClientView = msgspec.field(name="haClientRuntimeInfo", default=HAClientView())
    broker_name: str | None = None
    broker_id: Int64 | None = None
    role: str | None = None
    started_ms: Int64 | None = msgspec.field(name="startTimestamp", default=None)
    """Since when it serves with this log."""
    incarnation: str | None = None
    """Which log this is, in hex; a slave's is its master's."""
    authentication: str | None = None
    lag_bytes: Int64 | None = None
    """How far the best slave is behind; None, unknown, if none is connected."""
    refused: list[HARefusedView] = msgspec.field(name="refusedPeers", default=[])
    """The last of them, the newest last."""
    refused_counts: dict[str, int] = msgspec.field(name="refusedCounts", default={})
    """All of them, by kind."""
    controlled: ControlledView | None = None
    """In controller mode."""
    damage: list[str] = msgspec.field(default=[])
    """What of its log or its queues is not as it was written, each with what to do."""
