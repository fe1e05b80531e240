"""Records, heartbeats and situations as a controller has them."""

from collections.abc import Iterable

from tanist.controller.election import Situation
from tanist.controller.group_record import GroupRecord, Replica
from tanist.controller.live_table import Live, LiveTable
from tanist.protocol.headers.controller import BrokerHeartbeatRequest, ElectMasterRequest

CLUSTER, NAME = "c", "b"
NOW_S = 1000.0


def replica(broker_id: int) -> Replica:
    return Replica(address=f"127.0.0.1:{broker_id}", check_code=f"127.0.0.1:{broker_id};5")


def group(
    *,
    ids: Iterable[int] = (1, 2, 3),
    members: Iterable[int] = (1, 2),
    master: int | None = 1,
    session: str | None = "s1",
    epoch: int = 4,
    set_epoch: int = 7,
    lease_ms: int = 3_000,
    sessions: dict[int, str] | None = None,
) -> GroupRecord:
    """A group that has had masters, with replicas 1 to 3 of which 1 leads and 2 is in step."""
    replicas = {each: replica(each) for each in ids}
    return GroupRecord(
        cluster=CLUSTER,
        broker_name=NAME,
        replicas=replicas,
        next_id=max(replicas, default=0) + 1,
        epoch=epoch,
        set_epoch=set_epoch,
        sync_state_set=frozenset(members),
        member_sessions=sessions or {},
        master_id=master,
        master_session=session if master is not None else None,
        lease_ms=lease_ms,
        has_reigned=True,
    )


def heartbeat(broker_id: int | None = 1, **fields: object) -> BrokerHeartbeatRequest:
    """One of the replica's start ``s<id>``, which may be silent for 3 s."""
    given: dict[str, object] = {
        "cluster_name": CLUSTER,
        "broker_name": NAME,
        "broker_addr": f"127.0.0.1:{broker_id}",
        "broker_id": broker_id,
        "heartbeat_timeout_ms": 3_000,
        "session_id": f"s{broker_id}",
        **fields,
    }
    return BrokerHeartbeatRequest(**given)  # pyright: ignore[reportArgumentType]


def live(broker_id: int, **fields: object) -> Live:
    """What the table has of a replica after one heartbeat."""
    return LiveTable().on_heartbeat(heartbeat(broker_id, **fields), object(), now_s=NOW_S)[0]


def situation(
    *alive: Live, lease_end_s: float = 0.0, allows_unclean: bool = False, confirmed_to: int = 0
) -> Situation:
    return Situation(
        alive={each.broker_id: each for each in alive},
        lease_end_s=lease_end_s,
        now_s=NOW_S,
        allows_unclean=allows_unclean,
        confirmed_to=confirmed_to,
    )


def asks(broker_id: int, *, is_designated: bool = False, cluster: str = CLUSTER) -> ElectMasterRequest:
    return ElectMasterRequest(
        cluster_name=cluster, broker_name=NAME, broker_id=broker_id, is_designated=is_designated
    )
