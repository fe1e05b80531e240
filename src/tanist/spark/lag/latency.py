"""How long messages took from being born to being stored, and from there to being consumed: with Spark.

When a message was consumed nobody wrote down. But between two samples a group went from one offset to
another, so each message between them was consumed about then, the first ones first.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tanist.spark.archive.frames import read_archive
from tanist.spark.lag.samples import Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PERCENTILES = (0.5, 0.9, 0.99, 0.999)
_SCHEMA = (
    "group string, topic string, broker string, queueId int, "
    "first bigint, end bigint, fromMs bigint, toMs bigint, reach bigint"
)


class Latency(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Of the messages that a group consumed of a topic: percentiles in milliseconds, by PERCENTILES."""

    group: str
    topic: str
    messages: int
    born_to_stored_ms: list[float]
    stored_to_consumed_ms: list[float]
    born_to_consumed_ms: list[float]


Step = tuple[str, str, str, int, int, int, int, int]
"""Group, topic, broker, queue, offsets ``[first, end)``, and between which times they were consumed."""


def steps(samples: Iterable[Sample]) -> list[Step]:
    """From where to where each group went in each queue, and from when to when. Pure."""
    by_queue: dict[tuple[str, str, str, int], list[Sample]] = {}
    for sample in sorted(samples, key=lambda one: one.at_ms):
        key = (sample.group, sample.topic, sample.broker, sample.queue_id)
        by_queue.setdefault(key, []).append(sample)
    return [
        (*key, before.consumer_offset, after.consumer_offset, before.at_ms, after.at_ms)
        for key, some in by_queue.items()
        for before, after in pairwise(some)
        if before.consumer_offset < after.consumer_offset
    ]


def reach_of(taken: Sequence[Step]) -> int:
    """How many offsets lie in one reach: about as many as a step goes."""
    return max(1, sum(end - first for *_, first, end, _, _ in taken) // len(taken))


def by_reach(taken: Iterable[Step], size: int) -> Iterator[tuple[Any, ...]]:
    """The steps, each once for every reach of offsets that it touches: four times as many at most. Pure.

    A message has to look at the steps in its own reach alone, and not at all that its queue ever had.
    """
    for step in taken:
        first, end = step[4], step[5]
        yield from ((*step, reach) for reach in range(first // size, (end - 1) // size + 1))


def latencies(spark: "SparkSession", archive: Path, samples: Iterable[Sample]) -> list[Latency]:
    """The percentiles of all groups of which both samples and archived messages are there."""
    from pyspark.sql import functions as fn  # noqa: PLC0415 - it may not be installed.

    taken = steps(samples)
    if not taken:
        return []
    consumed = _consumed(spark, archive, taken)
    percentiles = fn.array(*(fn.lit(each) for each in PERCENTILES))
    found = consumed.groupBy("group", "topic").agg(
        fn.count("*").alias("messages"),
        *(
            fn.percentile_approx(name, percentiles, 10_000).alias(name)
            for name in ("bornToStored", "storedToConsumed", "bornToConsumed")
        ),
    )
    rows: list[Any] = found.orderBy("group", "topic").collect()
    return [
        Latency(
            group=row["group"],
            topic=row["topic"],
            messages=row["messages"],
            born_to_stored_ms=row["bornToStored"],
            stored_to_consumed_ms=row["storedToConsumed"],
            born_to_consumed_ms=row["bornToConsumed"],
        )
        for row in rows
    ]


def _consumed(spark: "SparkSession", archive: Path, taken: Sequence[Step]) -> "DataFrame":
    """Every archived message that a group passed between two samples, with how long it took."""
    from pyspark.sql import functions as fn  # noqa: PLC0415

    # PySpark tells no types of what a frame is made of.
    session: Any = spark
    size = reach_of(taken)
    went = session.createDataFrame(list(by_reach(taken, size)), _SCHEMA)
    messages = read_archive(spark, archive).select(
        "topic",
        "brokerName",
        "queueId",
        "queueOffset",
        fn.expr(f"queueOffset DIV {size}").alias("reach"),
        fn.unix_millis("bornTimestamp").alias("bornMs"),
        fn.unix_millis("storeTimestamp").alias("storedMs"),
    )
    passed = messages.join(fn.broadcast(went), ["topic", "queueId", "reach"]).where(
        "queueOffset >= first AND queueOffset < end AND (brokerName IS NULL OR brokerName = broker)"
    )
    share = "(queueOffset - first + 1) / (end - first)"
    # It was not consumed before it was there, whatever the even pace between two samples says.
    timed = passed.withColumn(
        "consumedMs", fn.expr(f"greatest(fromMs + (toMs - fromMs) * {share}, storedMs)")
    )
    return timed.selectExpr(
        "group",
        "topic",
        "cast(storedMs - bornMs AS double) AS bornToStored",
        "cast(consumedMs - storedMs AS double) AS storedToConsumed",
        "cast(consumedMs - bornMs AS double) AS bornToConsumed",
    )
