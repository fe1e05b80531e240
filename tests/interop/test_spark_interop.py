"""Both data sources with Apache RocketMQ: what its broker answers, and what its files hold while it runs."""

import pytest

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
