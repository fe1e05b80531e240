"""Drops repeats: of messages with the same identity the first one stays. Functions from frames to frames."""

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tanist.model.writes import WRITE_ID
from tanist.spark.errors import SparkError, UnknownName

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_log = logging.getLogger(__name__)

IDENTITY = "identity"
_NEEDED = ("brokerName", "queueId", "queueOffset", "storeTimestamp", "msgId")
_MOST_SHOWN = 100


class Repeat(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A message that is there more than once."""

    identity: str
    count: int
    places: list[str]
    """``broker/queue/offset``, the one that stays first."""


class DedupReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of it."""

    rows: int
    kept: int
    repeats: int
    examples: list[Repeat]
    """Some of them, those that are there most often first."""
    written_to: str | None
    seconds: float


def identity_of(frame: "DataFrame") -> "Column":
    """What a message is known by: the name that its writer gave it, else its producer's id."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - it may not be installed.

    if "properties" not in frame.columns:
        return f.col("msgId")
    return f.coalesce(f.col("properties")[WRITE_ID], f.col("msgId"))


def without_repeats(frame: "DataFrame") -> "DataFrame":
    """Of equal messages the one that was stored first, whatever order they are read in."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    for name in _NEEDED:
        if name not in frame.columns:
            raise UnknownName("column", name, frame.columns)
    order = ("storeTimestamp", "brokerName", "queueId", "queueOffset")
    numbered = frame.withColumn(IDENTITY, identity_of(frame)).withColumn(
        "turn", f.row_number().over(Window.partitionBy(IDENTITY).orderBy(*order))
    )
    return numbered.where("turn = 1").drop("turn", IDENTITY)


def dedup(
    frame: "DataFrame", *, to_parquet: str | None = None, to_topic: Mapping[str, str] | None = None
) -> DedupReport:
    """Count the repeats, and write the rest somewhere if asked. ``to_topic`` are options of a write."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    if to_parquet is not None and to_topic is not None:
        raise SparkError("what is left goes either to Parquet or to a topic: give one of them")
    started_s = time.monotonic()
    kept = without_repeats(frame)
    place = f.concat_ws("/", "brokerName", "queueId", "queueOffset")
    counted = frame.groupBy(identity_of(frame).alias(IDENTITY)).agg(
        f.count("*").alias("count"),
        f.sort_array(f.collect_list(f.struct("storeTimestamp", place))).alias("places"),
    )
    totals: Any = counted.agg(f.sum("count"), f.count("*")).first()
    rows, kept_count = totals[0] or 0, totals[1]
    repeated = counted.where("count > 1").orderBy(f.desc("count"), IDENTITY).limit(_MOST_SHOWN).collect()
    if to_parquet is not None:
        kept.write.mode("errorifexists").parquet(to_parquet)
    elif to_topic is not None:
        columns = [name for name in ("body", "tags", "keys", "flag", "properties") if name in kept.columns]
        # Sorted: a task that is repeated must have its rows in the same order.
        ordered = kept.sortWithinPartitions("storeTimestamp", "brokerName", "queueId", "queueOffset")
        ordered.select(*columns).write.format("rocketmq").options(**to_topic).mode("append").save()
    _log.info("repeats dropped rows=%d kept=%d", rows, kept_count)
    return DedupReport(
        rows=rows,
        kept=kept_count,
        repeats=rows - kept_count,
        examples=[
            Repeat(identity=row[IDENTITY], count=row["count"], places=[one[1] for one in row["places"]])
            for row in repeated
        ],
        written_to=to_parquet if to_topic is None else to_topic.get("topic"),
        seconds=time.monotonic() - started_s,
    )
