"""An archive as a DataFrame of Spark's, with the types that it has and not those that Spark guesses."""

from pathlib import Path
from typing import TYPE_CHECKING

from tanist.spark.archive.columns import ALL_COLUMNS
from tanist.spark.archive.folder import open_about
from tanist.spark.archive.layout import DATA
from tanist.spark.columns import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_archive(spark: "SparkSession", root: Path | str) -> "DataFrame":
    """All archived messages: ``topic``, ``date`` and the columns of the files.

    Spark guesses the types of columns that are in the names of folders: a topic that is called 2024 would be
    a number. So they are given, ours first.
    """
    open_about(Path(root))
    return (
        spark.read.schema(ddl(ALL_COLUMNS, with_properties=True))
        .parquet(str(Path(root) / DATA))
        .select(*(column.name for column in ALL_COLUMNS))
    )
