"""``tanist admin resetOffset``: move a group's offsets as a transaction."""

import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from tanist.admin.asking import Access
from tanist.admin.parallel import Told
from tanist.admin.resets.aiming import name_of
from tanist.admin.resets.applying import check_places
from tanist.admin.resets.checking import check_plan
from tanist.admin.resets.deciding import all_orders, decide_everywhere
from tanist.admin.resets.journal import Journal, journal_path
from tanist.admin.resets.places import Places, find_places
from tanist.admin.resets.plan import Plan, message_queue
from tanist.admin.resets.plan import to_json as plan_to_json
from tanist.admin.resets.plan_file import read_plan, write_plan
from tanist.admin.resets.planning import Wish, make_plan
from tanist.admin.resets.reading import GroupReader
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import QueueName, read_target
from tanist.cli.asked import JSON, NAME_SERVER, name_server_of, run_asking
from tanist.cli.commanding import Asker, command
from tanist.cli.exit_codes import Exit
from tanist.cli.reset_apply import apply_command, undo_command
from tanist.cli.reset_mqadmin import by_time_command, skip_command
from tanist.cli.reset_options import (
    ACCEPT_EDITED,
    DECIDE,
    PLAN_FILE,
    REASON,
    USER,
    DecideAsked,
    name_server_for,
    who,
)
from tanist.cli.reset_views import checked_to_json, print_checked, print_orders, print_plan, to_json
from tanist.cli.shown import Part, Shown, failed_lines, outcome_of
from tanist.client.session.wire import Wire
from tanist.protocol.bodies.reset import ResetOrderView


@click.group(name="resetOffset")
def reset_offset() -> None:
    """Move a group's offsets: plan, preview, apply, verify, undo.

    \b
    tanist admin resetOffset plan -n 127.0.0.1:9876 -g billing -t OrderTopic --to -2h -o back.json
    tanist admin resetOffset apply back.json
    tanist admin resetOffset verify back.json
    tanist admin resetOffset undo back.json

    Exit codes: 0 done and confirmed, 1 failed, 3 not every client was seen to follow, 4 the group has moved
    since it was planned or a later order moved it on, 5 waits for approval, 6 rejected.
    """


@reset_offset.command(name="plan")
@NAME_SERVER
@click.option("-g", "--group", required=True, help="The consumer group.")
@click.option("-t", "--topic", required=True, help="The topic.")
@click.option(
    "--to",
    "targets",
    required=True,
    multiple=True,
    metavar="TARGET",
    help="earliest, latest, now, a time (2026-11-18T09:00 or milliseconds), -2h for so long ago, lag=N "
    "to leave N in each queue, offset=N, BROKER:QUEUE=N once for each queue, group=GROUP to go where that "
    "stands, message=ID, key=KEY, plan=FILE.",
)
@click.option("-q", "--queue", "queues", multiple=True, metavar="BROKER:QUEUE", help="Only this queue.")
@click.option(
    "-o",
    "--out",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; without it GROUP-TOPIC.plan.json here.",
)
@REASON
@USER
@JSON
@click.pass_obj
def plan_command(
    access: Access,
    *,
    name_server: str | None,
    group: str,
    topic: str,
    targets: tuple[str, ...],
    queues: tuple[str, ...],
    plan_file: Path | None,
    reason: str,
    user: str | None,
    as_json: bool,
) -> None:
    """Work out where a group would go, and write it down. Nothing is changed.

    A message leads to itself in its own queue, and to the time at which it was stored in all others.
    """
    path = plan_file or Path(f"{group}-{topic}.plan.json".replace("%", ""))
    _check_free(path)
    now_ms = time.time_ns() // 1_000_000

    async def make(wire: Wire) -> Plan:
        wish = Wish(
            name_server=await name_server_of(wire, name_server),
            topic=topic,
            group=group,
            target=read_target(targets, now_ms=now_ms, zone=datetime.now().astimezone().tzinfo or UTC),
            words=" ".join(targets),
            caller=who(user, access),
            now_ms=now_ms,
            reason=reason,
            queues=frozenset(map(_queue_name, queues)),
        )
        return await make_plan(wire, wish)

    plan = run_asking(access, make)
    write_plan(path, plan)
    if as_json:
        click.echo(to_json(plan_to_json(plan) | {"file": str(path)}))
    else:
        print_plan(Console(), plan)
        click.echo(f"written to {path}; tanist admin resetOffset apply {path}")


@command("preview", PLAN_FILE, ACCEPT_EDITED, repeats=True)
async def preview_command(ask: Asker, *, plan_file: Path, is_edit_accepted: bool) -> Shown:
    """Show what a plan would do, and whether the group still stands where it did. Nothing is changed."""
    plan = read_plan(plan_file, is_edit_accepted=is_edit_accepted)
    reader = GroupReader(ask.wire, await _places(ask, plan), plan.group)
    offsets = await reader.offsets([message_queue(plan, queue) for queue in plan.queues])
    found = {name_of(queue): now for queue, now in offsets.items()}
    moved: dict[str, dict[int, int | None]] = {}
    for queue in plan.queues:
        if found[queue.name] != queue.now:
            moved.setdefault(queue.broker_name, {})[queue.queue_id] = found[queue.name]
    parts: list[Part] = [partial(print_plan, plan=plan, found=found)]
    if moved:
        parts.append("the group has moved since it was planned; apply would stop, plan anew or use --force")
    return Shown(plan_to_json(plan) | {"moved": moved}, parts, Exit.MOVED if moved else Exit.DONE)


@command("verify", PLAN_FILE, ACCEPT_EDITED, repeats=True)
async def verify_command(ask: Asker, *, plan_file: Path, is_edit_accepted: bool) -> Shown:
    """Compare how the group stands now with a plan, and with what its clients have confirmed."""
    plan = read_plan(plan_file, is_edit_accepted=is_edit_accepted)
    journal = Journal(journal_path(plan_file), plan)
    checked = await check_plan(ask.wire, plan, await _places(ask, plan), journal)
    return Shown(checked_to_json(checked), [partial(print_checked, checked=checked)], Exit(checked.outcome))


@command(
    "list",
    click.option("-g", "--group", help="Only of this group."),
    click.option("-t", "--topic", help="Only of this topic."),
    repeats=True,
)
async def list_command(ask: Asker, *, group: str | None, topic: str | None) -> Shown:
    """Show the orders that all brokers know, the newest last."""
    listed = await all_orders(ask.wire, await ask.name_server(), group=group, topic=topic)
    told = [Told[None](name, None, listed.failures.get(name)) for name in listed.addresses]
    failures = {name: str(error) for name, error in listed.failures.items()}
    parts: list[Part] = [partial(print_orders, orders=listed.orders), *failed_lines(told)]
    return Shown({"orders": listed.orders, "failures": failures}, parts, outcome_of(told))


@reset_offset.command(name="approve")
@DECIDE
@click.pass_obj
def approve_command(access: Access, *, asked: DecideAsked) -> None:
    """Let an order that waits be carried out. Another has to say so than who gave it."""
    _decide(access, asked, is_approved=True)


@reset_offset.command(name="reject")
@DECIDE
@click.pass_obj
def reject_command(access: Access, *, asked: DecideAsked) -> None:
    """Do not let an order that waits be carried out."""
    _decide(access, asked, is_approved=False)


for _command in (preview_command, verify_command, list_command, apply_command, undo_command):
    reset_offset.add_command(_command)

COMMANDS: tuple[click.Command, ...] = (reset_offset, by_time_command, skip_command)


def _decide(access: Access, asked: DecideAsked, *, is_approved: bool) -> None:
    async def decide(wire: Wire) -> list[ResetOrderView]:
        return await decide_everywhere(
            wire,
            await name_server_of(wire, asked.name_server),
            asked.order_id,
            decider=who(asked.user, access),
            is_approved=is_approved,
            reason=asked.reason,
        )

    orders = run_asking(access, decide)
    if asked.as_json:
        click.echo(to_json(orders))
    else:
        print_orders(Console(), orders)


async def _places(ask: Asker, plan: Plan) -> Places:
    places = await find_places(ask.wire, await name_server_for(ask.wire, ask.named, plan), plan.topic)
    check_places(plan, places)
    return places


def _check_free(path: Path) -> None:
    """Refuse to write over what is no plan, or a plan that somebody may want to take back."""
    if path.exists() and Journal(journal_path(path), read_plan(path, is_edit_accepted=True)).has_begun:
        raise ResetRefused(f"{path} was applied, and undo needs it; choose another file with -o")


def _queue_name(text: str) -> QueueName:
    broker_name, _, queue_id = text.rpartition(":")
    if not broker_name or not queue_id.isdecimal():
        raise ResetRefused(f"{text!r} is no queue; use BROKER:QUEUE, as broker-a:0")
    return broker_name, int(queue_id)
