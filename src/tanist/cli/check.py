"""``tanist check``: judge histories of what clients did and saw, or make one against a live cluster."""

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tanist.check import Kind, Verdict, judge_files
from tanist.check.rocketmq import running
from tanist.check.workload import Plan, Workload
from tanist.cli.asked import JSON
from tanist.testing import EmbeddedBroker

EXIT_ANOMALIES = 1
_ROCKETMQ, _TANIST = "rocketmq", "tanist"
_STARTED = ""
"""The address of what is not there yet."""


class _Target(click.ParamType[tuple[str, str]]):
    """``NAME=HOST:PORT``, or ``rocketmq``, which is started."""

    name = "NAME=HOST:PORT|rocketmq"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if value == _ROCKETMQ:
            return value, _STARTED
        name, is_given, address = value.partition("=")
        if not (name and is_given and address):
            self.fail(
                f"{value!r} names no cluster; give NAME=HOST:PORT, such as rocketmq=127.0.0.1:9876, or "
                f"{_ROCKETMQ}, which is started beside a broker of ours",
                param,
                ctx,
            )
        return name, address


@click.command()
@click.argument("histories", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=_Target(),
    help="A cluster to check, by a name of your choice and its name server; several are checked in turn. "
    "rocketmq alone starts RocketMQ out of ROCKETMQ_HOME, and a broker of ours, and checks both.",
)
@click.option(
    "--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1), help="How long to send."
)
@click.option("--producers", default=4, show_default=True, type=click.IntRange(1, 256))
@click.option("--consumers", default=2, show_default=True, type=click.IntRange(1, 64))
@click.option(
    "--rate",
    default=200.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Sends a second of each producer.",
)
@click.option("--topic", help="The topic to send to. Without it, a new one for each run.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the histories of the targets in this folder.",
)
@JSON
def check(
    histories: tuple[Path, ...],
    *,
    targets: tuple[tuple[str, str], ...],
    seconds: float,
    producers: int,
    consumers: int,
    rate: float,
    topic: str | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Say what was lost, stored or read twice, out of order, skipped, stale or different.

    HISTORIES are files of one JSON event a line, or folders of them, all of one history. With --target
    producers and consumers write such a history against a live cluster, Tanist's or RocketMQ's, and it is
    judged by the same rules; break what you like meanwhile and tell of it with a fault in --keep's folder.

    Exit code 1 if anything is wrong.
    """
    if bool(histories) == bool(targets):
        raise click.UsageError("give either histories to judge, or --target, a cluster to check")
    if histories:
        verdicts = {"history": _judge(_files(histories))}
    else:
        plan = Plan(
            namesrv="",
            folder=Path(),
            topic=topic or f"tanist-check-{time.time_ns() // 1_000_000}",
            seconds=seconds,
            producers=producers,
            consumers=consumers,
            rate=rate,
        )
        with tempfile.TemporaryDirectory() as folder:
            root = keep or Path(folder)
            verdicts = {
                name: _check(name, address, plan, root / name, seconds=seconds)
                for name, address in _with_ours(targets)
            }
    show_verdicts(verdicts, as_json=as_json)
    if not all(verdict.is_sound for verdict in verdicts.values()):
        sys.exit(EXIT_ANOMALIES)


def _with_ours(targets: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """A RocketMQ that is started is there to be compared, so it does not come alone."""
    is_compared = (_ROCKETMQ, _STARTED) in targets and _TANIST not in dict(targets)
    return [(_TANIST, _STARTED), *targets] if is_compared else list(targets)


def _files(histories: tuple[Path, ...]) -> list[Path]:
    found = [
        path for given in histories for path in (sorted(given.glob("*.jsonl")) if given.is_dir() else [given])
    ]
    if not found:
        raise click.UsageError(f"{', '.join(map(str, histories))}: there is no file *.jsonl in it")
    return found


def _judge(files: list[Path]) -> Verdict:
    with _progress() as progress:
        task = progress.add_task("judging", total=None, detail="")
        return judge_files(
            files, lambda count: progress.update(task, completed=count, detail=f"{count:,} events")
        )


def _check(name: str, address: str, plan: Plan, folder: Path, *, seconds: float) -> Verdict:
    """Write a history against one cluster and judge it."""
    if any(folder.glob("*.jsonl")):
        raise click.UsageError(f"{folder} holds a history already; give --keep another folder")
    with ExitStack() as stack:
        namesrv = address or stack.enter_context(_started(name))
        return _judge(_write(name, replace(plan, namesrv=namesrv, folder=folder), seconds=seconds))


@contextmanager
def _started(name: str) -> Generator[str]:
    """A broker of ours, or RocketMQ's, while the block lasts; gives the address of its name server."""
    if name == _TANIST:
        with EmbeddedBroker() as broker:
            yield broker.namesrv
        return
    with tempfile.TemporaryDirectory(prefix="tanist-rocketmq-") as home, running(Path(home)) as namesrv:
        yield namesrv


def _write(name: str, plan: Plan, *, seconds: float) -> list[Path]:
    """Write a history against a cluster that is there; gives its files."""
    workload = Workload(plan)
    began_s = time.monotonic()
    with _progress() as progress:
        task = progress.add_task(name, total=seconds, detail="")

        def tell() -> None:
            sent, read = workload.counts
            done_s = min(time.monotonic() - began_s, seconds)
            progress.update(task, completed=done_s, detail=f"{sent:,} acknowledged, {read:,} read")

        # The history tells better than log lines how the clients fare while something is broken.
        logging.getLogger("tanist.client").setLevel(logging.ERROR)
        return asyncio.run(workload.run(tell))


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def show_verdicts(verdicts: dict[str, Verdict], *, as_json: bool) -> None:
    if as_json:
        shown = {
            name: {"isSound": verdict.is_sound, **msgspec.to_builtins(verdict)}
            for name, verdict in verdicts.items()
        }
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2))
        return
    table = Table("", *(f"[bold]{name}" for name in verdicts))
    for field in Verdict().counts.__struct_fields__:
        table.add_row(field.replace("_", " "), *(f"{getattr(v.counts, field):,}" for v in verdicts.values()))
    table.add_section()
    for kind in Kind:
        table.add_row(kind.value, *(f"{v.anomaly_counts.get(kind, 0):,}" for v in verdicts.values()))
    console = Console()
    console.print(table)
    for name, verdict in verdicts.items():
        for anomaly in verdict.anomalies:
            console.print(f"{name}: {anomaly.kind.value} at {anomaly.where}: {anomaly.what}", markup=False)
        for text in verdict.unjudged:
            console.print(f"{name}: not judged: {text}", markup=False)
