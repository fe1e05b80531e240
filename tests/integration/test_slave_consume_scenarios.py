"""Slave consumption's scenarios with real processes, on both homes of the registry.

TANIST_SCENARIOS=all runs every one of them on each.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.support.nameserver import NameServerProcess
from tests.support.real_stage import RealRegistry, RealStage
from tests.support.scenarios import Scenario, play, read_scenario
from tests.support.tanist_group import ControllerProcess
from tests.support.zookeeper import Ensemble

ON_SQLITE = {"switch_and_hand_back", "slave_dies_reading"}
ON_ZOOKEEPER = {"lonely_master"}
"""One or two on each: all of them take minutes, most of which pass in waiting for nothing to happen."""
IS_ALL = os.environ.get("TANIST_SCENARIOS") == "all"
SCENARIOS = Path(__file__).parents[1] / "scenarios"


class _Sqlite:
    """In a controller."""

    scheme, suffix = "tanist", ""

    def __init__(self, controller: ControllerProcess) -> None:
        self.address = controller.address
        self.kill = controller.kill
        self.restart = controller.restart


class _ZooKeeper:
    """One server."""

    scheme, suffix = "zk", "/tanist"

    def __init__(self, ensemble: Ensemble) -> None:
        self.address = ensemble.hosts
        self.kill = ensemble.servers[0].kill
        self.restart = ensemble.servers[0].start


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServerProcess]:
    with NameServerProcess(tmp_path_factory.mktemp("names")) as names:
        yield names


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Sqlite]:
    with ControllerProcess(tmp_path_factory.mktemp("controller")) as controller:
        yield _Sqlite(controller)


@pytest.fixture
def home(request: pytest.FixtureRequest) -> RealRegistry:
    """The registry in the home that the test names."""
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite")
    return _ZooKeeper(request.getfixturevalue("zookeeper"))


def _runs() -> Iterator[ParameterSet]:
    for path in sorted(SCENARIOS.glob("slave_consume_*.txt")):
        scenario = read_scenario(path)
        if scenario.is_played_only:
            continue
        short = scenario.name.removeprefix("slave_consume_")
        behaviour = pytest.mark.behaviour(*scenario.behaviours)
        java = pytest.mark.partner("java", "maven")
        if IS_ALL or short in ON_SQLITE:
            yield pytest.param(scenario, "sqlite", id=f"{short}-sqlite", marks=behaviour)
        if IS_ALL or short in ON_ZOOKEEPER:
            yield pytest.param(scenario, "zookeeper", id=f"{short}-zookeeper", marks=[behaviour, java])


@pytest.mark.parametrize(("scenario", "home"), list(_runs()), indirect=["home"])
@pytest.mark.takes(15)
def test_a_scenario_comes_true(
    scenario: Scenario, home: RealRegistry, names: NameServerProcess, tmp_path: Path
) -> None:
    group = f"group-{tmp_path.name}"
    with RealStage(tmp_path, names.address, home, scenario.slaves, group, checks=scenario.checks) as stage:
        try:
            play(scenario, stage)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{stage.output()}") from error
