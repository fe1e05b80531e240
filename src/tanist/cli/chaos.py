"""``tanist chaos``: break a cluster of real processes on purpose, and see what its clients notice."""

import asyncio
import itertools
import logging
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.chaos import Fault, Mode, Result, RunPlan, faults_of, run
from tanist.cli.asked import JSON
from tanist.cli.ha_views import print_whole
from tanist.errors import MQError

EXIT_ANOMALIES = 1


@click.command()
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice([mode.value for mode in Mode]),
    help="The kind of cluster; several are broken in turn. Without it all that need no ZooKeeper.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice([fault.value for fault in Fault]),
    help="What to break. Without it all that the kind of cluster can have.",
)
@click.option(
    "--seed", default=0, show_default=True, help="The chances of the network; the next run has the next."
)
@click.option(
    "--seconds", default=5.0, show_default=True, type=click.FloatRange(1.0), help="How long it stays broken."
)
@click.option(
    "--jobs", default=2, show_default=True, type=click.IntRange(1, 16), help="Runs at the same time."
)
@click.option("--zookeeper", default="", help="HOST:PORT,… of a ZooKeeper, for auto-switch-zookeeper.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep logs, stores and histories of all runs in this folder.",
)
@JSON
def chaos(
    *,
    modes: tuple[str, ...],
    faults: tuple[str, ...],
    seed: int,
    seconds: float,
    jobs: int,
    zookeeper: str,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Kill, freeze or cut off brokers while clients write and read, and judge what came of it.

    Each run starts a cluster of its own on this machine, breaks one thing, mends it, and then compares what
    was acknowledged, what was read and what each replica holds. cut-master and cut-slave need the right to
    make network namespaces and are left out without it.

    Exit code 1 if anything acknowledged was lost, anything else was wrong, or nobody could work where the
    design says that somebody can.
    """
    with ExitStack() as stack:
        root = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tanist-chaos-")))
        plans = _plans(
            [Mode(mode) for mode in modes],
            [Fault(fault) for fault in faults],
            root,
            seed=seed,
            seconds=seconds,
            zookeeper=zookeeper,
        )
        # The history tells better than log lines how the clients fare while something is broken.
        logging.getLogger("tanist.client").setLevel(logging.CRITICAL)
        results = asyncio.run(_run_all(plans, jobs=jobs))
    if as_json:
        shown = [{"isSound": result.is_sound, **msgspec.to_builtins(result)} for result in results]
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2))
    else:
        _show(results)
    if len(results) < len(plans) or not all(result.is_sound for result in results):
        sys.exit(EXIT_ANOMALIES)


def _plans(
    modes: Sequence[Mode],
    faults: Sequence[Fault],
    root: Path,
    *,
    seed: int,
    seconds: float,
    zookeeper: str,
) -> list[RunPlan]:
    if Mode.AUTO_SWITCH_ZOOKEEPER in modes and not zookeeper:
        raise click.UsageError(f"{Mode.AUTO_SWITCH_ZOOKEEPER} needs --zookeeper, where one is")
    wanted = modes or [mode for mode in Mode if mode is not Mode.AUTO_SWITCH_ZOOKEEPER or zookeeper]
    pairs = [(mode, fault) for mode in wanted for fault in faults_of(mode) if not faults or fault in faults]
    if not pairs:
        raise click.UsageError(f"{', '.join(wanted)} can not have {', '.join(faults)}")
    numbers = itertools.count(seed)
    return [
        RunPlan(
            mode=mode,
            fault=fault,
            folder=root / f"{number}-{mode}-{fault}",
            seed=number,
            broken_s=seconds,
            zookeeper=f"{zookeeper}/tanist-chaos-{number}",
        )
        for (mode, fault), number in zip(pairs, numbers, strict=False)
    ]


async def _run_all(plans: list[RunPlan], *, jobs: int) -> list[Result]:
    places = asyncio.Semaphore(jobs)
    console = Console(stderr=True)

    async def run_one(plan: RunPlan) -> Result | None:
        async with places:
            plan.folder.mkdir(parents=True, exist_ok=True)
            try:
                result = await run(plan)
            except MQError as error:
                console.print(f"{plan.mode} {plan.fault} seed {plan.seed}: {error}", markup=False)
                return None
        told = "sound" if result.is_sound else "NOT SOUND"
        console.print(f"{plan.mode} {plan.fault} seed {plan.seed}: {told}", markup=False)
        return result

    results = await asyncio.gather(*map(run_one, plans))
    return [result for result in results if result is not None]


def _show(results: list[Result]) -> None:
    table = Table(
        "mode", "fault", "seed", "acked", "lost", "other", "read again", "no send", "no read", box=None
    )
    for result in results:
        found = result.verdict.anomaly_counts
        lost = sum(count for kind, count in found.items() if kind.startswith("lost"))
        table.add_row(
            result.mode,
            result.fault,
            str(result.seed),
            f"{result.verdict.counts.acknowledged:,}",
            f"{lost:,}",
            f"{sum(found.values()) - lost:,}",
            f"{result.verdict.counts.read_again:,}",
            f"{result.sends.longest_ms / 1000:.1f} s",
            f"{result.reads.longest_ms / 1000:.1f} s",
        )
    console = Console()
    print_whole(console, table)
    for result in results:
        for anomaly in result.verdict.anomalies:
            where = f"{result.mode} {result.fault} seed {result.seed}"
            console.print(f"{where}: {anomaly.kind.value} at {anomaly.where}: {anomaly.what}", markup=False)
        for text in result.broken_promises:
            console.print(f"{result.mode} {result.fault} seed {result.seed}: {text}", markup=False)
