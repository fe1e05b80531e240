"""``tanist admin``: who of a group with fixed roles is read, why, and what to do when nobody is."""

import asyncio
from functools import partial
from typing import NamedTuple

import click
from rich.console import Console

from tanist.admin.asking import Access
from tanist.admin.parallel import Told
from tanist.admin.refused import NotThere
from tanist.admin.roles import assign_roles, read_assignment
from tanist.admin.slave_consume import (
    Answered,
    ask_status,
    end_slave_consume,
    group_addresses,
    group_statuses,
    slave_consume_ledger,
    slave_consume_status,
)
from tanist.admin.why import why_not_readable
from tanist.cli.asked import JSON, run_asking
from tanist.cli.commanding import ALL_BROKERS, BROKER, Asker, command
from tanist.cli.shown import Shown, outcome_of, to_json
from tanist.cli.slave_consume_views import (
    answers_to_json,
    duplicates_text,
    print_assignment,
    print_ledger,
    print_statuses,
    print_why,
)
from tanist.client.session.wire import Wire
from tanist.coord import open_registry
from tanist.model.reading import GroupRole, assignment_path, decode_assignment
from tanist.protocol.bodies.slave_consume import SlaveConsumeStatus


@command(
    "slaveConsumeStatus",
    click.option("-b", "--brokerAddr", "address", help="One broker, host:port, and the others of its group."),
    ALL_BROKERS,
    repeats=True,
)
async def status_command(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Show what brokers may do: who is read, since when, why, and how a slave's checks stand."""
    answers = await group_statuses(ask.wire, await ask.brokers(address, cluster, with_slaves=True))
    told = [Told(answer.address, answer.status, answer.error) for answer in answers]
    return Shown(answers_to_json(answers), [partial(print_statuses, answers=answers)], outcome_of(told))


@command(
    "slaveConsumeLedger",
    BROKER,
    click.option(
        "--count",
        type=click.IntRange(1, 1_000),
        default=20,
        show_default=True,
        help="So many of the last entries.",
    ),
    repeats=True,
)
async def ledger_command(ask: Asker, *, address: str, count: int) -> Shown:
    """Show what a broker wrote down: each switch and hand-back, why, and what may be consumed twice.

    The JSON has the conditions and the offsets of each too. Master and slave have a ledger each.
    """
    ledger = await slave_consume_ledger(ask.wire, address, count)
    return Shown(ledger, [partial(print_ledger, ledger=ledger)])


class _Ending(NamedTuple):
    """What is to be ended."""

    status: SlaveConsumeStatus
    slave: Answered | None
    """The slave that may be read, as it answers now."""


@click.command(name="endSlaveConsume")
@click.option("-b", "--brokerAddr", "address", required=True, help="The master, host:port.")
@click.option("--reason", default="", help="Why, for the ledger.")
@click.option("--force", "is_forced", is_flag=True, help="Also if the slave that is read is alive.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
@click.pass_obj
def end_command(
    access: Access, *, address: str, reason: str, is_forced: bool, yes: bool, as_json: bool
) -> None:
    """Have a master be read again whose slave was read, or may be, and does not come back.

    What the slave delivered in the meantime the master does not know: consumers may get it again. So start
    the slave if that is possible; it hands back what it knows by itself.
    """
    ending = run_asking(access, lambda wire: _look_before_end(wire, address))
    _check_ending(ending, is_forced=is_forced)
    if not yes:
        click.confirm(_question(ending), abort=True, err=True)

    async def end(wire: Wire) -> tuple[str, SlaveConsumeStatus]:
        done = await end_slave_consume(wire, ending.status, reason=reason, is_forced=is_forced)
        return done, await slave_consume_status(wire, address)

    done, after = run_asking(access, end)
    duplicates = ending.status.duplicates_if_ended
    if as_json:
        click.echo(to_json({"done": done, "duplicatesAtMost": duplicates, "status": after}))
    else:
        click.echo(f"{done}; {address} may do {after.permission}: {after.reason}")


@click.command(name="assignRoles")
@click.option("--coordinator", required=True, help="The registry, as in the brokers' setting coordinator.")
@click.option("-b", "--brokerName", "group", required=True, help="The group.")
@click.option("--master", required=True, help="ADDRESS[=PERMISSION]")
@click.option("--slave", "slaves", multiple=True, help="ADDRESS[:ID][=PERMISSION], once for each slave.")
@click.option(
    "--force",
    "is_forced",
    is_flag=True,
    help="Also while a slave is read, or a master is alive that is replaced.",
)
@JSON
def assign_command(
    *, coordinator: str, group: str, master: str, slaves: tuple[str, ...], is_forced: bool, as_json: bool
) -> None:
    """Say who is master and who is slave in a group, and what each may do: FULL, WRITE, READ or NONE.

    A broker takes its role when it starts, and what it may do at once. A broker that is left out here enters
    itself, by its own settings, when it starts next.
    """
    assignment = read_assignment(group, master, slaves)

    async def assign() -> None:
        async with open_registry(coordinator) as registry:
            before, after = await assign_roles(registry, assignment, is_forced=is_forced)
        if as_json:
            click.echo(to_json({"before": before, "after": after}))
        else:
            print_assignment(Console(), "before", before)
            print_assignment(Console(), "now", after)

    asyncio.run(assign())


@command(
    "why",
    click.argument("group"),
    click.argument("what", type=click.Choice(["not-readable"])),
    click.option("-b", "--brokerAddr", "addresses", multiple=True, help="A broker of the group, host:port."),
    click.option(
        "--coordinator", help="The registry, as in the brokers' setting coordinator: tanist://… or zk://…"
    ),
    repeats=True,
)
async def why_command(
    ask: Asker, *, group: str, what: str, addresses: tuple[str, ...], coordinator: str | None
) -> Shown:
    """Ask all brokers of GROUP why it is not readable; the conditions as they found them, and the way out.

    A group of which nobody is read is not in the name server's routes: name a broker by -b, or the registry.
    """
    del what
    if not (addresses or ask.named or coordinator):
        raise click.UsageError("give -n, a name server, -b, a broker of the group, or --coordinator")
    known = set(addresses)
    if ask.named:
        known |= set(await group_addresses(ask.wire, await ask.name_server(), group))
    if coordinator is not None:
        known |= await _assigned(coordinator, group)
    found = await group_statuses(ask.wire, known)
    answers = [answer for answer in found if answer.status is None or answer.status.group == group]
    if not answers:
        raise NotThere(
            f"no broker of {group} is known there: nobody of it is read, or it has another name; name one "
            "with -b, or the registry with --coordinator"
        )
    why = why_not_readable(group, answers)
    value = {
        "group": group,
        "readers": why.readers,
        "reasons": why.reasons,
        "waysOut": why.ways_out,
        "brokers": answers_to_json(answers),
    }
    return Shown(value, [partial(print_statuses, answers=answers), partial(print_why, why=why)])


COMMANDS = (status_command, ledger_command, end_command, assign_command, why_command)


async def _assigned(coordinator: str, group: str) -> set[str]:
    async with open_registry(coordinator) as registry:
        found = await registry.read(assignment_path(group))
    return set() if found is None else {each.address for each in decode_assignment(found.value).brokers}


async def _look_before_end(wire: Wire, address: str) -> _Ending:
    status = await slave_consume_status(wire, address)
    slave = status.reader or (None if status.record is None else status.record.second)
    return _Ending(status, None if slave is None else await ask_status(wire, slave))


def _check_ending(ending: _Ending, *, is_forced: bool) -> None:
    status, slave = ending
    if status.role is not GroupRole.MASTER:
        master = next((each.address for each in status.brokers if each.role is GroupRole.MASTER), None)
        place = "" if master is None else f", {master}"
        raise click.ClickException(f"{status.address} is a slave; ask its master{place}")
    if status.is_readable:
        raise click.ClickException(f"{status.address} is read: there is no slave consumption to end")
    is_read = slave is not None and slave.status is not None and slave.status.is_readable
    if is_read and not is_forced:
        assert slave is not None
        raise click.ClickException(
            f"{slave.address} is alive and is read: it hands back by itself when it reaches its master "
            f"(tanist admin haStatus -b {slave.address}); stop it first, or --force"
        )


def _question(ending: _Ending) -> str:
    status, slave = ending
    lines = [f"Master {status.address} of {status.group} may do {status.permission}: {status.reason}."]
    if slave is not None:
        failure = (
            f"does not answer: {slave.failure}" if slave.status is None else f"says: {slave.status.state}"
        )
        lines.append(f"Slave {slave.address} {failure}.")
    if status.duplicates_if_ended is None:
        lines.append("What the slave has delivered is not known to the master: it may be consumed twice.")
    else:
        lines.append("Of what the slave may have delivered these groups may consume twice:")
        lines.append(duplicates_text(status.duplicates_if_ended))
    lines.append(f"Let {status.address} be read again?")
    return "\n".join(lines)
