"""Both data sources and the sink with Apache RocketMQ: what its broker answers and takes, and what its files
hold while it runs."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
import pytest

from tanist.model.writes import WRITE_ID
from tanist.spark.arrow import RecordBatch
from tanist.spark.rebuild.job import rebuild
from tests.support.rocketmq.cluster import Broker, RocketMQ, body_of
from tests.support.spark_pulls import pull_rows
from tests.support.spark_stores import read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.partner("arrow", "java", "maven")

TOPIC = "SparkInterop"


def test_a_broker_of_rocketmq_and_its_files_tell_the_same(rocketmq_broker: tuple[RocketMQ, Broker]) -> None:
    rocketmq, broker = rocketmq_broker
    sent = rocketmq.produce(
        TOPIC, count=200, body_bytes=300, queues=(0, 1, 2), tags=("a", "b"), key_prefix="k"
    )
    namesrv = rocketmq.name_server

    pulled = pull_rows(namesrv, subscribe=TOPIC, minPartitions="8")
    read, broken = read_store(broker.store_dir, subscribed=(TOPIC,))
    walked, _ = read_store(broker.store_dir)

    assert sorted(row["body"] for row in pulled) == sorted(body_of(number, 300) for number in range(200))
    assert {row["msgId"] for row in pulled} == {one.message_id for one in sent}
    assert {row["brokerName"] for row in pulled} == {broker.name}
    for row in pulled:
        # The files do not tell whose they are, and only they can be broken.
        row["brokerName"], row["broken"] = None, None
    pulled.sort(key=lambda row: row["commitLogOffset"])
    assert (read, broken) == (pulled, [])
    assert [row for row in walked if row["topic"] == TOPIC] == pulled
    assert {row["tags"] for row in pull_rows(namesrv, subscribe=TOPIC, tags="b")} == {"b"}
    assert len(pull_rows(namesrv, subscribe=TOPIC, sqlFilter="TAGS = 'a'")) == 100


def test_the_queues_of_a_store_of_rocketmq_are_built_again_as_it_built_them(
    rocketmq_broker: tuple[RocketMQ, Broker], tmp_path: Path
) -> None:
    rocketmq, broker = rocketmq_broker
    topic = "SparkRebuild"
    rocketmq.produce(topic, count=100, body_bytes=100, queues=(0, 1), tags=("a", "b"), key_prefix="k")
    # What it answers is in its queues, and those are files that it has mapped.
    assert len(pull_rows(rocketmq.name_server, subscribe=topic)) == 100

    rebuild(str(broker.store_dir), str(tmp_path / "built"))

    for queue_id in ("0", "1"):
        theirs, ours = (
            {path.name: path.read_bytes() for path in (root / "consumequeue" / topic / queue_id).iterdir()}
            for root in (broker.store_dir, tmp_path / "built")
        )
        assert ours == theirs


@pytest.mark.partner("spark")
@pytest.mark.takes(20)
def test_what_is_written_again_is_there_twice_until_its_repeats_are_dropped(
    rocketmq_broker: tuple[RocketMQ, Broker],
    session: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415 - it may not be installed.

    from tanist.spark.ledger.dedup import dedup  # noqa: PLC0415
    from tanist.spark.sink import spark_writers  # noqa: PLC0415

    rocketmq, _ = rocketmq_broker
    topic, count = "SparkWritten", 50
    rocketmq.produce(topic, count=1, body_bytes=10, queues=(0, 1, 2))
    schema = StructType([StructField("body", StringType()), StructField("tags", StringType())])
    given = {"namesrv": rocketmq.name_server, "topic": topic, "queryId": "twice"}
    # Without tasks of Spark's, whose processes have a log of their own.
    monkeypatch.setattr(spark_writers, "_context", lambda: SimpleNamespace(partitionId=lambda: 0))

    for _ in range(2):
        writer = spark_writers.RocketMQWriter(given, schema, overwrite=False)
        writer.commit([writer.write(iter([rows_of(count)]))])

    assert "batch written at least once query=twice batch=0" in caplog.text
    asked = {"subscribe": topic, "tags": "a"}
    names = Counter(dict(row["properties"])[WRITE_ID] for row in pull_rows(rocketmq.name_server, **asked))
    assert (len(names), set(names.values())) == (count, {2})
    options = asked | {"namesrv": rocketmq.name_server, "includeProperties": "true"}
    written = session.read.format("rocketmq").options(**options).load()
    report = dedup(written, to_parquet=str(tmp_path / "once"))
    assert (report.rows, report.kept, report.repeats) == (2 * count, count, count)
    left = session.read.parquet(str(tmp_path / "once")).select("body").collect()
    assert sorted(bytes(row["body"]).decode() for row in left) == sorted(f"row {n}" for n in range(count))


def rows_of(count: int) -> RecordBatch:
    rows = {"body": [f"row {number}" for number in range(count)], "tags": ["a"] * count}
    return pa.record_batch(rows)  # pyright: ignore[reportUnknownVariableType]
