"""Judges a history on Spark: cut by message and by queue, each part by the rules of ``tanist.check``."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import functions as fn

from tanist.check.history import Event, Fault, HistoryError, decode_event, order_of
from tanist.check.verdict import Verdict
from tanist.spark.arrow import BINARY, RecordBatch, batch, of_list
from tanist.spark.check.parts import judge_queues, judge_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIELDS = "type STRING, at_us BIGINT, queue STRING, value STRING"
_OF_ALL = ("fault", "waited")
_VERDICT = "verdict BINARY"
_BYTES_PER_PART = 64 << 20


def judge_history(session: "SparkSession", paths: Sequence[str], *, parts: int | None = None) -> Verdict:
    """Judge the history that these files and folders of ``*.jsonl`` are, in so many parts.

    Raises HistoryError for a file that is no history.
    """
    events = _events(session, paths)
    _check_lines(events)
    of_all = [
        decode_event(bytes(row["line"])) for row in events.where(fn.col("type").isin(*_OF_ALL)).collect()
    ]
    of_all.sort(key=order_of)
    count = parts or max(events.rdd.getNumPartitions(), 2)
    by_value = events.where("value IS NOT NULL").repartition(count, "value")
    by_queue = events.where("queue IS NOT NULL AND queue <> ''").repartition(count, "queue")
    by_queue = by_queue.sortWithinPartitions("queue", "at_us")
    verdict = Verdict()
    for frame, judge in ((by_value, _judge_values), (by_queue, partial(_judge_queues, of_all))):
        part: Any = frame.select("queue", "line")  # Spark tells no types of what Arrow has.
        for row in part.mapInArrow(judge, _VERDICT).toLocalIterator():
            verdict.add(msgspec.json.decode(bytes(row["verdict"]), type=Verdict))
    verdict.counts.faults = sum(isinstance(event, Fault) and not event.is_over for event in of_all)
    return verdict


def _events(session: "SparkSession", paths: Sequence[str]) -> "DataFrame":
    reader = session.read.option("pathGlobFilter", "*.jsonl").option("maxPartitionBytes", _BYTES_PER_PART)
    lines = reader.text(list(paths)).where("value <> ''")
    read = lines.select(
        fn.encode("value", "UTF-8").alias("line"),
        fn.from_json("value", _FIELDS).alias("read"),
        fn.col("_metadata.file_path").alias("file"),
    )
    return read.select("line", "file", "read.*")


def _check_lines(events: "DataFrame") -> None:
    """A process that was killed leaves half a line at most; more of them are no history."""
    broken = events.where("type IS NULL OR at_us IS NULL").groupBy("file").count()
    for row in broken.where("count > 1").limit(1).collect():
        raise HistoryError(
            f"{row['file']}: {row['count']} lines are no events; give files of one JSON event a line"
        )


def _lines(batches: Iterator[RecordBatch]) -> Iterator[tuple[str, bytes]]:
    for each in batches:
        yield from zip(each.column(0).to_pylist(), each.column(1).to_pylist(), strict=True)


def _judge_values(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    yield _told(judge_values(line for _, line in _lines(batches)))


def _judge_queues(of_all: Sequence[Event], batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    yield _told(judge_queues(_lines(batches), of_all))


def _told(verdict: Verdict) -> RecordBatch:
    return batch({"verdict": of_list([msgspec.json.encode(verdict)], BINARY)})
