"""The acts of ``tanist demo``, without Spark: what was promised is kept, speed aside."""

import asyncio
from pathlib import Path

from tanist.cli.story_acts import auto_switch, fixed_roles


def test_a_group_is_reset_and_taken_back_and_a_switch_loses_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    verdicts = asyncio.run(auto_switch(tmp_path / "home", told.append, has_spark=False))
    assert len(verdicts) == 4
    assert all(verdict.is_kept for verdict in verdicts), (verdicts, told)


def test_a_slave_is_read_on_when_its_master_is_killed_and_hands_back(tmp_path: Path) -> None:
    told: list[str] = []
    up, read_on, *others = asyncio.run(fixed_roles(tmp_path / "home", told.append))
    # How long they take is for a machine that has nothing else to do.
    assert (up.promise, read_on.promise) == ("up in under 5 s", "consumers read on within 10 s of a kill -9")
    assert len(others) == 3
    assert all(verdict.is_kept for verdict in others), (others, told)
