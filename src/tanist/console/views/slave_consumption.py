"""Slave consumption: who of each group is read, why, and what has happened."""

from tanist.admin.slave_consume import Answered
from tanist.admin.why import Why, why_not_readable
from tanist.console.views.base import Level, View
from tanist.console.watching.snapshot import BrokerLook, Snapshot
from tanist.model.reading import GroupRole
from tanist.protocol.bodies.slave_consume import ChecksView, Condition, LedgerEntry


class Part(View, frozen=True, kw_only=True):
    """What one broker may do."""

    address: str
    role: str
    state: str
    permission: str
    configured_permission: str | None
    reason: str
    is_linked: bool
    registry: str
    held_for_ms: int | None
    """For how long nobody can take it for gone, while its session is not well."""
    level: Level


class Checks(View, frozen=True, kw_only=True):
    """How a slave's conditions for being read stand."""

    address: str
    count: int
    needed: int
    conditions: list[Condition]


class Ending(View, frozen=True, kw_only=True):
    """That an operator may have the master be read again, and what may be consumed twice then."""

    master: str
    term: int
    duplicates: dict[str, int] | None
    """By group; null if nobody can say."""


class GroupReading(View, frozen=True, kw_only=True):
    """Who of one replica group is read."""

    group: str
    level: Level
    headline: str
    reader: str | None
    """Who is read; null for nobody."""
    term: int
    since_ms: int
    reason: str
    parts: list[Part]
    checks: list[Checks]
    readers: list[str]
    reasons: list[str]
    """Why it is read there, or nowhere: the conditions as they were found."""
    ways_out: list[str]
    ledger: list[LedgerEntry]
    """Of all its brokers, the newest first."""
    damaged_count: int
    ending: Ending | None


class SlaveConsumption(View, frozen=True, kw_only=True):
    """All groups with a registry, and why the others have none."""

    taken_ms: int
    groups: list[GroupReading]
    without: dict[str, str]


def slave_consumption_view(snapshot: Snapshot) -> SlaveConsumption:
    groups: list[GroupReading] = []
    without: dict[str, str] = {}
    for name in snapshot.names:
        looks = snapshot.group(name)
        if any(look.slave_consume is not None for look in looks):
            groups.append(_group(name, looks))
        else:
            without[name] = next(
                (look.no_slave_consume for look in looks if look.no_slave_consume), "none of it answers"
            )
    return SlaveConsumption(taken_ms=snapshot.taken_ms, groups=groups, without=without)


def _group(name: str, looks: list[BrokerLook]) -> GroupReading:
    # What a broker that is gone told last is not how it stands.
    answers = [
        Answered(look.address, look.slave_consume if look.is_up else None, _failure(look)) for look in looks
    ]
    why = why_not_readable(name, answers)
    newest = max(
        (answer.status for answer in answers if answer.status is not None),
        key=lambda status: (status.term, status.at_ms),
        default=None,
    )
    record = None if newest is None else newest.record
    level, headline = _headline(why, looks)
    return GroupReading(
        group=name,
        level=level,
        headline=headline,
        reader=why.readers[0] if why.readers else None,
        term=0 if newest is None else newest.term,
        since_ms=0 if record is None else record.since_ms,
        reason="" if record is None else record.reason,
        parts=[_part(look) for look in looks],
        checks=[found for look in looks if (found := _checks(look)) is not None],
        readers=why.readers,
        reasons=why.reasons,
        ways_out=why.ways_out,
        ledger=_ledger(looks),
        damaged_count=sum(look.tables.ledger.damaged_count for look in looks if look.tables.ledger),
        ending=_ending(looks),
    )


def _headline(why: Why, looks: list[BrokerLook]) -> tuple[Level, str]:
    if not why.readers:
        return Level.BAD, "nobody is read: consumers of this group stand still"
    reader = next(look for look in looks if look.address == why.readers[0])
    if reader.is_master:
        absent = [look for look in looks if not look.is_up]
        if absent:
            return Level.WARN, "the master is read; its slave is away and could not take over now"
        return Level.GOOD, "the master is read"
    return Level.WARN, "consumers read from the slave: the master is gone or comes back"


def _part(look: BrokerLook) -> Part:
    status = look.slave_consume
    if status is None or not look.is_up:
        return Part(
            address=look.address,
            role="MASTER" if look.is_master else "SLAVE",
            state="away",
            permission="NONE",
            configured_permission=None if status is None else status.configured_permission,
            reason=_failure(look) or "tells nothing",
            is_linked=False,
            registry="unknown",
            held_for_ms=None,
            level=Level.BAD,
        )
    return Part(
        address=look.address,
        role=status.role.value,
        state=status.state,
        permission=status.permission,
        configured_permission=status.configured_permission,
        reason=status.reason,
        is_linked=status.is_linked,
        registry=status.registry.state,
        held_for_ms=None if status.registry.state == "connected" else status.registry.held_for_ms,
        level=_part_level(look),
    )


def _part_level(look: BrokerLook) -> Level:
    status = look.slave_consume
    assert status is not None
    if look.is_read_slave:
        return Level.WARN
    return Level.BAD if status.role is GroupRole.MASTER and not status.is_readable else Level.GOOD


def _checks(look: BrokerLook) -> Checks | None:
    """Of a slave that is not read, and answers."""
    status = look.slave_consume
    if status is None or status.checks is None or not look.is_up or status.reader is not None:
        return None
    checks: ChecksView = status.checks
    return Checks(
        address=look.address, count=checks.count, needed=checks.needed, conditions=checks.conditions
    )


def _ledger(looks: list[BrokerLook]) -> list[LedgerEntry]:
    entries = [entry for look in looks if look.tables.ledger for entry in look.tables.ledger.entries]
    return sorted(entries, key=lambda entry: -entry.at_ms)


def _ending(looks: list[BrokerLook]) -> Ending | None:
    for look in looks:
        status = look.slave_consume
        if status is None or not look.is_up or status.role is not GroupRole.MASTER or status.is_readable:
            continue
        if status.reader is not None or status.given_up is not None:
            return Ending(master=look.address, term=status.term, duplicates=status.duplicates_if_ended)
    return None


def _failure(look: BrokerLook) -> str | None:
    return look.failure or look.no_slave_consume
