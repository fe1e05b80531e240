"""What samples come to: lag in messages and seconds, rates, skew, and when a backlog is gone. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from tanist.spark.lag.samples import Sample

_SKEWED = 3.0
"""A queue that is so many times as far behind as the mean of its group is told."""


class QueueLag(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """One queue of a group, at the last sample."""

    broker: str
    queue_id: int
    consumer_offset: int
    max_offset: int
    lag: int
    late_ms: int
    consumed_per_s: float
    produced_per_s: float


class GroupLag(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """One group in one topic."""

    group: str
    topic: str
    first_ms: int
    last_ms: int
    lag: int
    most_lag: int
    """The most that it was over the whole time."""
    late_ms: int
    consumed_per_s: float
    produced_per_s: float
    gone_in_s: float | None
    """When the backlog is gone if all goes on as it does: 0 if there is none, None for never."""
    is_slow: bool
    """It has a backlog, and does not consume faster than is produced: it may stand still."""
    skew: float
    """How many times as much as the mean the queue is behind that is furthest behind."""
    is_skewed: bool
    queues: list[QueueLag]
    history: list[tuple[int, int]]
    """The lag at each time, of all queues together."""


def analyse(samples: Iterable[Sample]) -> list[GroupLag]:
    """All groups and topics that come in the samples, the furthest behind first."""
    by_group: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        by_group.setdefault((sample.group, sample.topic), []).append(sample)
    found = [_group(group, topic, some) for (group, topic), some in by_group.items()]
    return sorted(found, key=lambda one: (-one.lag, one.group, one.topic))


def gone_in_s(lag: int, consumed_per_s: float, produced_per_s: float) -> float | None:
    """When a backlog is gone at these rates: None for never."""
    if not lag:
        return 0.0
    gained = consumed_per_s - produced_per_s
    return lag / gained if gained > 0 else None


def rate(points: Sequence[tuple[int, int]]) -> float:
    """How fast offsets grew, a second: the slope of the line through the points with the least error.

    A group that was reset goes back: only what it did since then counts.
    """
    since = max(
        (index for index in range(1, len(points)) if points[index][1] < points[index - 1][1]), default=0
    )
    kept = points[since:]
    mean_ms = sum(at for at, _ in kept) / max(1, len(kept))
    mean = sum(offset for _, offset in kept) / max(1, len(kept))
    spread = sum((at - mean_ms) ** 2 for at, _ in kept)
    if not spread:
        return 0.0
    return 1000 * sum((at - mean_ms) * (offset - mean) for at, offset in kept) / spread


def _group(group: str, topic: str, samples: list[Sample]) -> GroupLag:
    by_queue: dict[tuple[str, int], list[Sample]] = {}
    for sample in sorted(samples, key=lambda one: one.at_ms):
        by_queue.setdefault((sample.broker, sample.queue_id), []).append(sample)
    queues = [_queue(some) for _, some in sorted(by_queue.items())]
    lag = sum(queue.lag for queue in queues)
    consumed = sum(queue.consumed_per_s for queue in queues)
    produced = sum(queue.produced_per_s for queue in queues)
    skew = max(queue.lag for queue in queues) * len(queues) / lag if lag else 1.0
    history = _history(samples)
    forecast = gone_in_s(lag, consumed, produced)
    return GroupLag(
        group=group,
        topic=topic,
        first_ms=history[0][0],
        last_ms=history[-1][0],
        lag=lag,
        most_lag=max(value for _, value in history),
        late_ms=max(queue.late_ms for queue in queues),
        consumed_per_s=consumed,
        produced_per_s=produced,
        gone_in_s=forecast,
        is_slow=forecast is None,
        skew=skew,
        is_skewed=skew >= _SKEWED and len(queues) > 1,
        queues=queues,
        history=history,
    )


def _queue(samples: list[Sample]) -> QueueLag:
    last = samples[-1]
    return QueueLag(
        broker=last.broker,
        queue_id=last.queue_id,
        consumer_offset=last.consumer_offset,
        max_offset=last.max_offset,
        lag=last.lag,
        late_ms=last.late_ms,
        consumed_per_s=rate([(one.at_ms, one.consumer_offset) for one in samples]),
        produced_per_s=rate([(one.at_ms, one.max_offset) for one in samples]),
    )


def _history(samples: Iterable[Sample]) -> list[tuple[int, int]]:
    totals: dict[int, int] = {}
    for sample in samples:
        totals[sample.at_ms] = totals.get(sample.at_ms, 0) + sample.lag
    return sorted(totals.items())
