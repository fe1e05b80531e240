"""Where Spark finds the format ``rocketmq`` by itself: it looks into every module named ``pyspark_…``.

One of them that can not be imported breaks all lookups, those of others too. So nothing is imported here but
what Spark has anyway; the rest follows when the format is used.
"""

from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Messages pulled from brokers, Tanist's or RocketMQ's."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        from tanist.spark.rocketmq.options import read_options  # noqa: PLC0415

        super().__init__(options)
        self._options = read_options(dict(options))

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
