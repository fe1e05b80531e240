"""How a broker stands to its master or its slaves, for operators: in answers, in metrics and in the log."""

import msgspec

from tanist.broker.controlled.status import ControlledStatus
from tanist.broker.operating.damage import damage_lines
from tanist.broker.state import BrokerState
from tanist.ha.follower import Follower
from tanist.ha.replicas import Dialect, Replica
from tanist.ha.settings import HaAuthentication, HaSettings
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies.replication import (
    ControlledView,
    HAClientView,
    HAConnectionView,
    HARefusedView,
    HARuntimeInfo,
)
from tanist.store.set_aside import aside_folders


def ha_status(state: BrokerState) -> HARuntimeInfo:
    """All there is to tell now."""
    replication, settings = state.replication, state.settings
    replicas, log_end = replication.replicas, state.store.log.log_end
    best = replicas.best_acked()
    follower = replication.follower
    return HARuntimeInfo(
        is_master=not settings.is_slave,
        log_end=LogOffset(log_end if not settings.is_slave else told_log_end(state) or 0),
        in_sync_slave_count=sum(replicas.is_in_step(replica, log_end) for replica in replicas),
        slaves=[_slave_view(state, replica, log_end) for replica in replicas],
        client=HAClientView() if follower is None else _client_view(state, follower, log_end),
        broker_name=settings.broker_name,
        broker_id=settings.broker_id,
        role=settings.broker_role.value,
        started_ms=state.counters.boot_ms,
        incarnation=state.store.incarnation.hex(),
        authentication=_authentication(state.ha),
        lag_bytes=None if best is None else max(0, log_end - best),
        refused=[
            HARefusedView(addr=peer.peer, reason=peer.reason, received=peer.received, at_ms=peer.at_ms)
            for peer in replicas.refused
        ],
        refused_counts=dict(replicas.refused_counts),
        controlled=None if state.controlled is None else _controlled_view(state, state.controlled.status),
        damage=damage_lines(state),
    )


def told_log_end(state: BrokerState) -> int | None:
    """Where a slave's master says that its log ends.

    None unless the link works, for what was told before may be long past, and None of a master of RocketMQ,
    which does not tell it.
    """
    follower = state.replication.follower
    if follower is None or not follower.is_transferring or follower.status.dialect is not Dialect.TANIST:
        return None
    return follower.status.master_log_end


def _controlled_view(state: BrokerState, status: ControlledStatus) -> ControlledView:
    reign = state.writer.reign
    now_s = state.clock.monotonic_s()
    reasons = list(status.reasons)
    if reign is not None and (refusal := reign.refusal()) is not None:
        reasons.append(refusal)
    view = ControlledView(
        state=status.state.value,
        controller=status.controller,
        replica_id=status.broker_id,
        role=status.role.value,
        epoch=status.epoch,
        confirmed_to=LogOffset(confirmed_to(state)),
        reasons=reasons,
    )
    if reign is None:
        return view
    return msgspec.structs.replace(
        view,
        sync_state_set=sorted(reign.sync_state.members),
        counted=sorted(reign.sync_state.counted),
        set_epoch=reign.sync_state.set_epoch,
        lease_ms=max(0, int((reign.lease.ends_s - now_s) * 1000)),
    )


def confirmed_to(state: BrokerState) -> int:
    """Up to where consumers may see the log."""
    confirmed_to = state.store.dispatcher.confirmed_log_end
    return state.store.log.log_end if confirmed_to is None else confirmed_to


def _slave_view(state: BrokerState, replica: Replica, log_end: int) -> HAConnectionView:
    return HAConnectionView(
        addr=replica.peer,
        acked_to=LogOffset(replica.acked_to),
        lag_bytes=replica.lag_bytes(log_end),
        is_in_sync=state.replication.replicas.is_in_step(replica, log_end),
        bytes_per_second=replica.rate.bytes_per_second(state.clock.monotonic_s()),
        sent_from=LogOffset(replica.sent_from),
        broker_id=replica.broker_id,
        dialect=replica.dialect.value,
        requested_to=LogOffset(replica.requested_to),
        sent_to=LogOffset(replica.sent_to),
        sent_bytes=replica.sent_bytes,
        lag_ms=state.replication.lag_ms(replica),
        ack_kind=replica.ack_kind.name.lower(),
        counts=replica.counts,
        since_ms=replica.since_ms,
    )


def _client_view(state: BrokerState, follower: Follower, log_end: int) -> HAClientView:
    status, master_log_end = follower.status, told_log_end(state)
    return HAClientView(
        master_addr=status.master_address,
        bytes_per_second=follower.rate.bytes_per_second(state.clock.monotonic_s()),
        log_end=LogOffset(log_end),
        last_read_timestamp_ms=status.last_read_ms,
        last_write_timestamp_ms=status.last_write_ms,
        state=status.state.value,
        is_refused=status.is_refused,
        reason=status.failure,
        master_log_end=None if master_log_end is None else LogOffset(master_log_end),
        lag_bytes=None if master_log_end is None else max(0, master_log_end - log_end),
        aside_count=len(aside_folders(state.store.root)),
        rebuild_failure=state.rebuild_failure,
    )


def _authentication(ha: HaSettings) -> str:
    """What a peer really has to prove."""
    is_secret_missing = ha.ha_authentication is HaAuthentication.SECRET and not ha.ha_secret
    return (HaAuthentication.NONE if is_secret_missing else ha.ha_authentication).value
