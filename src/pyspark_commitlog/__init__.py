"""Where Spark finds the format ``commitlog`` by itself: it looks into every module named ``pyspark_…``.

One of them that can not be imported breaks all lookups, those of others too. So nothing is imported here but
what Spark has anyway; the rest follows when the format is used.
"""

from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Messages from a store's files, Tanist's or RocketMQ's."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        from tanist.spark.commitlog.options import read_options  # noqa: PLC0415
        from tanist.spark.commitlog.planning import open_store  # noqa: PLC0415

        super().__init__(options)
        self._options = read_options(dict(options))
        # Whatever is wrong with the store is said when it is named, not when it is read.
        open_store(self._options.path).close()

    @classmethod
    def name(cls) -> str:
        return "commitlog"

    def schema(self) -> str:
        from tanist.spark.columns import FILE_COLUMNS, ddl  # noqa: PLC0415

        return ddl(FILE_COLUMNS, with_properties=self._options.include_properties)

    def reader(self, schema: StructType) -> DataSourceReader:
        from tanist.spark.commitlog.source import CommitLogReader  # noqa: PLC0415

        return CommitLogReader(self._options, schema)
