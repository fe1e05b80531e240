"""Why a group is not readable: the conditions that brokers evaluate, and the way out of each. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tanist.admin.slave_consume import Answered
from tanist.model.reading import GroupRole
from tanist.protocol.bodies.slave_consume import SlaveConsumeStatus


@dataclass(slots=True)
class Why:
    """The answer."""

    group: str
    readers: list[str]
    """Who may be read now: one, and nobody while it is not readable."""
    reasons: list[str] = field(default_factory=list[str])
    ways_out: list[str] = field(default_factory=list[str])

    def add(self, reason: str, way_out: str | None = None) -> None:
        self.reasons.append(reason)
        if way_out is not None and way_out not in self.ways_out:
            self.ways_out.append(way_out)


def why_not_readable(group: str, answers: Sequence[Answered]) -> Why:
    """What all brokers of a group together tell of it."""
    statuses = {answer.address: answer.status for answer in answers if answer.status is not None}
    why = Why(group, [address for address, status in statuses.items() if status.is_readable])
    for answer in answers:
        if answer.status is None:
            why.add(f"{answer.address} does not answer: {answer.failure}")
        elif why.readers:
            why.add(f"{answer.address} may do {answer.status.permission}: {answer.status.reason}")
        elif answer.status.role is GroupRole.MASTER:
            _explain_master(why, answer.status, statuses)
        else:
            _explain_slave(why, answer.status)
    if why.readers:
        why.ways_out.clear()
    elif not any(status.role is GroupRole.MASTER for status in statuses.values()):
        masters = [
            broker.address
            for status in statuses.values()
            for broker in status.brokers
            if broker.role is GroupRole.MASTER
        ]
        why.add("no master answers", f"start the master{f' at {masters[0]}' if masters else ''}")
    return why


def _explain_master(why: Why, status: SlaveConsumeStatus, statuses: dict[str, SlaveConsumeStatus]) -> None:
    who = f"master {status.address}"
    why.add(f"{who} may do {status.permission}, {status.state}: {status.reason}")
    end = f"tanist admin endSlaveConsume -b {status.address}"
    if status.record is None:
        why.add(
            f"{who}: its session with the registry is {status.registry.state}",
            f"see that the registry which {status.address} has as coordinator is up and can be reached",
        )
    elif status.configured_permission is None:
        why.add(f"{who} is not in the assignment of {why.group}", "give it a role: tanist admin assignRoles")
    elif status.reader is not None:
        _explain_reader(why, status.reader, statuses.get(status.reader), end)
    elif status.given_up is not None:
        second = "the slave" if status.record.second is None else f"slave {status.record.second}"
        why.add(f"{who} can not know whether {second} is read", f"start {second}: then it recovers by itself")
        why.ways_out.append(f"if {second} is gone for good: {end}")
    elif status.state != "serving":
        why.add(
            f"{who} has not got the offsets of slave consumption {status.term}; it has those of "
            f"{0 if status.adopted is None else status.adopted.term}",
            f"put its config folder back as it was, or go on with the offsets that it has: {end}",
        )
    else:
        why.add(
            f"{who} is assigned {status.configured_permission}",
            "give it READ again: tanist admin assignRoles, or brokerPermission",
        )


def _explain_reader(why: Why, reader: str, status: SlaveConsumeStatus | None, end: str) -> None:
    """A slave is to be read, and is not."""
    if status is None:
        why.add(
            f"slave {reader} is the one that is to be read, and does not answer",
            f"start {reader}: it is read again, or hands back",
        )
        why.ways_out.append(f"if {reader} is gone for good: {end}")
    elif status.is_linked:
        why.add(f"slave {reader} is connected to its master", "wait: the hand-back is under way")
    else:
        why.add(
            f"slave {reader} is not connected to its master",
            f"see why its link is down: tanist admin haStatus -b {reader}",
        )


def _explain_slave(why: Why, status: SlaveConsumeStatus) -> None:
    why.add(f"slave {status.address} may do NONE, {status.state}: {status.reason}")
    checks = status.checks
    if checks is None or status.reader is not None:
        return
    why.add(
        f"slave {status.address}: all conditions held in {checks.count} of {checks.needed} checks in a row"
    )
    for condition in checks.conditions:
        if not condition.holds:
            why.add(f"slave {status.address}: does not hold: {condition.name} (found: {condition.found})")
