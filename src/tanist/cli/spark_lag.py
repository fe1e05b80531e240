"""``tanist spark lag``: how far consumers are behind, and how that goes."""

import contextlib
import logging
import signal
import threading
import time
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.admin.asking import Access
from tanist.cli.asked import JSON, NAME_SERVER, name_server_of, name_servers_of, run_asking
from tanist.cli.spark_job import CONF, MASTER, echo_json, read_conf, show_progress
from tanist.spark.running import spark_workers
from tanist.spark.session import check_installed
from tanist.spark.watching import watched

_log = logging.getLogger(__name__)


@click.group()
def lag() -> None:
    """Keep where groups stand, and say how far they are behind.

    \b
    tanist spark lag collect -n 127.0.0.1:9876 --to lag.jsonl
    tanist spark lag report lag.jsonl --archive /archive --html lag.html
    """


@lag.command()
@NAME_SERVER
@click.option(
    "--to", "path", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Added to."
)
@click.option("--interval", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Seconds.")
@click.option(
    "--count", type=click.IntRange(min=1), help="Ask so many times, and end.  [default: until Ctrl-C]"
)
@click.pass_obj
def collect(
    access: Access, *, name_server: str | None, path: Path, interval: float, count: int | None
) -> None:
    """Ask all brokers where all groups stand, again and again, and add a line for each queue to a file."""
    from tanist.spark.lag.samples import append_samples, take_samples  # noqa: PLC0415 - as the others.

    name_servers_of(name_server)
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _signal, _frame: is_over.set())
    asked = 0
    while not is_over.is_set():
        address = run_asking(access, lambda wire: name_server_of(wire, name_server))
        found = take_samples(address, time.time_ns() // 1_000_000, access)
        append_samples(path, found)
        asked += 1
        click.echo(f"{len(found)} queues, {sum(one.lag for one in found)} messages behind", err=True)
        if count is not None and asked >= count:
            return
        is_over.wait(interval)


@lag.command()
@click.argument("samples", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--archive",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Say how long messages took, by this archive.",
)
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Draw a page there.")
@click.option("-g", "--group", "groups", multiple=True, help="Only this group; may be given again.")
@MASTER
@CONF
@JSON
def report(
    *,
    samples: Path,
    archive: Path | None,
    page: Path | None,
    groups: tuple[str, ...],
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say how far groups are behind, who is slow, and when a backlog is gone, by what was collected.

    Spark is needed, and started, only with --archive.
    """
    check_installed()
    from tanist.spark.lag.analysis import analyse  # noqa: PLC0415 - they need Arrow.
    from tanist.spark.lag.latency import latencies  # noqa: PLC0415
    from tanist.spark.lag.page import forecast, make_page  # noqa: PLC0415
    from tanist.spark.lag.samples import read_samples  # noqa: PLC0415

    taken = [one for one in read_samples(samples) if not groups or one.group in groups]
    found, timed = analyse(taken), []
    with contextlib.ExitStack() as stack:
        if archive is not None:
            from tanist.spark.archive.delta import settings_for  # noqa: PLC0415

            settings = settings_for(archive, read_conf(conf))
            workers = stack.enter_context(spark_workers(master, job="lag", settings=settings))
            stack.enter_context(watched(workers.session, "lag", show_progress))
            timed = latencies(workers.session, archive, taken)
    if page is not None:
        size = page.write_text(make_page(found, timed))
        _log.info("page written path=%s chars=%d", page, size)
    if as_json:
        echo_json({"groups": msgspec.to_builtins(found), "latencies": msgspec.to_builtins(timed)})
        return
    table = Table("group", "topic", "behind", "late", "consumed/s", "produced/s", "forecast", "notes")
    for one in found:
        notes = ["slow"] * one.is_slow + [f"skew {one.skew:.1f}"] * one.is_skewed
        table.add_row(
            one.group,
            one.topic,
            str(one.lag),
            f"{one.late_ms / 1000:.1f} s",
            f"{one.consumed_per_s:.1f}",
            f"{one.produced_per_s:.1f}",
            forecast(one),
            ", ".join(notes),
        )
    Console().print(table)
    for each in timed:
        shown = ", ".join(f"{value:.0f}" for value in each.born_to_consumed_ms)
        which = f"{each.group} {each.topic}: {each.messages} messages"
        click.echo(f"{which}, born to consumed in {shown} ms (50, 90, 99, 99.9 %)")
