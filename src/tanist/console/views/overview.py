"""The first page: is all well, and if not, what is it and where to look."""

from collections.abc import Collection
from urllib.parse import quote

from tanist.console.views.base import Level, View, worst
from tanist.console.views.brokers import broker_row
from tanist.console.views.groups import groups_view
from tanist.console.views.replication import ReplicaGroupView, replication_view
from tanist.console.views.slave_consumption import GroupReading, slave_consumption_view
from tanist.console.watching.history import IN, OUT, figures
from tanist.console.watching.snapshot import Snapshot

_FULL_DISK_RATIO = 0.85
_SHOWN_NOTICES = 20


class Notice(View, frozen=True, kw_only=True):
    """Something that asks for an operator, and the page that tells more."""

    level: Level
    text: str
    path: str


class GroupCard(View, frozen=True, kw_only=True):
    """One replica group in short."""

    name: str
    cluster: str
    mode: str
    level: Level
    headline: str
    master: str | None
    reader: str | None
    replica_count: int
    up_count: int
    worst_lag_bytes: int | None
    worst_lag_ms: int | None


class Overview(View, frozen=True, kw_only=True):
    """The cluster in short."""

    taken_ms: int
    name_server: str
    level: Level
    headline: str
    in_per_second: float
    out_per_second: float
    broker_count: int
    up_count: int
    group_count: int
    backlog: int
    notices: list[Notice]
    groups: list[GroupCard]
    call_count: int
    """So many questions the last look at the cluster took."""


def overview(snapshot: Snapshot) -> Overview:
    row = figures(snapshot)
    replication = replication_view(snapshot)
    reading = slave_consumption_view(snapshot)
    readings = {group.group: group for group in reading.groups}
    consumers = groups_view(snapshot)
    cards = [_card(group, readings.get(group.name)) for group in replication.groups]
    late = [group.group for group in consumers.groups if group.level != Level.GOOD]
    notices = _notices(snapshot, cards, late, without_registry=reading.without.keys())
    level = worst(*(notice.level for notice in notices))
    return Overview(
        taken_ms=snapshot.taken_ms,
        name_server=snapshot.name_server,
        level=level,
        headline=_headline(snapshot, level, notices),
        in_per_second=row[IN],
        out_per_second=row[OUT],
        broker_count=len(snapshot.brokers),
        up_count=sum(look.is_up for look in snapshot.brokers),
        group_count=consumers.total_count,
        backlog=sum(group.backlog for group in consumers.groups),
        notices=notices[:_SHOWN_NOTICES],
        groups=cards,
        call_count=snapshot.call_count,
    )


def _headline(snapshot: Snapshot, level: Level, notices: list[Notice]) -> str:
    if not snapshot.brokers:
        return "No broker is known here"
    if level in {Level.GOOD, Level.NOTE}:
        return "All is well"
    count = sum(notice.level in {Level.WARN, Level.BAD} for notice in notices)
    return f"{count} thing{'' if count == 1 else 's'} to look at"


def _card(group: ReplicaGroupView, reading: GroupReading | None) -> GroupCard:
    up = [replica for replica in group.replicas if replica.is_up]
    if reading is not None:
        headline, level, reader = reading.headline, worst(group.level, reading.level), reading.reader
    else:
        reader = group.master
        headline, level = _replicated(group), group.level
    lags_ms = [slave.lag_ms for slave in group.slaves if slave.lag_ms is not None]
    return GroupCard(
        name=group.name,
        cluster=group.cluster,
        mode=group.mode,
        level=level,
        headline=headline,
        master=group.master,
        reader=reader,
        replica_count=len(group.replicas),
        up_count=len(up),
        worst_lag_bytes=max((slave.lag_bytes for slave in group.slaves), default=None),
        worst_lag_ms=max(lags_ms, default=None),
    )


def _replicated(group: ReplicaGroupView) -> str:
    if group.master is None:
        return "has no master that answers"
    in_step = sum(slave.is_in_sync for slave in group.slaves)
    if not group.slaves:
        return "the master serves alone" if len(group.replicas) == 1 else "the master has no slave connected"
    return f"the master serves, {in_step} of {len(group.slaves)} slaves in step"


def _notices(
    snapshot: Snapshot, cards: list[GroupCard], late: list[str], *, without_registry: Collection[str]
) -> list[Notice]:
    """The worst first."""
    notices: list[Notice] = []
    if snapshot.failure is not None:
        notices.append(
            Notice(level=Level.BAD, text=f"no name server answers: {snapshot.failure}", path="/brokers")
        )
    for card in cards:
        if card.level in {Level.WARN, Level.BAD}:
            page = "replication" if card.name in without_registry else "slave-consumption"
            path = f"/{page}#{quote(card.name, safe='')}"
            notices.append(Notice(level=card.level, text=f"{card.name}: {card.headline}", path=path))
    for look in snapshot.brokers:
        if look.is_read_slave:
            # Its group says so already.
            continue
        row = broker_row(look)
        path = f"/brokers/{quote(row.address, safe=':')}"
        if row.level in {Level.WARN, Level.BAD}:
            notices.append(Notice(level=row.level, text=f"{row.address} {row.state}", path=path))
        if row.disk_used_ratio is not None and row.disk_used_ratio > _FULL_DISK_RATIO:
            text = f"{row.address}: its disk is {row.disk_used_ratio:.0%} full"
            notices.append(Notice(level=Level.WARN, text=text, path=path))
    notices += [
        Notice(
            level=Level.WARN,
            text=f"group {group} is more than a minute behind, or may not consume",
            path=f"/groups/{quote(group, safe='')}",
        )
        for group in late
    ]
    return sorted(notices, key=lambda notice: notice.level != Level.BAD)
