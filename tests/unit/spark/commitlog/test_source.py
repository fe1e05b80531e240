"""What Spark is handed of a store: what the options want, and no less if it would filter by itself."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from tanist.spark.commitlog.by_queue import QueueRange
from tanist.spark.commitlog.options import read_options
from tanist.spark.commitlog.source import CommitLogReader, StorePiece
from tests.support.spark_stores import fill_store

SCHEMA = StructType([StructField("queueId", IntegerType()), StructField("queueOffset", LongType())])


def reader_of(store: Path, **options: str) -> CommitLogReader:
    return CommitLogReader(read_options({"path": str(store)} | options), SCHEMA)


def rows_of(reader: CommitLogReader) -> list[tuple[int, int]]:
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return sorted((row["queueId"], row["queueOffset"]) for batch in batches for row in batch.to_pylist())


def test_options_bound_what_is_planned_and_what_is_read(tmp_path: Path) -> None:
    fill_store(tmp_path)
    reader = reader_of(
        tmp_path, subscribe="TopicB", queueIds="1", startingQueueOffset="2", endingQueueOffset="5"
    )

    spans = [span for one in reader.partitions() if isinstance(one, StorePiece) for span in one.piece]

    assert [(span.queue_id, span.first, span.end) for span in spans if isinstance(span, QueueRange)] == [
        (1, 2, 5)
    ]
    assert rows_of(reader) == [(1, 2), (1, 3), (1, 4)]


def test_filters_that_spark_hands_down_are_all_left_to_it(tmp_path: Path) -> None:
    """For the plan that is made with them is read by queries without them too, see the module."""
    fill_store(tmp_path)
    reader = reader_of(tmp_path)
    filters: list[Filter] = [EqualTo(("queueId",), 1)]

    assert list(reader.pushFilters(filters)) == filters
    assert len(rows_of(reader)) == 60
    assert type(reader).pushFilters is DataSourceReader.pushFilters
