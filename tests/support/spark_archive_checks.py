"""What an archive and the jobs over it do in a real Spark: checks for the session of ``test_spark``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tanist.spark.archive.compaction import compact
from tanist.spark.archive.folder import new_about, open_for_writing
from tanist.spark.archive.frames import read_archive
from tanist.spark.archive.from_cluster import ClusterSource
from tanist.spark.archive.from_store import StoreSource
from tanist.spark.archive.job import archive
from tanist.spark.archive.records import CLUSTER, STORE
from tanist.spark.lag.latency import latencies
from tanist.spark.lag.samples import Sample
from tanist.spark.reset_plan import Archived, lookup_in
from tanist.spark.running import on_spark
from tanist.sync import Message, Producer
from tanist.testing import EmbeddedBroker
from tests.support.archives import archive_in_steps, files_in, rows_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def a_store_is_archived_by_spark_and_read_by_everybody(spark: "SparkSession", folder: Path) -> None:
    root = folder / "archive"
    with open_for_writing(root, new_about(STORE)) as opened:
        archive(opened, StoreSource(str(folder / "store"), broker="broker-a"), on_spark(spark), tasks=2)

    frame = read_archive(spark, root)
    assert frame.where("hash = unhex(sha2(body, 256))").count() == len(rows_in(root)) == 60
    assert [name for name, _ in frame.dtypes[:4]] == ["topic", "date", "brokerName", "queueId"]
    assert frame.where("date = '2023-11-14' AND properties['UNIQ_KEY'] = 'U7'").count() == 1


def brokers_are_archived_and_a_day_is_compacted_by_spark(spark: "SparkSession", folder: Path) -> None:
    root = folder / "of-brokers"
    with EmbeddedBroker(topics={"2024": 2}) as broker:
        with Producer(group="test", namesrv=broker.namesrv) as producer:
            for number in range(30):
                producer.send(Message("2024", f"message {number}".encode()))
        source = ClusterSource(namesrv=broker.namesrv, topics=["2024"], batch_messages=12, until_now=True)
        with open_for_writing(root, new_about(CLUSTER, clusters=source.clusters())) as opened:
            assert opened.about.clusters == ["DefaultCluster"]
            archive(opened, source, on_spark(spark), tasks=2)

    compact(root, on_spark(spark))

    assert len(files_in(root)) == 1
    # A topic that looks like a number is none.
    rows = read_archive(spark, root).select("topic", "body").collect()
    assert sorted(int(bytes(row["body"]).split()[1]) for row in rows) == list(range(30))
    assert {row["topic"] for row in rows} == {"2024"}


def what_only_an_archive_has_is_found_by_time(spark: "SparkSession", folder: Path) -> None:
    root = archive_in_steps(folder / "expired")
    stored_ms = int(rows_in(root)[0]["storeTimestamp"].timestamp() * 1000)
    queue = ("Topic0", "broker-a", 1)

    found = lookup_in(spark, root)({queue: 7, ("Topic0", "broker-b", 0): 5}, stored_ms)

    assert found == {queue: Archived(first=0, end=7, rows=7)}
    assert lookup_in(spark, root)({queue: 7}, stored_ms + 1) == {}


def samples_and_an_archive_tell_how_long_messages_took(spark: "SparkSession", folder: Path) -> None:
    root = archive_in_steps(folder / "timed")
    stored_ms = int(rows_in(root)[0]["storeTimestamp"].timestamp() * 1000)
    before = Sample(
        at_ms=stored_ms,
        group="billing",
        topic="Topic0",
        broker="broker-a",
        queue_id=0,
        max_offset=10,
        consumer_offset=0,
    )
    after = msgspec.structs.replace(before, at_ms=stored_ms + 1000, consumer_offset=10)

    (found,) = latencies(spark, root, [before, after])

    assert (found.group, found.topic, found.messages) == ("billing", "Topic0", 10)
    # One every 100 ms: half of them within 500.
    assert found.stored_to_consumed_ms[0] == 500
    assert found.stored_to_consumed_ms[2] == 1000


ARCHIVE_CHECKS: tuple[Callable[["SparkSession", Path], None], ...] = (
    a_store_is_archived_by_spark_and_read_by_everybody,
    brokers_are_archived_and_a_day_is_compacted_by_spark,
    what_only_an_archive_has_is_found_by_time,
    samples_and_an_archive_tell_how_long_messages_took,
)
