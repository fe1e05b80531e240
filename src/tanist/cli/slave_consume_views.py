"""How a terminal shows slave consumption."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tanist.admin.slave_consume import Answered
from tanist.admin.why import Why
from tanist.cli.ha_views import print_whole, shown, time_of
from tanist.model.reading import Assignment, permission_name
from tanist.protocol.bodies.slave_consume import LedgerEntry, SlaveConsumeLedger, SlaveConsumeStatus

_STATUS_COLUMNS = ("broker", "role", "state", "may do", "assigned", "term", "read", "linked", "registry")
_LEDGER_COLUMNS = ("when", "event", "term", "broker", "twice at most", "why")
_SHOWN_GROUPS = 10


def answers_to_json(answers: Sequence[Answered]) -> list[dict[str, object]]:
    return [
        {"brokerAddr": answer.address, "status": answer.status, "failure": answer.failure}
        for answer in answers
    ]


def print_statuses(console: Console, answers: Sequence[Answered]) -> None:
    """A line a broker, and below why each may do no more."""
    table = Table(*_STATUS_COLUMNS, box=None)
    for answer in answers:
        if answer.status is not None:
            table.add_row(*map(Text, _status_row(answer.status)))
    if table.row_count:
        print_whole(console, table)
    for answer in answers:
        if answer.status is None:
            _line(console, f"{answer.address} does not answer: {answer.failure}")
        else:
            _print_details(console, answer.status)


def print_ledger(console: Console, ledger: SlaveConsumeLedger) -> None:
    """A line an entry; the conditions and offsets are in the JSON."""
    if not ledger.entries:
        _line(console, "no slave consumption was written down here")
    else:
        table = Table(*_LEDGER_COLUMNS, box=None)
        for entry in ledger.entries:
            table.add_row(*map(Text, _ledger_row(entry)))
        print_whole(console, table)
    if ledger.damaged_count:
        _line(console, f"{ledger.damaged_count} lines of the ledger are damaged and not shown")


def print_why(console: Console, why: Why) -> None:
    if why.readers:
        _line(console, f"{why.group} is readable: {' and '.join(why.readers)}")
    else:
        _line(console, f"{why.group} is not readable")
    for reason in why.reasons:
        _line(console, f"  {reason}")
    for way_out in why.ways_out:
        _line(console, f"way out: {way_out}")


def print_assignment(console: Console, title: str, assignment: Assignment | None) -> None:
    _line(console, f"{title}:{' nothing' if assignment is None else ''}")
    for broker in () if assignment is None else assignment.brokers:
        _line(
            console,
            f"  {broker.role} {broker.address} id {broker.broker_id} {permission_name(broker.permission)}",
        )


def duplicates_text(duplicates: Mapping[str, int]) -> str:
    """By group, those with the most first."""
    most = sorted(duplicates.items(), key=lambda each: (-each[1], each[0]))
    lines = [f"  {group}: {count} at most" for group, count in most[:_SHOWN_GROUPS]]
    if len(most) > _SHOWN_GROUPS:
        lines.append(
            f"  {len(most) - _SHOWN_GROUPS} more groups: {sum(count for _, count in most[_SHOWN_GROUPS:])}"
        )
    return "\n".join(lines or ["  nothing"])


def _status_row(status: SlaveConsumeStatus) -> tuple[str, ...]:
    return (
        status.address,
        status.role.value,
        status.state,
        status.permission,
        shown(status.configured_permission),
        str(status.term),
        status.reader or "the master",
        shown(status.is_linked),
        f"{status.registry.state}, held {status.registry.held_for_ms} ms",
    )


def _print_details(console: Console, status: SlaveConsumeStatus) -> None:
    _line(console, f"{status.address}: {status.reason}")
    record = status.record
    if record is not None and record.reason:
        _line(console, f"  since {time_of(record.since_ms)}: {record.reason}")
    if status.given_up is not None:
        _line(console, f"  given up: {status.given_up}")
    if status.duplicates_if_ended:
        total = sum(status.duplicates_if_ended.values())
        _line(console, f"  consumed twice at most if it is ended now: {total}")
    if status.delivered_twice:
        total = sum(status.delivered_twice.values())
        _line(console, f"  delivered twice, by the broker that was read before and by this one: {total}")
    if (checks := status.checks) is not None and status.reader is None:
        _line(console, f"  {checks.count} of {checks.needed} checks, seen at {time_of(status.at_ms)}")
        for condition in checks.conditions:
            mark = "holds" if condition.holds else "does not hold"
            _line(console, f"    {condition.name}: {mark} ({condition.found})")


def _ledger_row(entry: LedgerEntry) -> tuple[str, ...]:
    at_most = "" if entry.duplicates_at_most is None else str(entry.duplicates_at_most)
    return (
        time_of(entry.at_ms),
        entry.event.value,
        f"{entry.term}.{entry.round}" if entry.round else str(entry.term),
        entry.broker,
        at_most,
        entry.reason,
    )


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
