"""Slave consumption's scenarios on a virtual clock, each with its transcript."""

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.support.reading_stage import SimStage
from tests.support.scenarios import play, read_scenario

PATHS = sorted(Path(__file__).parent.glob("slave_consume_*.txt"))


def _marked(path: Path) -> ParameterSet:
    return pytest.param(path, id=path.stem, marks=pytest.mark.behaviour(*read_scenario(path).behaviours))


@pytest.mark.parametrize("path", [_marked(path) for path in PATHS])
@pytest.mark.known_bug("lost read flag")
def test_a_scenario_comes_to_its_transcript(path: Path) -> None:
    scenario = read_scenario(path)
    stage = SimStage(scenario.slaves, scenario.checks)
    play(scenario, stage)
    assert tuple(stage.world.transcript) == scenario.transcript
