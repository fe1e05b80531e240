"""Rows written to topics by a real Spark, all in one session, because to start one takes long."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from tanist.model.writes import WRITE_ID
from tanist.protocol.bodies.slave_consume import LedgerEntry, LedgerEvent
from tanist.sync import Message, Producer
from tanist.testing import EmbeddedBroker
from tests.support.topics import delete_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tanist.spark.replay.selecting import Wanted

pytestmark = [pytest.mark.partner("spark"), pytest.mark.timeout(600), pytest.mark.takes(60)]

TOPICS = (
    "Orders",
    "Keyed",
    "Streamed",
    "Killed",
    "Replayed",
    "Resumed",
    "Dirty",
    "Clean",
    "%RETRY%billing",
)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["SparkSession"]:
    from tanist.spark.session import spark_session  # noqa: PLC0415 - it may not be installed.
    from tests.support.spark_writes import SETTINGS  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    # A task may fail twice before its job does, and Spark tells of that.
    spark = spark_session("local[2,3]", settings={**SETTINGS, "spark.log.level": "OFF"})
    yield spark
    spark.stop()


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics=dict.fromkeys(TOPICS, 3)) as broker:
        yield broker


def rows_are_written_with_their_tags_keys_and_names(
    spark: "SparkSession", broker: EmbeddedBroker, _folder: Path
) -> None:
    frame = numbered(spark, 2000).selectExpr(
        "body",
        "'paid' AS tags",
        "concat('k', id) AS keys",
        "map('n', string(id), 'UNIQ_KEY', 'x') AS properties",
    )

    frame.write.format("rocketmq").options(namesrv=broker.namesrv, topic="Orders").mode("append").save()

    rows = read(spark, broker, "Orders").collect()
    assert sorted(int(row["properties"]["n"]) for row in rows) == list(range(2000))
    assert {row["queueId"] for row in rows} == {0, 1, 2}
    row = next(row for row in rows if row["keys"] == "k77")
    assert (bytes(row["body"]), row["tags"]) == (b"row 77", "paid")
    assert len({row["properties"][WRITE_ID] for row in rows}) == 2000
    assert len({row["msgId"] for row in rows}) == 2000


def a_sharding_key_keeps_its_rows_in_one_queue_and_in_order(
    spark: "SparkSession", broker: EmbeddedBroker, _folder: Path
) -> None:
    frame = numbered(spark, 300).repartition(1).sortWithinPartitions("id")
    keyed = frame.selectExpr("body", "string(id % 7) AS customer")

    options = {"namesrv": broker.namesrv, "topic": "Keyed", "shardingKey": "customer"}
    keyed.write.format("rocketmq").options(**options).mode("append").save()

    queues: dict[str, set[int]] = {}
    last: dict[str, int] = {}
    for row in read(spark, broker, "Keyed").orderBy("queueId", "queueOffset").collect():
        key = row["properties"]["__SHARDINGKEY"]
        queues.setdefault(key, set()).add(row["queueId"])
        number = int(bytes(row["body"]).split()[1])
        assert last.get(key, -1) < number
        last[key] = number
    assert len(queues) == 7
    assert all(len(found) == 1 for found in queues.values())


def a_stream_whose_tasks_die_and_whose_batch_is_repeated_is_written_once(
    spark: "SparkSession", broker: EmbeddedBroker, folder: Path
) -> None:
    from tests.support.spark_writes import STOPPED, start_writing  # noqa: PLC0415 - it may not be installed.

    numbered(spark, 1500).select("id").coalesce(1).write.parquet(str(folder / "in" / "a"))

    def run() -> None:
        start_writing(spark, broker.namesrv, "Streamed", folder, dies=True).awaitTermination()

    run()
    assert (folder / STOPPED).exists()
    assert numbers_in(read(spark, broker, "Streamed")) == list(range(1500))
    # As if it was killed after the last batch was written and before that was noted.
    commits = folder / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    numbered(spark, 1600).where("id >= 1500").select("id").write.parquet(str(folder / "in" / "b"))
    run()
    assert numbers_in(read(spark, broker, "Streamed")) == list(range(1600))


def a_stream_whose_driver_is_killed_in_the_middle_of_a_batch_is_written_once(
    spark: "SparkSession", broker: EmbeddedBroker, folder: Path
) -> None:
    from tests.support.spark_writes import STOPPED, start_writing  # noqa: PLC0415 - it may not be installed.

    killed = folder / "killed"
    numbered(spark, 1500).select("id").coalesce(1).write.parquet(str(killed / "in" / "a"))
    command = [sys.executable, "-m", "tests.support.spark_writes", broker.namesrv, "Killed", killed]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], start_new_session=True)
    try:
        while not (killed / STOPPED).exists():
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (killed / "checkpoint" / "commits" / "0").exists()
    assert 0 < read(spark, broker, "Killed").count() < 1500

    start_writing(spark, broker.namesrv, "Killed", killed, dies=True).awaitTermination()

    assert numbers_in(read(spark, broker, "Killed")) == list(range(1500))


def an_archive_is_replayed_once_however_often_that_is_asked(
    spark: "SparkSession", broker: EmbeddedBroker, folder: Path
) -> None:
    from pyspark.sql import functions as f  # noqa: PLC0415 - it may not be installed.

    from tanist.spark.archive.folder import new_about, open_for_writing  # noqa: PLC0415
    from tanist.spark.archive.frames import read_archive  # noqa: PLC0415
    from tanist.spark.archive.records import CLUSTER  # noqa: PLC0415
    from tanist.spark.replay.job import plan_replay, replay  # noqa: PLC0415

    archived = read(spark, broker, "Orders").withColumn("date", f.to_date("storeTimestamp"))
    with open_for_writing(folder / "archive", new_about(CLUSTER)):
        pass
    archived.write.mode("append").partitionBy("topic", "date").parquet(str(folder / "archive" / "data"))
    archive = read_archive(spark, str(folder / "archive"))
    for topic, group in (("Replayed", None), (None, "billing")):
        wanted = paid_orders(to_topic=topic, to_group=group)
        planned = plan_replay(archive, wanted, broker.namesrv)
        assert (planned.rows, planned.already_there, planned.expired) == (2000, 0, 0)
        assert planned.is_exactly_once
        for there in (0, 2000):
            done = replay(archive, wanted, broker.namesrv, rows_per_s=1_000_000)
            assert done.already_there == there
        again = read(spark, broker, wanted.target).collect()
        assert sorted(int(row["properties"]["n"]) for row in again) == list(range(2000))
        assert {row["properties"]["REPLAY_ID"] for row in again} == {wanted.replay_id}
        first = next(row for row in again if row["properties"]["n"] == "0")
        assert first["properties"]["REPLAY_OFFSET"].startswith(f"Orders/{broker.broker_name}/")
        assert first["properties"].get("RETRY_TOPIC") == (None if topic else "Orders")


def a_replay_goes_on_where_it_was_broken_off_and_writes_what_brokers_have_no_more(
    spark: "SparkSession", broker: EmbeddedBroker, folder: Path
) -> None:
    from tanist.spark.archive.frames import read_archive  # noqa: PLC0415 - it may not be installed.
    from tanist.spark.replay.job import plan_replay, replay  # noqa: PLC0415
    from tanist.spark.rocketmq.cluster import look_up  # noqa: PLC0415

    archive = read_archive(spark, str(folder / "archive"))
    wanted = paid_orders(to_topic="Resumed")

    def look_up_later(options: Any) -> list[Any]:
        return [replace(state, min_offset=100) for state in look_up(options)]

    # Queues are written in their order: it is as if the tasks ended behind the first one.
    there = replay(archive.where("queueId = 0"), wanted, broker.namesrv).rows
    with patch("tanist.spark.replay.job.look_up", look_up_later):
        done = replay(archive, wanted, broker.namesrv)

    assert 0 < there < 2000
    assert (done.rows, done.already_there, done.expired) == (2000, there, 300)
    again = read(spark, broker, "Resumed").collect()
    assert sorted(int(row["properties"]["n"]) for row in again) == list(range(2000))
    delete_topic(broker.address, broker.namesrv, "Orders")
    assert plan_replay(archive, wanted, broker.namesrv).expired == 2000


def repeats_are_dropped(spark: "SparkSession", broker: EmbeddedBroker, folder: Path) -> None:
    from tanist.spark.ledger.dedup import dedup  # noqa: PLC0415 - it may not be installed.

    with Producer(group="test", namesrv=broker.namesrv) as producer:
        for number in (*range(10), 3, 4, 4):
            name = {WRITE_ID: f"q/0/0/{number}"}
            producer.send(Message("Dirty", f"row {number}".encode(), properties=name))
    dirty = read(spark, broker, "Dirty")

    report = dedup(dirty, to_topic={"namesrv": broker.namesrv, "topic": "Clean"})

    assert (report.rows, report.kept, report.repeats) == (13, 10, 3)
    assert [(one.identity, one.count) for one in report.examples] == [("q/0/0/4", 3), ("q/0/0/3", 2)]
    assert numbers_in(read(spark, broker, "Clean")) == list(range(10))
    dedup(dirty, to_parquet=str(folder / "clean"))
    assert numbers_in(spark.read.parquet(str(folder / "clean"))) == list(range(10))


def the_books_say_what_is_lost_and_what_came_twice(
    spark: "SparkSession", broker: EmbeddedBroker, _folder: Path
) -> None:
    from tanist.spark.ledger.accounts import account, group_offsets  # noqa: PLC0415 - it may not be installed.
    from tanist.spark.ledger.deliveries import given  # noqa: PLC0415

    messages = read(spark, broker, "Clean")
    ids = sorted(row["msgId"] for row in messages.select("msgId").collect())
    at = datetime(2026, 11, 18, tzinfo=UTC)
    told = [("billing", one, at) for one in ids[1:]] + [("billing", ids[5], at + timedelta(seconds=9))]
    switch = LedgerEntry(
        at_ms=int(at.timestamp() * 1000) + 5,
        event=LedgerEvent.SWITCH,
        group="broker-a",
        term=2,
        broker="b",
        reason="the master is dead",
        duplicates={"billing": 4},
        duplicates_at_most=4,
    )
    offsets = group_offsets("Clean", ["billing"], broker.namesrv)
    assert set(offsets["billing"].values()) == {0}
    all_read = {"billing": dict.fromkeys(offsets["billing"], 100)}
    deliveries = given(spark.createDataFrame(told, "group string, msgId string, deliveredAt timestamp"))

    report = account(messages, deliveries, topic="Clean", offsets=all_read, entries=[switch])

    (group,) = report.groups
    assert (group.lost, group.twice, group.twice_at_most, group.waiting) == (1, 1, 4, 0)
    assert [one.msg_id for one in group.lost_messages] == [ids[0]]
    assert group.twice_messages[0].msg_id == ids[5]
    assert "SWITCH of broker-a in term 2: the master is dead" in (group.twice_messages[0].because or "")
    unread = account(messages, deliveries, topic="Clean", offsets=offsets, entries=[])
    assert (unread.groups[0].lost, unread.groups[0].waiting) == (0, 1)


def what_is_wrong_is_said_before_anything_is_written(
    spark: "SparkSession", broker: EmbeddedBroker, _folder: Path
) -> None:
    frame = numbered(spark, 10)
    good = {"namesrv": broker.namesrv, "topic": "Orders"}
    for options, rows, why in (
        (good | {"topik": "x"}, frame.select("body"), "there is no option topik; did you mean topic"),
        (good | {"topic": "Nowhere"}, frame.select("body"), "topic Nowhere does not exist"),
        (good, frame.selectExpr("body AS bodi"), "there is no column bodi; did you mean body"),
        (good, frame.selectExpr("id AS queueOffset"), "column body is missing"),
        (good, frame.selectExpr("id AS body"), "column body is bigint, and has to be binary or string"),
        (good | {"shardingKey": "custmer"}, frame.selectExpr("body"), "there is no column custmer"),
    ):
        with pytest.raises(Exception, match=why):
            rows.write.format("rocketmq").options(**options).mode("append").save()
    with pytest.raises(Exception, match="a topic can not be overwritten"):
        frame.select("body").write.format("rocketmq").options(**good).mode("overwrite").save()


def paid_orders(*, to_topic: str | None, to_group: str | None = None) -> "Wanted":
    """The replay of what was written and archived a moment ago."""
    from tanist.spark.replay.selecting import want  # noqa: PLC0415 - it may not be installed.

    now = datetime.now(UTC)
    return want(
        archive="a",
        topic="Orders",
        start=now - timedelta(hours=1),
        end=now,
        replay_id=None,
        tags=frozenset({"paid"}),
        to_topic=to_topic,
        to_group=to_group,
    )


def numbered(spark: "SparkSession", count: int) -> "DataFrame":
    return spark.range(count).selectExpr("id", "concat('row ', id) AS body")


def read(spark: "SparkSession", broker: EmbeddedBroker, topic: str) -> "DataFrame":
    options = {"namesrv": broker.namesrv, "subscribe": topic, "includeProperties": "true"}
    return spark.read.format("rocketmq").options(**options).load()


def numbers_in(frame: "DataFrame") -> list[int]:
    return sorted(int(bytes(row["body"]).split()[1]) for row in frame.select("body").collect())


CHECKS: tuple[Callable[["SparkSession", EmbeddedBroker, Path], None], ...] = (
    rows_are_written_with_their_tags_keys_and_names,
    a_sharding_key_keeps_its_rows_in_one_queue_and_in_order,
    a_stream_whose_tasks_die_and_whose_batch_is_repeated_is_written_once,
    a_stream_whose_driver_is_killed_in_the_middle_of_a_batch_is_written_once,
    an_archive_is_replayed_once_however_often_that_is_asked,
    repeats_are_dropped,
    the_books_say_what_is_lost_and_what_came_twice,
    what_is_wrong_is_said_before_anything_is_written,
    a_replay_goes_on_where_it_was_broken_off_and_writes_what_brokers_have_no_more,
)


def test_in_one_session(
    session: "SparkSession", broker: EmbeddedBroker, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for check in CHECKS:
        with subtests.test(check.__name__):
            check(session, broker, tmp_path)
