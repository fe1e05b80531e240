"""A history written against a real broker is judged sound, and a cluster that is away is told of."""

import asyncio
from pathlib import Path

import pytest

from tanist.check import Asked, judge_files
from tanist.check.history import merge_histories
from tanist.check.workload import Plan, Workload
from tanist.client import NoRoute
from tanist.testing import EmbeddedBroker


def test_a_run_against_a_broker_is_recorded_and_sound(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        plan = Plan(namesrv=broker.namesrv, folder=tmp_path / "history", seconds=0.5, rate=400.0)
        files = asyncio.run(Workload(plan).run())
        verdict = judge_files(files)
        asked = [event for event in merge_histories(files) if isinstance(event, Asked)]
    assert verdict.is_sound, verdict.anomalies
    # Somebody asks where the queues end, so that a stale answer would be seen.
    assert max(event.end for event in asked) > 0
    assert not verdict.unjudged
    assert verdict.counts.acknowledged == verdict.counts.sent > 0
    assert verdict.counts.read == verdict.counts.sent


def test_a_cluster_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    plan = Plan(namesrv="127.0.0.1:1", folder=tmp_path, seconds=0.1, timeout_s=0.3, topic_s=0.3)
    with pytest.raises(NoRoute, match=r"127\.0\.0\.1:1"):
        asyncio.run(Workload(plan).run())
