"""``tanist chaos`` runs what a machine can have, as often as it was asked to, and says what it left out."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.chaos import Fault, Mode, NotPossible, RunPlan, faults_of
from tanist.chaos import Result as RunResult
from tanist.chaos.outage import Outage
from tanist.check import Kind, Verdict
from tanist.cli import chaos as module

NO_DISK = "no disk can be mounted here"


class Hand:
    """Stands for whoever has the servers of a ZooKeeper."""

    def kill(self) -> None: ...

    def freeze(self) -> None: ...

    def mend(self) -> None: ...


class Runs:
    """Stands for the runs, and notes them."""

    def __init__(self) -> None:
        self.plans: list[RunPlan] = []
        self.at_once = 0
        self.beside_zookeeper: list[int] = []
        self.lost_at: int | None = None
        self.leaks: list[str] = []

    async def run(self, plan: RunPlan) -> RunResult:
        self.plans.append(plan)
        if plan.fault is Fault.FULL_DISK:
            raise NotPossible(NO_DISK)
        self.at_once += 1
        if plan.fault.is_of_zookeeper:
            self.beside_zookeeper.append(self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        verdict = Verdict()
        if plan.seed == self.lost_at:
            verdict.found(Kind.LOST, "T@a:0@0", "gone")
        outage = Outage(longest_ms=0, done_while_broken=1)
        return RunResult(
            mode=plan.mode.value,
            fault=plan.fault.value,
            seed=plan.seed,
            victim=plan.lot.victim.value,
            verdict=verdict,
            sends=outage,
            reads=outage,
            broken_promises=[],
            leaks=self.leaks,
        )


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    played = Runs()
    monkeypatch.setattr(module, "run", played.run)
    return played


def invoke(*arguments: str, hand: Hand | None = None) -> Result:
    return CliRunner().invoke(module.chaos, arguments, obj=hand)


def test_what_can_not_be_had_is_left_out_and_others_come_again_in_its_place(runs: Runs) -> None:
    done = invoke("--mode", "classic-async", "--runs", "30")
    assert done.exit_code == 0, done.output
    assert f"left out: classic-async full-disk: {NO_DISK}" in done.stdout
    tried = [plan.fault for plan in runs.plans]
    assert tried.count(Fault.FULL_DISK) == 1
    assert len(tried) == 31
    # No two runs have the same chances.
    assert len({plan.seed for plan in runs.plans}) == len(runs.plans)


def test_anything_lost_is_an_exit_code_and_a_line_with_its_seed(runs: Runs) -> None:
    runs.lost_at = 5
    done = invoke("--mode", "classic-sync", "--seed", "5", "--fault", "kill-slave")
    assert done.exit_code == 1
    assert "classic-sync kill-slave seed 5: lost at T@a:0@0: gone" in done.stdout.replace("\n", "")


def test_a_secret_that_came_out_is_an_exit_code_and_a_line(runs: Runs) -> None:
    runs.leaks = ["haSecret stands in broker-1.log"]
    done = invoke("--mode", "classic-sync", "--fault", "kill-slave")
    assert done.exit_code == 1
    assert "classic-sync kill-slave seed 0: haSecret stands in broker-1.log" in done.stdout.replace("\n", "")


def test_nobody_else_runs_while_zookeeper_is_struck(runs: Runs) -> None:
    done = invoke(
        "--mode", "auto-switch-zookeeper", "--zookeeper", "127.0.0.1:2181", "--jobs", "8", hand=Hand()
    )
    assert done.exit_code == 0, done.output
    assert len(runs.plans) == len(faults_of(Mode.AUTO_SWITCH_ZOOKEEPER))
    assert runs.beside_zookeeper == [1, 1]
    assert all(isinstance(plan.leader, Hand) for plan in runs.plans)


@pytest.mark.usefixtures("runs")
def test_a_record_holds_the_results_and_what_was_left_out(tmp_path: Path) -> None:
    record = tmp_path / "chaos.json"
    invoke("--mode", "classic-sync", "--record", str(record))
    told = json.loads(record.read_text())
    assert len(told["results"]) == len(faults_of(Mode.CLASSIC_SYNC)) - 1
    assert told["leftOut"] == [f"classic-sync full-disk: {NO_DISK}"]
    assert told["failures"] == 0
