"""The second act of ``tanist demo``, without Spark: a reset and its undo, a switch, and the promises kept."""

import asyncio
from pathlib import Path

from tanist.cli.story_acts import auto_switch


def test_a_group_is_reset_and_taken_back_and_a_switch_loses_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    verdicts = asyncio.run(auto_switch(tmp_path / "home", told.append, has_spark=False))
    assert len(verdicts) == 4
    assert all(verdict.is_kept for verdict in verdicts), (verdicts, told)
