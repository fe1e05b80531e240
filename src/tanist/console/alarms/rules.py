"""The rules that are shipped: what each reads of a snapshot, and when that is too much. Pure.

A rule gives a number for each subject: a slave, a group, a broker. An alarm begins when the number was at
``raise_at`` or above for ``hold_ms``, and ends when it was below ``clear_at`` for ``calm_ms``. Between the
two bounds it stays as it is, so that nothing flaps.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from tanist.console.alarms.trends import GROWTH_MS, Trends
from tanist.console.views.base import Level
from tanist.console.views.brokers import broker_row
from tanist.console.views.dead_letters import dead_letters_view
from tanist.console.views.groups import groups_view
from tanist.console.watching.snapshot import BrokerLook, Snapshot
from tanist.protocol.bodies.replication import HAConnectionView

_MIB = 1 << 20


class Reading(NamedTuple):
    """A number of one subject, what it says in words, and the page that tells more."""

    subject: str
    value: float
    text: str
    path: str


Read = Callable[[Snapshot, Trends], Iterator[Reading]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule."""

    name: str
    title: str
    level: Level
    raise_at: float
    clear_at: float
    hold_ms: int
    calm_ms: int
    unit: str
    read: Read

    def __post_init__(self) -> None:
        assert self.clear_at <= self.raise_at


def _slave_lag(snapshot: Snapshot, _trends: Trends) -> Iterator[Reading]:
    for look, slave, subject in _slaves(snapshot):
        # A master of RocketMQ tells bytes alone.
        value = slave.lag_ms / 1000 if slave.lag_ms is not None else slave.lag_bytes / (16 * _MIB)
        text = f"{slave.lag_bytes} bytes behind" + (
            "" if slave.lag_ms is None else f", {slave.lag_ms / 1000:.1f} s"
        )
        yield Reading(subject, value, text, _replication(look.name))


def _not_in_step(snapshot: Snapshot, _trends: Trends) -> Iterator[Reading]:
    for look, slave, subject in _slaves(snapshot):
        yield Reading(subject, 0 if slave.is_in_sync else 1, "is not in step", _replication(look.name))


def _no_slave(snapshot: Snapshot, _trends: Trends) -> Iterator[Reading]:
    for name in snapshot.names:
        group = snapshot.group(name)
        master = _master(group)
        if master is not None and master.ha is not None and len(group) > 1:
            value = 0 if master.ha.slaves else 1
            yield Reading(name, value, "the master has no slave connected", _replication(name))


def _refused(snapshot: Snapshot, trends: Trends) -> Iterator[Reading]:
    for look in snapshot.brokers:
        if look.ha is not None and look.is_up:
            count = sum(look.ha.refused_counts.values())
            grown = trends.grown(f"refused {look.address}", count, snapshot.taken_ms)
            text = f"turned away {grown} peers in the last minutes"
            yield Reading(look.address, grown, text, _replication(look.name))


def _backlog(snapshot: Snapshot, trends: Trends) -> Iterator[Reading]:
    for row in groups_view(snapshot).groups:
        risen = trends.rising(f"backlog {row.group}", row.backlog)
        text = f"{row.backlog} messages not consumed, {risen} more since it last got less"
        yield Reading(row.group, risen, text, f"/groups/{quote(row.group, safe='')}")


def _dead_letters(snapshot: Snapshot, trends: Trends) -> Iterator[Reading]:
    for row in dead_letters_view(snapshot).groups:
        grown = trends.grown(f"dead {row.group}", row.total_count, snapshot.taken_ms)
        # A group's first dead letter makes its topic: what is seen for the first time may be new.
        grown = max(grown, snapshot.taken_ms - row.last_ms < GROWTH_MS and row.kept_count > 0)
        text = f"{grown} dead letters in the last minutes, {row.kept_count} kept"
        yield Reading(row.group, grown, text, f"/dead-letters/{quote(row.group, safe='')}")


def _disk(snapshot: Snapshot, _trends: Trends) -> Iterator[Reading]:
    for look in snapshot.brokers:
        ratio = broker_row(look).disk_used_ratio
        if ratio is not None:
            yield Reading(look.address, ratio * 100, f"its disk is {ratio:.0%} full", _broker(look))


def _duplicates(snapshot: Snapshot, trends: Trends) -> Iterator[Reading]:
    for look in snapshot.brokers:
        for group, count in (
            {} if look.slave_consume is None else look.slave_consume.delivered_twice
        ).items():
            grown = trends.grown(f"twice {look.address} {group}", count, snapshot.taken_ms)
            text = f"{grown} messages delivered twice in the last minutes, {count} since the broker started"
            yield Reading(f"{group} at {look.address}", grown, text, "/slave-consumption")


def _broker_gone(snapshot: Snapshot, _trends: Trends) -> Iterator[Reading]:
    for look in snapshot.brokers:
        text = "answers" if look.is_up else f"does not answer: {look.failure}"
        yield Reading(look.address, 0 if look.is_up else 1, text, _broker(look))


def _lease(snapshot: Snapshot, _trends: Trends) -> Iterator[Reading]:
    for look in snapshot.brokers:
        controlled = None if look.ha is None or not look.is_up else look.ha.controlled
        if controlled is not None and look.is_master and controlled.lease_ms is not None:
            value = 0 if controlled.lease_ms else 1
            yield Reading(look.address, value, "its lease is over: it acknowledges nothing", _broker(look))


def _name_server(snapshot: Snapshot, _trends: Trends) -> Iterator[Reading]:
    failed = snapshot.failure is not None
    yield Reading("name servers", int(failed), f"none answers: {snapshot.failure}", "/brokers")


RULES: Sequence[Rule] = (
    Rule(
        name="broker-gone",
        title="A broker does not answer",
        level=Level.BAD,
        raise_at=1,
        clear_at=1,
        hold_ms=4_000,
        calm_ms=4_000,
        unit="",
        read=_broker_gone,
    ),
    Rule(
        name="lease-lost",
        title="A master has lost its lease",
        level=Level.BAD,
        raise_at=1,
        clear_at=1,
        hold_ms=0,
        calm_ms=4_000,
        unit="",
        read=_lease,
    ),
    Rule(
        name="name-server-gone",
        title="No name server answers",
        level=Level.BAD,
        raise_at=1,
        clear_at=1,
        hold_ms=4_000,
        calm_ms=4_000,
        unit="",
        read=_name_server,
    ),
    Rule(
        name="no-slave",
        title="A master has no slave",
        level=Level.BAD,
        raise_at=1,
        clear_at=1,
        hold_ms=10_000,
        calm_ms=4_000,
        unit="",
        read=_no_slave,
    ),
    Rule(
        name="not-in-step",
        title="A slave is not in step",
        level=Level.WARN,
        raise_at=1,
        clear_at=1,
        hold_ms=10_000,
        calm_ms=10_000,
        unit="",
        read=_not_in_step,
    ),
    Rule(
        name="slave-lag",
        title="A slave is behind",
        level=Level.WARN,
        raise_at=5,
        clear_at=1,
        hold_ms=10_000,
        calm_ms=10_000,
        unit="s",
        read=_slave_lag,
    ),
    Rule(
        name="refused-peers",
        title="Somebody is turned away from the port for slaves",
        level=Level.WARN,
        raise_at=1,
        clear_at=1,
        hold_ms=0,
        calm_ms=0,
        unit="peers",
        read=_refused,
    ),
    Rule(
        name="backlog-growing",
        title="A group falls behind more and more",
        level=Level.WARN,
        raise_at=1_000,
        clear_at=1,
        hold_ms=60_000,
        calm_ms=0,
        unit="messages",
        read=_backlog,
    ),
    Rule(
        name="dead-letters",
        title="A group gives up on messages",
        level=Level.WARN,
        raise_at=1,
        clear_at=1,
        hold_ms=0,
        calm_ms=0,
        unit="messages",
        read=_dead_letters,
    ),
    Rule(
        name="duplicates",
        title="Messages are delivered twice",
        level=Level.WARN,
        raise_at=1,
        clear_at=1,
        hold_ms=0,
        calm_ms=0,
        unit="messages",
        read=_duplicates,
    ),
    Rule(
        name="disk-full",
        title="A disk fills up",
        level=Level.WARN,
        raise_at=85,
        clear_at=80,
        hold_ms=10_000,
        calm_ms=10_000,
        unit="%",
        read=_disk,
    ),
)


def _master(group: list[BrokerLook]) -> BrokerLook | None:
    return next((look for look in group if look.is_master and look.is_up), None)


def _slaves(snapshot: Snapshot) -> Iterator[tuple[BrokerLook, HAConnectionView, str]]:
    for name in snapshot.names:
        master = _master(snapshot.group(name))
        for slave in () if master is None or master.ha is None else master.ha.slaves:
            # Its own port is another after each connect; its id stays.
            subject = (
                f"{name} {slave.addr.rpartition(':')[0] if slave.broker_id is None else slave.broker_id}"
            )
            assert master is not None
            yield master, slave, subject


def _replication(name: str) -> str:
    return f"/replication#{quote(name, safe='')}"


def _broker(look: BrokerLook) -> str:
    return f"/brokers/{quote(look.address, safe=':')}"
