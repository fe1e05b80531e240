"""What filters that Spark hands down leave of a read."""

import pytest

from tanist.model.route import MessageQueue
from tanist.spark.rocketmq import pruning
from tanist.spark.rocketmq.offsets import PullRange
from tanist.spark.rocketmq.options import RocketMQOptions, read_options
from tanist.spark.rocketmq.pruning import pruned
from tanist.spark.wanted import CLOCK_STEP_US, Wanted

OPTIONS = read_options({"namesrv": "127.0.0.1:1", "subscribePattern": ".*"})


def span(topic: str, queue_id: int, first: int = 10, end: int = 50) -> PullRange:
    return PullRange(MessageQueue(topic=topic, broker_name="a", queue_id=queue_id), (), first, end)


RANGES = [span("A", 0), span("A", 1), span("B", 0)]


def left(wanted: Wanted) -> list[tuple[str, int, int, int]]:
    found = pruned(RANGES, wanted, OPTIONS)
    return [(one.queue.topic, one.queue.queue_id, one.first, one.end) for one in found]


def test_without_filters_all_is_read() -> None:
    assert pruned(RANGES, Wanted(), OPTIONS) == RANGES


def test_topics_queues_and_offsets_that_are_not_wanted_are_not_read() -> None:
    assert left(Wanted().of_topics(frozenset(["B", "C"]))) == [("B", 0, 10, 50)]
    assert left(Wanted().of_queues(frozenset([1]))) == [("A", 1, 10, 50)]
    offsets = Wanted().of_topics(frozenset(["B"])).narrowed("queue_offsets", 5, 20)
    assert left(offsets) == [("B", 0, 10, 21)]
    assert left(Wanted().narrowed("queue_offsets", 50, 60)) == []


def test_times_are_asked_of_brokers_with_room_for_clocks_and_for_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int | None] = []

    def offsets_at(
        ranges: list[PullRange], timestamp_ms: int | None, _options: RocketMQOptions
    ) -> list[int | None]:
        asked.append(timestamp_ms)
        return [None if timestamp_ms is None else 20 if timestamp_ms < 500_000 else 30 for _ in ranges]

    monkeypatch.setattr(pruning, "offsets_at", offsets_at)
    of_b = Wanted().of_topics(frozenset(["B"]))

    assert left(of_b.narrowed("store_us", 200_000_000, 700_000_999)) == [("B", 0, 19, 31)]
    assert asked == [200_000 - CLOCK_STEP_US // 1000, 700_000 + CLOCK_STEP_US // 1000 + 1]
    assert left(of_b.narrowed("store_us", 200_000_000, Wanted().store_us.most)) == [("B", 0, 19, 50)]
    assert asked[2:] == [140_000, None]
