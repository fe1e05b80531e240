"""What a Python source that takes filters comes to in the PySpark that is installed."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    InputPartition,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_GROUPS, _EACH = 6, 10


def a_source_that_takes_filters_still_loses_rows_of_other_queries(
    spark: "SparkSession", _folder: "Path"
) -> None:
    """That is why ours take none. Once PySpark has mended it this fails, and ours may take them."""
    spark.dataSource.register(_source())
    spark.conf.set(PUSHDOWN, "true")
    try:
        frame = spark.read.format("taking-filters").load()
        assert frame.where("number = 0").count() == _EACH
        assert frame.count() == _EACH, "all are there now: docs/spark.md says that filters can not be taken"
    finally:
        spark.conf.unset(PUSHDOWN)


def _source() -> type[DataSource]:
    """A source in a function is sent to Spark's processes as it is: they need not find this module."""

    class Reader(DataSourceReader):
        def __init__(self) -> None:
            self.numbers = list(range(_GROUPS))

        def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name.
            for one in filters:
                if isinstance(one, EqualTo):
                    self.numbers = [number for number in self.numbers if number == one.value]
                else:
                    yield one

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in self.numbers]

        def read(self, partition: InputPartition) -> Iterator[tuple[Any, int]]:
            for row in range(_EACH):
                yield partition.value, row

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "taking-filters"

        def schema(self) -> str:
            return "number int, row int"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    return Source
