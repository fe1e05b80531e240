"""``tanist spark reset-plan``: plans of the offset reset for many groups at once, by time."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tanist.admin.asking import Access, asking
from tanist.admin.resets.plan import Plan
from tanist.admin.resets.targets import AtTime, read_target
from tanist.cli.asked import JSON, NAME_SERVER, name_server_of
from tanist.cli.reset_options import USER, who
from tanist.cli.spark_job import CONF, MASTER, echo_json, read_conf, show_progress
from tanist.spark.running import spark_workers
from tanist.spark.session import check_installed
from tanist.spark.watching import watched

if TYPE_CHECKING:
    from tanist.spark.reset_plan import PlansReport

EXIT_REFUSED = 1


@click.command(name="reset-plan")
@NAME_SERVER
@click.option("--to", "target", required=True, metavar="TIME", help="2026-11-18T09:00, milliseconds, or -2h.")
@click.option(
    "-g", "--group", "groups", multiple=True, help="This group; may be given again.  [default: all]"
)
@click.option(
    "-t", "--topic", "topics", multiple=True, help="This topic; may be given again.  [default: all]"
)
@click.option(
    "-o", "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="For the plans."
)
@click.option(
    "--archive",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Ask this archive for what brokers have deleted.",
)
@USER
@MASTER
@CONF
@JSON
@click.pass_obj
def reset_plan(
    access: Access,
    *,
    name_server: str | None,
    target: str,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    out: Path,
    archive: Path | None,
    user: str | None,
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Plan where many groups would go at a time, a file for each group and topic. Nothing is changed.

    \b
    tanist spark reset-plan -n 127.0.0.1:9876 --to 2026-11-18T09:00 --archive /archive -o plans
    tanist admin resetOffset preview plans/billing@OrderTopic.plan.json
    tanist admin resetOffset apply plans/billing@OrderTopic.plan.json

    What brokers have deleted is not in a plan: with --archive it is said what of it the archive has, and how
    to replay it. Exit code 1 if some group could not be planned.
    """
    check_installed()
    from tanist.spark import reset_plan as job  # noqa: PLC0415 - it needs Arrow.
    from tanist.spark.archive.catalogue import shown_time  # noqa: PLC0415
    from tanist.spark.archive.delta import settings_for  # noqa: PLC0415

    now_ms = time.time_ns() // 1_000_000
    aimed = read_target([target], now_ms=now_ms, zone=datetime.now().astimezone().tzinfo or UTC)
    if not isinstance(aimed, AtTime):
        raise click.UsageError(f"--to {target} is no time; use 2026-11-18T09:00, milliseconds, or -2h")
    settings = settings_for(archive, read_conf(conf))

    async def plan() -> tuple[list[Plan], list[job.NotPlanned]]:
        async with asking(access) as wire:
            address = await name_server_of(wire, name_server)
            pairs = await job.find_pairs(wire, address, groups=groups, topics=topics)
            return await job.make_plans(
                wire,
                address,
                pairs,
                at_ms=aimed.at_ms,
                words=target,
                caller=who(user, access),
                now_ms=now_ms,
            )

    plans, refused = asyncio.run(plan())
    click.echo(f"{len(plans)} plans, {len(refused)} refused", err=True)
    expired = job.expired_queues(plans, aimed.at_ms)
    archived: dict[job.QueueKey, job.Archived] = {}
    with contextlib.ExitStack() as stack:
        if archive is not None and expired:
            click.echo(f"asking the archive about {len(expired)} queues", err=True)
            workers = stack.enter_context(spark_workers(master, job="reset-plan", settings=settings))
            stack.enter_context(watched(workers.session, "reset-plan", show_progress))
            archived = job.lookup_in(workers.session, archive)(expired, aimed.at_ms)
    made = job.write_plans(plans, out, archived, archive=archive, at_ms=aimed.at_ms)
    report = job.PlansReport(at=shown_time(aimed.at_ms), plans=made, refused=refused)
    if as_json:
        echo_json(report)
    else:
        _print(report)
    if refused:
        raise SystemExit(EXIT_REFUSED)


def _print(report: "PlansReport") -> None:
    for one in report.plans:
        click.echo(f"{one.group} {one.topic}: {one.replayed} again, {one.skipped} skipped; {one.file}")
        for warning in one.warnings:
            click.echo(f"  {warning}")
        if one.replay is not None:
            click.echo(f"  {one.replay}")
    for refused in report.refused:
        click.echo(f"{refused.group} {refused.topic}: not planned: {refused.reason}", err=True)
