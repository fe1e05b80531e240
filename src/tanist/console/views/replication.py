"""Replication: who follows whom, how far behind, in which epoch, and who was turned away."""

from collections.abc import Sequence

from tanist.console.views.base import Level, View, worst
from tanist.console.views.brokers import broker_state
from tanist.console.watching.role_changes import RoleChange
from tanist.console.watching.snapshot import BrokerLook, Snapshot
from tanist.protocol.bodies.replication import OPEN_END, EpochCache, HAConnectionView

_LATE_MS = 5_000
"""A slave that is further behind asks for an operator."""


class SlaveLink(View, frozen=True, kw_only=True):
    """One slave, as its master sees it."""

    address: str
    broker_id: int | None
    acked_to: int
    lag_bytes: int
    lag_ms: int | None
    bytes_per_second: int
    is_in_sync: bool
    counts: bool | None
    """Whether a SYNC_MASTER waits for it; null where it does not say."""
    dialect: str | None
    since_ms: int | None
    level: Level


class Replica(View, frozen=True, kw_only=True):
    """One broker of the group, as it sees itself."""

    address: str
    broker_id: int
    role: str
    """``MASTER`` or ``SLAVE``; of one that does not answer, what it was last: another may be that by now."""
    is_up: bool
    level: Level
    state: str
    log_end: int | None
    """Of one that does not answer, as it was when it did."""
    follows: str | None
    """The port of its master that it is linked to, or tries to reach."""
    link_state: str | None
    lag_bytes: int | None


class EpochRow(View, frozen=True, kw_only=True):
    """One reign in the log: ``[start, end)``; ``end`` is null for the one that goes on."""

    epoch: int
    start: int
    end: int | None
    size_bytes: int
    share: float
    """Of the whole log, 0 to 1."""


class Refused(View, frozen=True, kw_only=True):
    """A peer that was turned away from the port for slaves."""

    by: str
    address: str
    reason: str
    received: str
    at_ms: int


class ReplicaGroupView(View, frozen=True, kw_only=True):
    """One replica group."""

    name: str
    cluster: str
    mode: str
    """``auto-switch`` under a controller, else ``fixed roles``."""
    level: Level
    master: str | None
    authentication: str | None
    """How slaves prove who they are: ``secret``, ``tls`` or ``none``; null where a master does not say."""
    log_end: int | None
    epoch: int | None
    confirmed_to: int | None
    sync_state_set: list[int] | None
    lease_ms: int | None
    reasons: list[str]
    slaves: list[SlaveLink]
    replicas: list[Replica]
    epochs: list[EpochRow]
    refused: list[Refused]
    refused_counts: dict[str, int]
    role_changes: list[RoleChange]
    """Those that this console saw, the newest first."""


class Replication(View, frozen=True, kw_only=True):
    """All replica groups."""

    taken_ms: int
    groups: list[ReplicaGroupView]


def replication_view(snapshot: Snapshot, changes: Sequence[RoleChange] = ()) -> Replication:
    groups = [
        _group(name, snapshot.group(name), [change for change in changes if change.group == name])
        for name in snapshot.names
    ]
    return Replication(taken_ms=snapshot.taken_ms, groups=groups)


def _group(name: str, looks: list[BrokerLook], changes: list[RoleChange]) -> ReplicaGroupView:
    master = next((look for look in looks if look.is_master and look.is_up), None)
    ha = None if master is None else master.ha
    controlled = None if ha is None else ha.controlled
    slaves = [] if ha is None else [_slave(slave) for slave in ha.slaves]
    replicas = [_replica(look) for look in looks]
    epochs = next((look.tables.epochs for look in looks if look.tables.epochs), None)
    refused = [peer for look in looks for peer in _refusals(look)]
    expected = len(looks) - 1
    missing = Level.WARN if master is not None and len(slaves) < expected and ha is not None else Level.GOOD
    return ReplicaGroupView(
        name=name,
        cluster=looks[0].place.cluster,
        mode="auto-switch" if _is_controlled(looks) else "fixed roles",
        level=worst(
            Level.BAD if master is None else Level.GOOD,
            missing,
            *(replica.level for replica in replicas),
            *(slave.level for slave in slaves),
        ),
        master=None if master is None else master.address,
        authentication=None if ha is None else ha.authentication,
        log_end=None if ha is None else ha.log_end,
        epoch=None if controlled is None else controlled.epoch,
        confirmed_to=None if controlled is None else controlled.confirmed_to,
        sync_state_set=None if controlled is None else controlled.sync_state_set,
        lease_ms=None if controlled is None else controlled.lease_ms,
        reasons=[] if controlled is None else list(controlled.reasons),
        slaves=slaves,
        replicas=replicas,
        epochs=[] if epochs is None else _epochs(epochs),
        refused=sorted(refused, key=lambda peer: -peer.at_ms)[:20],
        refused_counts=_counts(looks),
        role_changes=changes,
    )


def _is_controlled(looks: list[BrokerLook]) -> bool:
    return any(look.ha is not None and look.ha.controlled is not None for look in looks)


def _slave(slave: HAConnectionView) -> SlaveLink:
    is_late = slave.lag_ms is not None and slave.lag_ms > _LATE_MS
    return SlaveLink(
        address=slave.addr,
        broker_id=slave.broker_id,
        acked_to=slave.acked_to,
        lag_bytes=slave.lag_bytes,
        lag_ms=slave.lag_ms,
        bytes_per_second=slave.bytes_per_second,
        is_in_sync=slave.is_in_sync,
        counts=slave.counts,
        dialect=slave.dialect,
        since_ms=slave.since_ms,
        level=Level.WARN if is_late or not slave.is_in_sync else Level.GOOD,
    )


def _replica(look: BrokerLook) -> Replica:
    level, state = broker_state(look)
    ha = look.ha
    is_follower = ha is not None and not ha.is_master and look.is_up
    return Replica(
        address=look.address,
        broker_id=look.broker_id,
        role="MASTER" if look.is_master else "SLAVE",
        is_up=look.is_up,
        level=level,
        state=state,
        log_end=None if ha is None else (ha.log_end if ha.is_master else ha.client.log_end),
        follows=ha.client.master_addr if ha is not None and is_follower else None,
        link_state=ha.client.state if ha is not None and is_follower else None,
        lag_bytes=ha.client.lag_bytes if ha is not None and is_follower else None,
    )


def _epochs(cache: EpochCache) -> list[EpochRow]:
    """The newest last."""
    whole = max(1, cache.log_end - (cache.epochs[0].start if cache.epochs else 0))
    rows: list[EpochRow] = []
    for epoch in cache.epochs:
        end = cache.log_end if epoch.end == OPEN_END else epoch.end
        size = max(0, end - epoch.start)
        is_open = epoch is cache.epochs[-1]
        rows.append(
            EpochRow(
                epoch=epoch.epoch,
                start=epoch.start,
                end=None if is_open else end,
                size_bytes=size,
                share=size / whole,
            )
        )
    return rows


def _refusals(look: BrokerLook) -> list[Refused]:
    return [
        Refused(
            by=look.address, address=peer.addr, reason=peer.reason, received=peer.received, at_ms=peer.at_ms
        )
        for peer in ([] if look.ha is None else look.ha.refused)
    ]


def _counts(looks: list[BrokerLook]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for look in looks:
        for kind, count in ({} if look.ha is None else look.ha.refused_counts).items():
            counts[kind] = counts.get(kind, 0) + count
    return dict(sorted(counts.items()))
