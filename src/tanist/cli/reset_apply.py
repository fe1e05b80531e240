"""``tanist admin resetOffset apply`` and ``undo``: carry a plan out, and watch the receipts come in."""

import time
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from tanist.admin.asking import Access
from tanist.admin.parallel import in_parallel
from tanist.admin.resets.applying import Applying, How, check_places
from tanist.admin.resets.journal import Journal, journal_path
from tanist.admin.resets.orders import STOPPED, order_of
from tanist.admin.resets.places import Place, Places, find_places
from tanist.admin.resets.plan import Plan
from tanist.admin.resets.plan_file import read_plan, write_plan
from tanist.admin.resets.progress import Progress
from tanist.admin.resets.undoing import make_undo
from tanist.cli.asked import run_asking
from tanist.cli.reset_options import APPLY, ApplyAsked, name_server_for, who
from tanist.cli.reset_views import print_plan, print_progress, progress_to_json, to_json
from tanist.client.session.wire import Wire
from tanist.protocol.response_errors import RequestNotSupported


@click.command(name="apply")
@APPLY
@click.pass_obj
def apply_command(access: Access, *, asked: ApplyAsked) -> None:
    """Move the group as planned, if it still stands where it did, and wait until its clients confirm.

    The same command again goes on where it was interrupted, and does nothing twice.
    """
    plan = read_plan(asked.plan_file, is_edit_accepted=asked.is_edit_accepted)
    if not asked.yes:
        print_plan(Console(stderr=True), plan)
        click.confirm("Move the group?", abort=True, err=True)
    _run(access, asked, plan, asked.plan_file)


@click.command(name="undo")
@APPLY
@click.pass_obj
def undo_command(access: Access, *, asked: ApplyAsked) -> None:
    """Take a plan back that was applied: to where the group stood before, in the same way.

    The plan back is written beside the plan, PLAN.undo.json, and can be verified and undone itself.
    """
    plan = read_plan(asked.plan_file, is_edit_accepted=asked.is_edit_accepted)
    caller = who(asked.user, access)
    path = asked.plan_file.with_name(f"{asked.plan_file.stem}.undo.json")
    journal, begun = Journal(journal_path(asked.plan_file), plan), _begun_at(path)

    async def plan_back(wire: Wire) -> Plan:
        places = await _places(wire, plan, asked.name_server)
        if begun is not None and await _has_begun(wire, begun, places):
            return begun.plan
        now_ms = time.time_ns() // 1_000_000
        return await make_undo(wire, plan, places, journal, caller=caller, now_ms=now_ms)

    back = run_asking(access, plan_back)
    write_plan(path, back)
    if not asked.yes:
        print_plan(Console(stderr=True), back)
        click.confirm("Move the group back?", abort=True, err=True)
    _run(access, asked, back, path)


def _run(access: Access, asked: ApplyAsked, plan: Plan, path: Path) -> None:
    how = asked.how(access)
    run_asking(
        access,
        lambda wire: _apply(wire, plan, path, name_server=asked.name_server, how=how, as_json=asked.as_json),
    )


async def _apply(
    wire: Wire, plan: Plan, plan_file: Path, *, name_server: str | None, how: How, as_json: bool
) -> None:
    """Do it, show it, and end with an exit code that says what came of it."""
    places = await _places(wire, plan, name_server)
    journal = Journal(journal_path(plan_file), plan)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True, quiet=as_json), transient=True) as bars:
        queues = bars.add_task("queues changed", total=len(plan.queues))
        clients = bars.add_task("clients confirmed", total=None)

        def show(progress: Progress) -> None:
            count = progress.tally
            bars.update(queues, completed=progress.done_count)
            bars.update(clients, completed=len(count.confirmed), total=count.count or None)

        applying = Applying(wire, plan, places, journal=journal, how=how, on_change=show)
        progress = await applying.run()
    if as_json:
        click.echo(to_json(progress_to_json(progress)))
    else:
        print_progress(Console(), progress)
    if progress.outcome:
        raise SystemExit(progress.outcome)


class _Begun(NamedTuple):
    """An undo that was planned before."""

    plan: Plan
    journal: Journal


def _begun_at(path: Path) -> _Begun | None:
    if not path.exists():
        return None
    plan = read_plan(path)
    return _Begun(plan, Journal(journal_path(path), plan))


async def _has_begun(wire: Wire, begun: _Begun, places: Places) -> bool:
    """Whether an undo was interrupted. One that was stopped before it did anything is planned anew."""

    async def look(place: Place) -> bool:
        try:
            order = await order_of(wire, place.address, begun.plan)
        except RequestNotSupported:
            return False
        return order is not None and order.state not in STOPPED

    return any(await in_parallel(places.brokers, look)) or begun.journal.has_begun


async def _places(wire: Wire, plan: Plan, named: str | None) -> Places:
    places = await find_places(wire, await name_server_for(wire, named, plan), plan.topic)
    check_places(plan, places)
    return places
