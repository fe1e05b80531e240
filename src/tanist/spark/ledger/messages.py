"""The messages of a topic as a frame, from an archive or from its brokers."""

from typing import TYPE_CHECKING

from tanist.admin.asking import Access
from tanist.spark.access import cluster_options
from tanist.spark.archive.frames import read_archive
from tanist.spark.ledger.deliveries import from_traces, given

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def messages_of(
    spark: "SparkSession",
    topic: str,
    *,
    namesrv: str,
    archive: "Path | str | None",
    access: Access | None = None,
) -> "DataFrame":
    if archive is not None:
        found = read_archive(spark, archive)
        return found.where(found["topic"] == topic)
    options = cluster_options(namesrv, access) | {"subscribe": topic, "includeProperties": "true"}
    return spark.read.format("rocketmq").options(**options).load()


def deliveries_of(
    spark: "SparkSession",
    *,
    namesrv: str,
    traces: str | None,
    path: str | None,
    access: Access | None = None,
) -> "DataFrame | None":
    """What consumers told, by a topic of traces or in Parquet; None if by neither."""
    if traces is not None:
        return from_traces(messages_of(spark, traces, namesrv=namesrv, archive=None, access=access))
    return None if path is None else given(spark.read.parquet(path))
