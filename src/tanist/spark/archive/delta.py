"""An archive as a Delta table: a batch that counts is appended by Spark, with Delta's jars.

What tasks wrote aside is read again and written to the table, in one commit that bears the archive's id and
the batch's number. Delta does not do the same number twice: so who was killed before he knew that it was
done has it done again, and nothing is there twice.

PySpark does not bring these jars, and each version of them is for one version of Spark. They are looked for
on this machine before anything is started, and never fetched.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from tanist.spark.archive.catalogue import Catalogue, make_entries
from tanist.spark.archive.columns import ALL_COLUMNS, DATE, FILE_COLUMNS, TOPIC
from tanist.spark.archive.compaction import CompactionReport
from tanist.spark.archive.folder import Append, open_about
from tanist.spark.archive.frames import has_table, read_archive
from tanist.spark.archive.layout import DATA, topic_and_day
from tanist.spark.archive.records import DELTA, Run
from tanist.spark.columns import ddl
from tanist.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA_VERSION = "4.4.0"
SPARKS = ("4.2",)
"""The versions of Spark that this version of Delta is made for."""
_JARS, _PACKAGES = "spark.jars", "spark.jars.packages"
_EXTENSION: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta looks through its list of files in fifty tasks for each commit; this list is short.
    "spark.databricks.delta.snapshotPartitions": "2",
}
_FILE = "fileOfRow"


def settings_for(root: Path | None, given: Mapping[str, str]) -> dict[str, str]:
    """What a session needs to read an archive that may be a Delta table, beside what was given for it."""
    is_table = root is not None and open_about(root).table_format == DELTA
    return delta_settings(given) if is_table else dict(given)


def delta_settings(
    given: Mapping[str, str], *, spark_version: str | None = None, home: Path | None = None
) -> dict[str, str]:
    """What a session needs for Delta, beside what was given for it: its jars, and that it is used.

    Jars that are given are taken as they are. Else they are looked for in Spark's own folder and in Maven's
    local repository; one clear error if they are in neither.
    """
    settings = {**_EXTENSION, **given}
    if _JARS in given or _PACKAGES in given:
        return settings
    series = ".".join((spark_version or version("pyspark")).split(".")[:2])
    if series not in SPARKS:
        raise SparkError(
            f"there is no Delta for Spark {series} that is known to work: {_DELTA_VERSION} is for "
            f"{', '.join(SPARKS)}; use that Spark, or --format parquet, or name jars with --conf {_JARS}=…"
        )
    artifacts = (f"delta-spark_{series}_2.13", "delta-storage")
    repository = (home or Path.home()) / ".m2" / "repository" / "io" / "delta"
    places = {f"{name}-{_DELTA_VERSION}.jar": repository / name / _DELTA_VERSION for name in artifacts}
    own = _spark_jars()
    if all((own / jar).exists() for jar in places):
        return settings
    found = [place / jar for jar, place in places.items()]
    if missing := [str(path) for path in found if not path.exists()]:
        fetched = f"io.delta:{artifacts[0]}:{_DELTA_VERSION}"
        raise SparkError(
            f"the jars of Delta are not on this machine: looked for {', '.join(places)} in {own}, and for "
            f"{', '.join(missing)}. `mvn dependency:get -Dartifact={fetched}` brings them there; or "
            f"name them, --conf {_JARS}=a.jar,b.jar, or have Spark fetch them, --conf {_PACKAGES}={fetched}"
        )
    return settings | {_JARS: ",".join(map(str, found))}


def _spark_jars() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def appended_by(spark: "SparkSession", root: Path) -> Append:
    """Appends batches to the table of an archive, which is made if it is not there yet."""
    about, table = open_about(root), str(root / DATA)
    # PySpark tells no types of what frames are made of and written with.
    session: Any = spark
    empty = session.createDataFrame([], ddl(ALL_COLUMNS, with_properties=True))
    empty.write.format(DELTA).mode("ignore").partitionBy(TOPIC, DATE).save(table)

    def append(number: int, files: Mapping[Path, str]) -> None:
        places = session.createDataFrame(
            [(path.name, *_partition(place)) for path, place in files.items()],
            f"{_FILE} string, {TOPIC} string, {DATE} date",
        )
        read = session.read.schema(ddl(FILE_COLUMNS, with_properties=True)).parquet(*map(str, files))
        named = read.select("*", read["_metadata.file_name"].alias(_FILE)).join(
            places.hint("broadcast"), _FILE
        )
        (
            named.select(*(column.name for column in ALL_COLUMNS))
            .write.format(DELTA)
            .mode("append")
            .option("txnAppId", about.archive_id)
            .option("txnVersion", number)
            .save(table)
        )

    return append


def _partition(place: str) -> tuple[str, Any]:
    found = topic_and_day(PurePath(place).parent)
    assert found is not None
    return found


def optimize(spark: "SparkSession", root: Path) -> CompactionReport:
    """Have Delta make few large files of many small ones. The old ones stay until it is told to vacuum."""
    files_before, bytes_before = _size(spark, root)
    if has_table(root / DATA):
        _sql(spark, f"OPTIMIZE delta.`{root / DATA}`")
    files_after, bytes_after = _size(spark, root)
    return CompactionReport(
        archive=str(root),
        files_before=files_before,
        files_after=files_after,
        bytes_before=bytes_before,
        bytes_after=bytes_after,
    )


def _size(spark: "SparkSession", root: Path) -> tuple[int, int]:
    if not has_table(root / DATA):
        return 0, 0
    (detail,) = _sql(spark, f"DESCRIBE DETAIL delta.`{root / DATA}`")
    return detail["numFiles"], detail["sizeInBytes"]


def _sql(spark: Any, query: str, **frames: Any) -> list[Any]:
    """The rows of a query; of Spark's frames PySpark tells no types."""
    return spark.sql(query, **frames).collect()


_RUNS = """
    WITH placed AS (
        SELECT *, row_number() OVER (
            PARTITION BY topic, brokerName, queueId, queueOffset ORDER BY storeTimestamp
        ) AS copy FROM {messages}
    ), counted AS (
        SELECT *, queueOffset - row_number() OVER (
            PARTITION BY topic, brokerName, queueId, copy ORDER BY queueOffset
        ) AS run FROM placed
    )
    SELECT topic, brokerName, queueId, min(queueOffset) AS first, max(queueOffset) + 1 AS end,
        sum(storeSize) AS bytes, min(unix_millis(storeTimestamp)) AS firstMs,
        max(unix_millis(storeTimestamp)) AS lastMs
    FROM counted GROUP BY topic, brokerName, queueId, copy, run
"""


def table_catalogue(spark: "SparkSession", root: Path, *, topics: Iterable[str] | None = None) -> Catalogue:
    """What the table of an archive holds, by its rows: its files were written by Delta and do not say it."""
    from pyspark.sql import functions as fn  # noqa: PLC0415 - it may not be installed.

    columns = (TOPIC, "brokerName", "queueId", "queueOffset", "storeSize", "storeTimestamp")
    messages = read_archive(spark, root).select(*columns)
    if topics is not None:
        messages = messages.where(fn.col(TOPIC).isin(*topics))
    rows = _sql(spark, _RUNS, messages=messages)
    queues = make_entries((row["topic"], _run(row)) for row in rows)
    files, size_bytes = _size(spark, root)
    return Catalogue(
        archive=str(root),
        source=open_about(root).source,
        files=files,
        file_bytes=size_bytes,
        rows=sum(queue.rows for queue in queues),
        queues=queues,
    )


def _run(row: Any) -> Run:
    return Run(
        broker=row["brokerName"],
        queue_id=row["queueId"],
        first=row["first"],
        end=row["end"],
        bytes=row["bytes"],
        first_stored_ms=row["firstMs"],
        last_stored_ms=row["lastMs"],
    )
