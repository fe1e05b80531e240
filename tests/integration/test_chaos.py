"""Clusters of real processes are broken while clients work: nothing is lost, and work goes on."""

import asyncio
import logging
from pathlib import Path
from typing import NoReturn

import pytest

from tanist.chaos import Fault, Mode, NotPossible, RunPlan, run
from tanist.chaos.hosts import Switch
from tests.support.partners import PartnerMissing, do_without
from tests.support.zookeeper import Ensemble

BROKEN_S = 4.0


@pytest.fixture(autouse=True)
def _quiet_clients() -> None:
    """Clients of a cluster that is broken on purpose have nothing to say that would help."""
    logging.getLogger("tanist.client").setLevel(logging.CRITICAL)


def judge(folder: Path, mode: Mode, fault: Fault, *, zookeeper: str = "") -> None:
    plan = RunPlan(
        mode=mode,
        fault=fault,
        folder=folder,
        before_s=1.0,
        broken_s=BROKEN_S,
        after_s=0.5,
        zookeeper=zookeeper,
    )
    try:
        result = asyncio.run(run(plan))
    except NotPossible as error:
        do_without(PartnerMissing(str(error)))
    assert result.is_sound, (result.verdict.anomalies, result.broken_promises)
    assert result.verdict.counts.acknowledged > 0
    assert result.verdict.counts.faults == 1
    assert not result.verdict.unjudged
    # Where its secrets could have come out was looked at.
    shown = {path.name.partition("%20")[0] for path in (folder / "shown").iterdir()}
    assert shown >= {"api", "command", "login", "metrics", "page", "settings"}
    # Strangers are let in as far as they can come, so nobody is refused beside them.
    assert ("refusal" in shown) == (fault is not Fault.HOSTILE_PEERS)


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        (Mode.CLASSIC_ASYNC, Fault.KILL_MASTER),
        (Mode.CLASSIC_SYNC, Fault.FLAKY_REPLICATION),
        (Mode.AUTO_SWITCH, Fault.RESTART_ALL),
        (Mode.CLASSIC_SYNC, Fault.HOSTILE_PEERS),
        (Mode.SLAVE_CONSUMPTION, Fault.KILL_MASTER),
        (Mode.SLAVE_CONSUMPTION, Fault.CUT_REGISTRY),
        (Mode.AUTO_SWITCH, Fault.FREEZE_MASTER),
        (Mode.AUTO_SWITCH, Fault.CUT_MASTER),
    ],
)
def test_nothing_acknowledged_is_lost(mode: Mode, fault: Fault, tmp_path: Path) -> None:
    judge(tmp_path, mode, fault)


@pytest.mark.takes(25)
@pytest.mark.parametrize("fault", [Fault.CUT_MASTER, Fault.ONE_WAY_CUT])
def test_proxies_cut_a_broker_off_where_there_are_no_namespaces(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Switch, "__enter__", refuse)
    judge(tmp_path, Mode.AUTO_SWITCH, fault)


def refuse(_switch: Switch) -> NoReturn:
    raise NotPossible("no network namespaces can be made here")


@pytest.mark.takes(15)
@pytest.mark.known_bug("RMQ #7689")
def test_nothing_is_lost_or_used_again_when_master_and_registry_die_together(tmp_path: Path) -> None:
    judge(tmp_path, Mode.AUTO_SWITCH, Fault.KILL_MASTER_AND_REGISTRY)


@pytest.mark.takes(20)
@pytest.mark.known_bug("NATS #7567")
def test_a_loss_of_power_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    judge(tmp_path, Mode.AUTO_SWITCH, Fault.POWER_LOSS)


@pytest.mark.partner("java", "maven")
def test_nothing_acknowledged_is_lost_with_zookeeper(tmp_path: Path) -> None:
    with Ensemble(tmp_path / "zookeeper", size=1) as zookeeper:
        judge(
            tmp_path / "run",
            Mode.AUTO_SWITCH_ZOOKEEPER,
            Fault.KILL_MASTER,
            zookeeper=f"{zookeeper.hosts}/chaos",
        )
