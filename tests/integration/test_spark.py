"""The data sources in a real Spark, all in one session: to start one takes longer than what is asked of it.

One test, so that the workers of a parallel run do not start a session each; every check is a subtest of it.
Jobs have a session of their own, in test_spark_jobs.py, so that two workers share the time.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tanist.spark.progress import Progress
from tanist.spark.running import on_spark
from tanist.sync import Message, Producer
from tanist.testing import EmbeddedBroker
from tests.support.messages import SMALL, TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.partner("spark"), pytest.mark.timeout(600), pytest.mark.takes(60)]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def a_whole_store_is_read_in_parallel(spark: "SparkSession", folder: Path) -> None:
    frame = spark.read.format("commitlog").option("minPartitions", 4).load(str(folder / "store"))

    rows = {row["msgId"]: row for row in frame.collect()}

    assert sorted(rows) == sorted(f"U{number}" for number in range(60))
    row = rows["U7"]
    assert (row["topic"], row["queueId"], row["keys"], row["tags"]) == (TOPIC, 1, "k7", "odd")
    assert bytes(row["body"]).startswith(b"message 7 ")


def spark_finds_the_format_by_itself(spark: "SparkSession", folder: Path) -> None:
    """Through the module ``pyspark_commitlog``, in a session that was told nothing."""
    other = spark.newSession()
    other.sql(f"CREATE TEMPORARY VIEW messages USING commitlog OPTIONS (path '{folder / 'store'}')")

    assert other.sql("SELECT max(queueOffset) AS last FROM messages WHERE topic = 'TopicB'").first() == (9,)


def ranges_of_a_store_are_options(spark: "SparkSession", folder: Path) -> None:
    ranges = {
        "subscribe": "TopicB",
        "queueIds": "1,7",
        "startingQueueOffset": 2,
        "endingQueueOffset": 5,
        "startingTimestamp": 1_000_000_000_000,
    }
    frame = spark.read.format("commitlog").options(**ranges).load(str(folder / "store"))

    found = [(row["topic"], row["queueId"], row["queueOffset"]) for row in frame.drop("body").collect()]

    assert sorted(found) == [("TopicB", 1, offset) for offset in (2, 3, 4)]


def filters_of_one_query_lose_no_rows_of_another(spark: "SparkSession", folder: Path) -> None:
    lose_no_rows(spark, {"format": "commitlog", "path": str(folder / "store"), "subscribe": "TopicB"})


def lose_no_rows(spark: "SparkSession", source: dict[str, str]) -> None:
    """Queries over one frame of two queues with ten messages each.

    With the setting, all that is made of a frame shares a plan of its source in the versions of Spark that
    we know.
    """
    spark.conf.set(PUSHDOWN, "true")
    frame = spark.read.load(**source)
    first, second = frame.where("queueId = 0"), frame.where("queueId = 1")

    assert first.count() == 10
    assert frame.count() == 20
    assert sorted(row["queueId"] for row in first.union(second).select("queueId").collect()) == [
        *[0] * 10,
        *[1] * 10,
    ]
    assert first.alias("a").join(second.alias("b"), "queueOffset").count() == 10
    assert (
        frame.select("topic", "queueOffset")
        .join(frame.select("queueId", "queueOffset"), "queueOffset")
        .count()
        == 40
    )
    spark.conf.unset(PUSHDOWN)


def a_schema_chooses_the_columns(spark: "SparkSession", folder: Path) -> None:
    schema = "properties map<string,string>, queueOffset bigint"
    frame = spark.read.format("commitlog").schema(schema).load(str(folder / "store"))

    assert frame.columns == ["properties", "queueOffset"]
    assert frame.where("properties['UNIQ_KEY'] = 'U0'").collect() == [
        ({"KEYS": "k0", "TAGS": "even", "UNIQ_KEY": "U0"}, 0)
    ]


def broken_records_are_rows_that_say_so(spark: "SparkSession", folder: Path) -> None:
    shutil.copytree(folder / "store", folder / "broken")
    log = folder / "broken" / "commitlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    data[95] ^= 1
    log.write_bytes(data)
    frame = spark.read.format("commitlog").load(str(folder / "broken"))

    found = frame.where("broken IS NOT NULL").select("commitLogOffset", "broken").collect()

    assert found == [(0, "the body does not match its checksum")]
    with pytest.raises(Exception, match="log_offset=0: the body does not match its checksum"):
        spark.read.format("commitlog").option("mode", "FAILFAST").load(str(folder / "broken")).count()


def what_is_wrong_is_said_when_the_source_is_named(spark: "SparkSession", folder: Path) -> None:
    with pytest.raises(Exception, match="there is no such folder"):
        spark.read.format("commitlog").load(str(folder / "none"))
    with pytest.raises(Exception, match="there is no option subscrib; did you mean subscribe"):
        spark.read.format("commitlog").option("subscrib", TOPIC).load(str(folder / "store"))


def brokers_are_read_in_batches(spark: "SparkSession", folder: Path) -> None:
    with EmbeddedBroker(topics={"Orders": 2}) as broker:
        send(broker.namesrv, "Orders", range(30))
        given = {"namesrv": broker.namesrv, "subscribe": "Orders"}
        orders = spark.read.format("rocketmq").options(**given).load()

        several = spark.read.format("rocketmq").options(**given, minPartitions=4, includeProperties="true")
        rows = several.load().collect()

        assert sorted(int(row["properties"]["n"]) for row in rows) == list(range(30))
        assert {row["brokerName"] for row in rows} == {broker.broker_name}
        # In a session that was told nothing Spark finds the format by itself, through pyspark_rocketmq.
        other = spark.newSession()
        options = ", ".join(f"{name} '{value}'" for name, value in given.items())
        other.sql(f"CREATE TEMPORARY VIEW orders USING rocketmq OPTIONS ({options})")
        assert other.sql("SELECT count(*) FROM orders").first() == (30,)
        # What comes later is read by who asks for it anew, and not by the frame that was read already.
        assert orders.count() == 30
        send(broker.namesrv, "Orders", range(30, 40))
        assert orders.where("queueId = 1").count() == 15
        assert spark.read.format("rocketmq").options(**given).load().count() == 40


def filters_of_one_query_lose_no_rows_of_another_from_brokers(spark: "SparkSession", folder: Path) -> None:
    with EmbeddedBroker(topics={"Orders": 2}) as broker:
        send(broker.namesrv, "Orders", range(20))
        lose_no_rows(spark, {"format": "rocketmq", "namesrv": broker.namesrv, "subscribe": "Orders"})


def a_stream_goes_on_where_it_was_without_loss_or_duplicates(spark: "SparkSession", folder: Path) -> None:
    from tests.support.spark_pulls import pull_rows  # noqa: PLC0415 - it needs what may not be installed.

    checkpoint, parquet = folder / "checkpoint", str(folder / "parquet")

    def run(namesrv: str) -> "StreamingQuery":
        stream = spark.readStream.format("rocketmq").options(
            namesrv=namesrv,
            subscribePattern="Orders.*",
            startingOffsets="earliest",
            maxOffsetsPerTrigger=20,
            group="archive",
            commitOffsets="true",
        )
        written = stream.load().writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        for is_last_try in (False, False, True):
            query = written.trigger(availableNow=True).start(parquet)
            try:
                query.awaitTermination()
            except Exception as error:
                # Spark gives the process of a stream ten seconds to start, and no setting changes that.
                if is_last_try or "Python worker failed to connect back" not in str(error):
                    raise
            else:
                return query
        raise AssertionError("not reached")

    with EmbeddedBroker(topics={"Orders": 2}) as broker:
        send(broker.namesrv, "Orders", range(30))
        first = run(broker.namesrv)
        assert len(first.recentProgress) >= 2
        assert all(progress["numInputRows"] <= 21 for progress in first.recentProgress)
        # The group has followed: what it has not read yet is nothing, though the last batch has no next.
        assert pull_rows(broker.namesrv, subscribe="Orders", group="archive", startingOffsets="group") == []

        # As if it was killed after the last batch was written and before that was noted.
        last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdecimal())
        for name in (f"{last}", f".{last}.crc"):
            (checkpoint / "commits" / name).unlink(missing_ok=True)
        send(broker.namesrv, "Orders", range(30, 40))
        send(broker.namesrv, "OrdersOfLater", range(40, 45))
        run(broker.namesrv)
        assert numbers_in(spark.read.parquet(parquet)) == list(range(45))


def a_stream_that_was_killed_goes_on_without_loss_or_duplicates(spark: "SparkSession", folder: Path) -> None:
    """In a process of its own, which is killed with all its children in the middle of a batch."""
    from tests.support.spark_stream import start_stream  # noqa: PLC0415 - it may not be installed.

    checkpoint, parquet = folder / "killed-checkpoint", folder / "killed"
    with EmbeddedBroker(topics={"Orders": 2}) as broker:
        send(broker.namesrv, "Orders", range(160))
        command = [sys.executable, "-m", "tests.support.spark_stream", broker.namesrv, checkpoint, parquet]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], start_new_session=True)
        try:
            while not (checkpoint / "commits" / "1").exists():
                assert process.poll() is None
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert not (checkpoint / "commits" / "7").exists()
        start_stream(spark, broker.namesrv, checkpoint, parquet).awaitTermination()

        assert numbers_in(spark.read.parquet(str(parquet))) == list(range(160))


def two_stores_are_audited(spark: "SparkSession", folder: Path) -> None:
    from tanist.spark.audit.job import audit  # noqa: PLC0415 - it may not be installed.

    shutil.copytree(folder / "store", folder / "copy")
    stores = (str(folder / "store"), str(folder / "copy"))
    said: list[Progress] = []

    found = audit(*stores, run=on_spark(spark, said.append), settings=SMALL)

    assert (found.is_equal, found.index_problems, found.offset_problems) == (True, [], [])
    ends = [(one.bytes, one.left_bytes) for one in said if one.left_parts == 0 and one.left_bytes is not None]
    assert ends[-1] == (2 * (found.log_end - found.log_start), 0)
    assert all(one.left_parts is not None for one in said)


def the_indexes_of_a_store_are_built_again(spark: "SparkSession", folder: Path) -> None:
    from tanist.spark.rebuild.job import rebuild  # noqa: PLC0415 - it may not be installed.

    found = rebuild(
        str(folder / "store"), str(folder / "built"), settings=SMALL, shares=2, run=on_spark(spark)
    )

    assert (found.record_count, found.queue_count) == (60, 4)
    queues = [
        root / "consumequeue" / "TopicB" / "0" / ("0" * 20) for root in (folder / "store", folder / "built")
    ]
    assert queues[0].read_bytes() == queues[1].read_bytes()


def send(namesrv: str, topic: str, numbers: range) -> None:
    with Producer(group="test", namesrv=namesrv) as producer:
        for number in numbers:
            producer.send(Message(topic, f"message {number}".encode(), properties={"n": str(number)}))


def numbers_in(frame: "DataFrame") -> list[int]:
    """The numbers of the messages, which their bodies tell."""
    return sorted(int(bytes(row["body"]).split()[1]) for row in frame.select("body").collect())


CHECKS: tuple[Callable[["SparkSession", Path], None], ...] = (
    a_whole_store_is_read_in_parallel,
    spark_finds_the_format_by_itself,
    ranges_of_a_store_are_options,
    filters_of_one_query_lose_no_rows_of_another,
    a_schema_chooses_the_columns,
    broken_records_are_rows_that_say_so,
    what_is_wrong_is_said_when_the_source_is_named,
    brokers_are_read_in_batches,
    filters_of_one_query_lose_no_rows_of_another_from_brokers,
    a_stream_goes_on_where_it_was_without_loss_or_duplicates,
    a_stream_that_was_killed_goes_on_without_loss_or_duplicates,
    two_stores_are_audited,
    the_indexes_of_a_store_are_built_again,
)


def test_in_one_session(session: "SparkSession", tmp_path: Path, subtests: pytest.Subtests) -> None:
    from tests.support import spark_filters  # noqa: PLC0415 - it needs what may not be installed.
    from tests.support.spark_stores import fill_store  # noqa: PLC0415
    from tests.support.spark_stream_checks import STREAM_CHECKS  # noqa: PLC0415

    fill_store(tmp_path / "store")
    of_spark = spark_filters.a_source_that_takes_filters_still_loses_rows_of_other_queries
    for check in (*CHECKS, of_spark, *STREAM_CHECKS):
        with subtests.test(check.__name__):
            check(session, tmp_path)
