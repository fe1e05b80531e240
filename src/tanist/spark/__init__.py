"""Messages in Spark: data sources over a broker's files and over the wire, and the jobs built on them.

``register`` teaches a session of yours the formats, ``session`` makes one that knows them. Decoding and
planning are pure and know no Spark (``columns``, ``decoding``, ``properties``, ``making``); the sources are
shells around them, which Spark also finds by itself, as ``pyspark_commitlog`` and ``pyspark_rocketmq``.

Importing this package imports neither Spark nor Arrow: the command line asks it whether they are there.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ("commitlog", "rocketmq")
"""The names that ``spark.read.format`` knows after ``register``."""


def register(spark: "SparkSession") -> None:
    """Teach a session the formats of Tanist. Needed only where Spark can not find them by itself."""
    from pyspark_commitlog import DefaultSource as CommitLogSource  # noqa: PLC0415 - they import Spark.
    from pyspark_rocketmq import DefaultSource as RocketMQSource  # noqa: PLC0415

    spark.dataSource.register(CommitLogSource)
    spark.dataSource.register(RocketMQSource)


__all__ = ["FORMATS", "register"]
