"""Both data sources with Apache RocketMQ: what its broker answers, and what its files hold while it runs."""

from pathlib import Path

import pytest

from tanist.spark.rebuild.job import rebuild
from tests.support.rocketmq.cluster import Broker, RocketMQ, body_of
from tests.support.spark_pulls import pull_rows
from tests.support.spark_stores import read_store

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
