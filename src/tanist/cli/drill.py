"""Drill: rehearse a failover on a live group."""

import click
from rich.table import Table

from tanist.admin.drills.drill import Drill, Report, look
from tanist.admin.drills.probe import Seen
from tanist.admin.refused import Unsafe
from tanist.cli.commanding import BROKER_NAME, YES, Asker, command
from tanist.cli.exit_codes import Exit
from tanist.cli.shown import Shown, table_of


@command(
    "drill",
    BROKER_NAME,
    YES,
    click.option("--check", "is_check", is_flag=True, help="Only look whether it would be safe."),
    click.option(
        "--wait",
        "wait_s",
        type=click.FloatRange(1, 3600),
        default=60.0,
        show_default=True,
        help="For so many seconds each step is waited for.",
    ),
)
async def drill(ask: Asker, *, broker_name: str, yes: bool, is_check: bool, wait_s: float) -> Shown:
    """Rehearse a failover: mastership of a live group moves to a slave and back, and clients are watched.

    It refuses, with exit code 11 and nothing changed, unless all replicas answer and are in step. Under a
    controller mastership moves, and a producer and a consumer on a topic of the drill's own say what they
    saw. With fixed roles only the slave's readiness is checked: its master would have to be stopped.
    """
    name_server = await ask.name_server()
    _, ready = await look(ask.wire, name_server, broker_name)
    if ready.objections:
        raise Unsafe(f"{broker_name} is not ready for a drill: {'; '.join(ready.objections)}")
    if is_check:
        successor = None if ready.successor is None else ready.successor.address
        return Shown(
            {"brokerName": broker_name, "isReady": True, "successor": successor},
            [f"{broker_name} is ready: {successor} would take over"],
        )
    if ready.is_controlled and not yes:
        assert ready.successor is not None
        click.echo(f"Mastership of {broker_name} moves to {ready.successor.address} and back.", err=True)
        if click.prompt("Type the group's name to go on", err=True) != broker_name:
            raise click.Abort
    rehearsal = Drill(
        ask.wire,
        ask.access,
        ask.name_servers,
        name_server,
        broker_name=broker_name,
        wait_s=wait_s,
        on_step=lambda text: click.echo(f"drill: {text}", err=True),
    )
    report = await rehearsal.run()
    return Shown(report, parts_of(report), Exit.DONE if report.is_passed else Exit.FAILED)


COMMANDS = (drill,)


def parts_of(report: Report) -> list[str | Table]:
    """A report as a terminal shows it."""
    if not report.is_controlled:
        return [
            f"{report.broker_name} has fixed roles: its slaves are linked and in step. Nothing was changed."
        ]
    parts: list[str | Table] = [
        f"{step.from_addr} -> {step.to_addr}: {step.switch_ms} ms, epoch {step.epoch}"
        for step in report.steps
    ]
    if report.seen is not None:
        parts.append(table_of([report.seen], Seen))
    verdict = "passed" if report.is_passed else "FAILED: an acknowledged message was not consumed"
    return [*parts, f"drill of {report.broker_name}: {verdict}"]
