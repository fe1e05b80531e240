"""Where Spark finds the format ``rocketmq`` by itself: it looks into every module named ``pyspark_…``.

One of them that can not be imported breaks all lookups, those of others too. So nothing is imported here but
what Spark has anyway; the rest follows when the format is used.
"""

from collections.abc import MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from tanist.spark.rocketmq.options import RocketMQOptions


class DefaultSource(DataSource):
    """Messages pulled from brokers and sent to them, Tanist's or RocketMQ's."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options)

    @cached_property
    def _options(self) -> "RocketMQOptions":
        """Those of a read: a write has others."""
        from tanist.spark.rocketmq.options import read_options  # noqa: PLC0415

        return read_options(self._given)

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        from tanist.spark.columns import COLUMNS, ddl  # noqa: PLC0415

        return ddl(COLUMNS, with_properties=self._options.include_properties)

    def reader(self, schema: StructType) -> DataSourceReader:
        from tanist.spark.rocketmq.source import RocketMQReader  # noqa: PLC0415

        return RocketMQReader(self._options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name.
        from tanist.spark.rocketmq.stream_source import RocketMQStreamReader  # noqa: PLC0415

        return RocketMQStreamReader(self._options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from tanist.spark.sink.spark_writers import RocketMQWriter  # noqa: PLC0415

        return RocketMQWriter(self._given, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from tanist.spark.sink.spark_writers import RocketMQStreamWriter  # noqa: PLC0415

        return RocketMQStreamWriter(self._given, schema, overwrite=overwrite)
