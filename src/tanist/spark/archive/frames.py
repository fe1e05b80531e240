"""An archive as a DataFrame of Spark's, with the types that it has and not those that Spark guesses."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tanist.spark.archive.columns import ALL_COLUMNS
from tanist.spark.archive.folder import open_about
from tanist.spark.archive.layout import DATA
from tanist.spark.archive.records import DELTA
from tanist.spark.columns import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_archive(spark: "SparkSession", root: Path | str) -> "DataFrame":
    """All archived messages: ``topic``, ``date`` and the columns of the files.

    Spark guesses the types of columns that are in the names of folders: a topic that is called 2024 would be
    a number. So they are given, ours first. A Delta table knows its own; the session needs what
    ``archive.delta.settings_for`` says.
    """
    place, columns = Path(root) / DATA, ddl(ALL_COLUMNS, with_properties=True)
    if open_about(Path(root)).table_format != DELTA:
        found = spark.read.schema(columns).parquet(str(place))
    elif has_table(place):
        found = spark.read.format(DELTA).load(str(place))
    else:
        # PySpark tells no types of what frames are made of.
        session: Any = spark
        found = session.createDataFrame([], columns)
    return found.select(*(column.name for column in ALL_COLUMNS))


def has_table(place: Path) -> bool:
    """Whether Delta has made its table yet. Whoever makes an archive may end before that."""
    return (place / "_delta_log").exists()
