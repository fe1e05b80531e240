"""The controller: ids, epochs, the sync state set, and who is master.

``master_ha_address`` is a field of ours: where slaves find the master's log, if it told.
"""

import msgspec

from tanist.model.integers import Int32, Int64, LogOffset64
from tanist.protocol.headers.base import Header


class ControllerMetadataResponse(Header, frozen=True, kw_only=True):
    """Who leads the controllers. ``peers`` reads ``n0:ip:port;n1:ip:port;``."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool | None = None
    peers: str | None = None


class GetNextBrokerIdRequest(Header, frozen=True, kw_only=True):
    """Asks which id a new replica of the group should apply for."""

    cluster_name: str
    broker_name: str


class GetNextBrokerIdResponse(Header, frozen=True, kw_only=True):
    """The id. It is not reserved."""

    cluster_name: str | None = None
    broker_name: str | None = None
    next_broker_id: Int64 | None = None


class ApplyBrokerIdRequest(Header, frozen=True, kw_only=True):
    """Takes an id. The same ``register_check_code`` (``address;millis``) may ask again."""

    cluster_name: str
    broker_name: str
    applied_broker_id: Int64
    register_check_code: str


class ApplyBrokerIdResponse(Header, frozen=True, kw_only=True):
    """Whose id it is now."""

    cluster_name: str | None = None
    broker_name: str | None = None


class RegisterReplicaRequest(Header, frozen=True, kw_only=True):
    """A replica reports for duty under its id."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    broker_address: str
    invoke_time_ms: Int64 | None = msgspec.field(name="invokeTime", default=None)


class RegisterReplicaResponse(Header, frozen=True, kw_only=True):
    """The live master of the group, if there is one."""

    cluster_name: str | None = None
    broker_name: str | None = None
    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    master_ha_address: str | None = None


class ElectMasterRequest(Header, frozen=True, kw_only=True):
    """Asks for an election. An operator designates ``broker_id``; a broker offers itself."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    is_designated: bool = msgspec.field(name="designateElect")
    invoke_time_ms: Int64 | None = msgspec.field(name="invokeTime", default=None)


class ElectMasterResponse(Header, frozen=True, kw_only=True):
    """The master, new or still there."""

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    master_ha_address: str | None = None


class AlterSyncStateSetRequest(Header, frozen=True, kw_only=True):
    """A master changes who is in step with it."""

    broker_name: str
    master_broker_id: Int64
    master_epoch: Int32
    invoke_time_ms: Int64 | None = msgspec.field(name="invokeTime", default=None)


class AlterSyncStateSetResponse(Header, frozen=True, kw_only=True):
    """The epoch of the set as it is now."""

    new_sync_state_set_epoch: Int32 | None = None


class ReplicaInfoResponse(Header, frozen=True, kw_only=True):
    """The master of the group. While there is none, only the epoch is given."""

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    master_ha_address: str | None = None


class NotifyRoleChangedRequest(Header, frozen=True, kw_only=True):
    """The controller tells a replica who is master now."""

    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    master_broker_id: Int64 | None = None
    master_ha_address: str | None = None


class CleanBrokerDataRequest(Header, frozen=True, kw_only=True):
    """Forgets replicas of a group. ``broker_ids`` reads ``1;2``; without it the whole group goes."""

    cluster_name: str | None = None
    broker_name: str
    broker_ids: str | None = msgspec.field(name="brokerControllerIdsToClean", default=None)
    is_clean_living_broker: bool | None = None
    invoke_time_ms: Int64 | None = msgspec.field(name="invokeTime", default=None)


class BrokerHeartbeatRequest(Header, frozen=True, kw_only=True):
    """A replica is alive. Name servers need the names, controllers need the rest to elect by."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64 | None = None
    epoch: Int32 | None = None
    log_end: LogOffset64 | None = msgspec.field(name="maxOffset", default=None)
    confirmed_to: LogOffset64 | None = msgspec.field(name="confirmOffset", default=None)
    heartbeat_timeout_ms: Int64 | None = msgspec.field(name="heartbeatTimeoutMills", default=None)
    election_priority: Int32 | None = None
    session_id: str | None = None
    """A field of ours, as are those that follow: another one for each start of the broker. Who sends it stops
    to acknowledge as master when its lease is over, so it is not replaced before that."""
    ha_address: str | None = None
    tables_gap: str | None = None
    """What this replica would lack as master: its tables are older than its log. None if nothing."""
    damage: str | None = None
    """A place of its log or its queues that is not as it was written; None if none is known."""


class BrokerHeartbeatResponse(Header, frozen=True, kw_only=True):
    """Whether the heartbeat renewed a lease.

    ``lease_epoch`` is the reign whose master may acknowledge for ``heartbeat_timeout_ms``, counted from when
    it sent the heartbeat. It is None if it is not master, or if this controller does not lead.
    """

    lease_epoch: Int32 | None = None


class ReportDeadBrokerRequest(Header, frozen=True, kw_only=True):
    """Whoever saw a broker's process end tells it. Only who started it knows its ``session_id``."""

    cluster_name: str
    broker_name: str
    session_id: str
