"""The figures of a broker, from tables that hold known ones."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tanist.broker.operating import broker_metrics as metrics
from tanist.broker.operating.broker_metrics import broker_metrics
from tanist.broker.state import BrokerState
from tanist.model.offsets import QueueOffset
from tests.support.messages import TOPIC, make_message
from tests.support.transacting import ROLLBACK, T, Transacting
from tests.support.transacting import run as run_transactions
from tests.support.working_broker import working_broker


def measured(tmp_path: Path, fill: Callable[[BrokerState], None]) -> dict[tuple[str, ...], float]:
    async def run() -> dict[tuple[str, ...], float]:
        async with working_broker(tmp_path) as broker:
            fill(broker.state)
            return figures(broker.state)

    return asyncio.run(run())


def figures(state: BrokerState) -> dict[tuple[str, ...], float]:
    """By name and labels, without those of the node."""
    return {
        (sample.name, *list(sample.labels.values())[4:]): sample.value
        for metric in broker_metrics(state)
        for sample in metric.samples
    }


def test_a_group_is_as_far_behind_as_the_queue_is_beyond_its_offset(tmp_path: Path) -> None:
    def fill(state: BrokerState) -> None:
        for _ in range(5):
            state.store.append(make_message())
        state.store.dispatch()
        state.offsets.adopt({f"{TOPIC}@g": {0: QueueOffset(2)}})
        state.pull_progress.note("g", TOPIC, 0, 4)

    found = measured(tmp_path, fill)
    lag = ("g", TOPIC, "false", "false")
    assert found["rocketmq_consumer_lag_messages", *lag] == 3
    assert found["rocketmq_consumer_inflight_messages", *lag] == 2
    assert found["rocketmq_consumer_ready_messages", *lag] == 1
    assert ("rocketmq_consumer_lag_latency_milliseconds", *lag) in found


def test_a_scrape_reads_only_so_many_queues_however_many_a_topic_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, int]] = []

    def store_time_ms(_store: object, topic: str, queue_id: int, _offset: int) -> int:
        read.append((topic, queue_id))
        return 0

    def fill(state: BrokerState) -> None:
        for queue_id in (0, 1, 2, 2, 3, 3, 3):
            state.store.append(make_message(queue_id=queue_id))
        state.store.dispatch()
        for group in ("far", "near"):
            offsets = {queue_id: QueueOffset(0) for queue_id in range(4 if group == "far" else 3)}
            state.offsets.adopt({f"{TOPIC}@{group}": offsets})

    monkeypatch.setattr(metrics, "store_time_ms", store_time_ms)
    monkeypatch.setattr(metrics, "_MOST_AGES", 3)
    found = measured(tmp_path, fill)
    assert read == [(TOPIC, 3), (TOPIC, 2), (TOPIC, 1)]
    told = [name[1] for name in found if name[0] == "rocketmq_consumer_lag_latency_milliseconds"]
    assert told == ["far"]


def test_what_was_counted_is_told_by_topic_and_group(tmp_path: Path) -> None:
    def fill(state: BrokerState) -> None:
        state.counters.on_put("T", count=3, size_bytes=300, is_system=False)
        state.counters.on_put("%DLQ%g", count=1, size_bytes=10, is_system=False)
        state.counters.on_pulled("T", "g", count=2, size_bytes=200, is_system=False)
        state.counters.on_timer_taken("T")
        state.counters.on_timer_taken("T")
        state.counters.on_timer_over("T")
        state.delays.timers.take(1, slot_ms=1_000)

    found = measured(tmp_path, fill)
    assert found["rocketmq_messages_in_total", "T", "false"] == 3
    assert found["rocketmq_throughput_in_total", "T", "false"] == 300
    assert found["rocketmq_messages_out_total", "g", "T", "false"] == 2
    assert found["rocketmq_send_to_dlq_messages_total", "g", "false"] == 1
    assert found["rocketmq_timer_enqueue_total", "T"] == 2
    assert found["rocketmq_timer_dequeue_total", "T"] == 1
    assert found["rocketmq_timing_messages",] == 1
    assert found["tanist_reset_orders", "APPLIED"] == 0
    assert found["tanist_is_master",] == 1


def test_transactions_are_told_by_how_they_ended_and_those_that_are_open(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        committed, rolled_back, refused = (transactions.prepare() for _ in range(3))
        transactions.prepare()
        assert figures(transactions.state)["rocketmq_half_messages",] == 4
        transactions.turn()
        transactions.end(committed)
        transactions.end(committed)
        transactions.end(rolled_back, ROLLBACK)
        transactions.end(refused, group="others")
        found = figures(transactions.state)
        assert found["rocketmq_commit_messages_total", T] == 1
        assert found["rocketmq_rollback_messages_total", T] == 1
        assert found["rocketmq_half_messages",] == 2

    run_transactions(tmp_path, scenario)
