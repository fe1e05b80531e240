"""``tanist chaos``: break a cluster of real processes on purpose, and see what its clients notice."""

import asyncio
import itertools
import logging
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.chaos import Fault, LeaderHand, Mode, NotPossible, Result, RunPlan, faults_of, run
from tanist.cli.asked import JSON, RECORD
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
    "--seed",
    default=0,
    show_default=True,
    help="The moment, the victim and the network; the next run has the next.",
)
@click.option(
    "--runs",
    default=1,
    type=click.IntRange(1, 10_000),
    help="At least so many: where there are fewer faults they come again, with other seeds.",
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
@RECORD
@click.pass_context
def chaos(
    context: click.Context,
    *,
    modes: tuple[str, ...],
    faults: tuple[str, ...],
    seed: int,
    runs: int,
    seconds: float,
    jobs: int,
    zookeeper: str,
    keep: Path | None,
    as_json: bool,
    record: Path | None,
) -> None:
    """Kill, freeze or cut off brokers while clients write and read, and judge what came of it.

    Each run starts a cluster of its own on this machine, breaks one thing, mends it, and then compares what
    was acknowledged, what was read and what each replica holds. What a machine can not have, such as a
    disk to fill without the superuser, is left out, and that is said.

    Exit code 1 if anything acknowledged was lost, anything else was wrong, or nobody could work where the
    design says that somebody can.
    """
    with ExitStack() as stack:
        root = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tanist-chaos-")))
        matrix = Matrix(
            root,
            _pairs([Mode(mode) for mode in modes], [Fault(fault) for fault in faults], zookeeper),
            seed=seed,
            seconds=seconds,
            zookeeper=zookeeper,
            leader=context.find_object(LeaderHand),
        )
        # The history tells better than log lines how the clients fare while something is broken.
        logging.getLogger("tanist.client").setLevel(logging.CRITICAL)
        asyncio.run(matrix.run(jobs=jobs, at_least=runs))
    results = matrix.results
    told = msgspec.json.format(msgspec.json.encode(matrix.told()), indent=2)
    if record is not None:
        record.write_bytes(told)
    if as_json:
        click.echo(told)
    else:
        _show(results)
        for text in matrix.left_out:
            click.echo(f"left out: {text}")
    if matrix.failures or not all(result.is_sound for result in results):
        sys.exit(EXIT_ANOMALIES)


def _pairs(modes: Sequence[Mode], faults: Sequence[Fault], zookeeper: str) -> list[tuple[Mode, Fault]]:
    if Mode.AUTO_SWITCH_ZOOKEEPER in modes and not zookeeper:
        raise click.UsageError(f"{Mode.AUTO_SWITCH_ZOOKEEPER} needs --zookeeper, where one is")
    wanted = modes or [mode for mode in Mode if mode is not Mode.AUTO_SWITCH_ZOOKEEPER or zookeeper]
    pairs = [(mode, fault) for mode in wanted for fault in faults_of(mode) if not faults or fault in faults]
    if not pairs:
        raise click.UsageError(f"{', '.join(wanted)} can not have {', '.join(faults)}")
    return pairs


@dataclass
class Matrix:
    """The runs of a command, and what became of them."""

    root: Path
    pairs: list[tuple[Mode, Fault]]
    _: KW_ONLY
    seed: int
    seconds: float
    zookeeper: str
    leader: LeaderHand | None
    results: list[Result] = field(default_factory=list[Result])
    left_out: list[str] = field(default_factory=list[str])
    failures: int = 0

    def told(self) -> dict[str, object]:
        """All of it, for a program."""
        shown = [{"isSound": result.is_sound, **msgspec.to_builtins(result)} for result in self.results]
        return {"results": shown, "leftOut": self.left_out, "failures": self.failures}

    async def run(self, *, jobs: int, at_least: int) -> None:
        """Run all pairs, and those that can be had again until there are so many results."""
        await self._run_all(self.pairs, jobs=jobs)
        while len(self.results) < at_least and self.pairs and not self.failures:
            again = itertools.islice(itertools.cycle(self.pairs), at_least - len(self.results))
            await self._run_all(list(again), jobs=jobs)

    async def _run_all(self, pairs: Sequence[tuple[Mode, Fault]], *, jobs: int) -> None:
        plans = [self._plan(mode, fault) for mode, fault in pairs]
        places = asyncio.Semaphore(jobs)

        async def run_one(plan: RunPlan) -> None:
            async with places:
                await self._run_one(plan)

        await asyncio.gather(*(run_one(plan) for plan in plans if not plan.fault.is_of_zookeeper))
        for plan in plans:
            # All runs share one ZooKeeper, so nobody else is there when it is struck.
            if plan.fault.is_of_zookeeper:
                await self._run_one(plan)

    def _plan(self, mode: Mode, fault: Fault) -> RunPlan:
        number, self.seed = self.seed, self.seed + 1
        return RunPlan(
            mode=mode,
            fault=fault,
            folder=self.root / f"{number}-{mode}-{fault}",
            seed=number,
            broken_s=self.seconds,
            zookeeper=f"{self.zookeeper}/tanist-chaos-{number}",
            leader=self.leader,
        )

    async def _run_one(self, plan: RunPlan) -> None:
        plan.folder.mkdir(parents=True, exist_ok=True)
        try:
            result = await run(plan)
        except NotPossible as error:
            self.left_out.append(f"{plan.mode} {plan.fault}: {error}")
            self.pairs = [pair for pair in self.pairs if pair != (plan.mode, plan.fault)]
            return
        except MQError as error:
            self.failures += 1
            told = str(error)
        else:
            self.results.append(result)
            told = "sound" if result.is_sound else "NOT SOUND"
        click.echo(f"{plan.mode} {plan.fault} seed {plan.seed}: {told}", err=True)


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
        for text in (*result.broken_promises, *result.leaks):
            console.print(f"{result.mode} {result.fault} seed {result.seed}: {text}", markup=False)
