"""Stock clients of both lines get on with a broker that fails them, and with a listener that is slow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.common import TopicRequest
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Producer, StockClients
from tests.support.site import Site, bodies, duplicate_count, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.topics import create_topic, route_brokers
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

TOPIC_NOT_EXIST = 17


@pytest.fixture
def pair(own_names: NameServerProcess, tmp_path: Path) -> Iterator[tuple[BrokerProcess, BrokerProcess]]:
    """Two brokers of one cluster, and a topic that clients find at both."""
    with (
        BrokerProcess(tmp_path / "a", own_names.address, name="broker-a") as first,
        BrokerProcess(tmp_path / "b", own_names.address, name="broker-b") as second,
    ):
        # Were it made by the first messages, a client that looks between two of them would see one broker.
        for broker in (first, second):
            create_topic(broker.address, "T")
        wait_until(lambda: route_brokers(own_names.address, "T") == {"broker-a", "broker-b"})
        yield first, second


def send_to_both(producer: Producer) -> None:
    """From now on the producer takes both brokers in turn."""
    sent = producer.send("T", numbered(16))
    assert {one.broker_name for one in sent} == {"broker-a", "broker-b"}


def test_a_producer_that_retries_does_without_a_broker_that_is_gone(
    clients: StockClients, own_names: NameServerProcess, pair: tuple[BrokerProcess, BrokerProcess]
) -> None:
    with (
        clients.producer(own_names.address) as producer,
        clients.producer(own_names.address, retries=0) as stubborn,
    ):
        send_to_both(producer)
        send_to_both(stubborn)
        pair[1].kill()
        sent = producer.send("T", numbered(20, start=16))
        # Without retries some sends fail: those above did not come through by chance.
        with pytest.raises(StepFailed):
            stubborn.send("T", numbered(20))
        assert {one.broker_name for one in sent} == {"broker-a"}
        with clients.push_consumer(own_names.address, "G", "T") as consumer:
            wait_until(lambda: bodies(consumer.received(0)) >= bodies(numbered(20, start=16)))


def test_a_producer_that_retries_does_without_a_broker_that_refuses(
    clients: StockClients, own_names: NameServerProcess, pair: tuple[BrokerProcess, BrokerProcess]
) -> None:
    with (
        clients.producer(own_names.address) as producer,
        clients.producer(own_names.address, retries=0) as stubborn,
    ):
        send_to_both(producer)
        send_to_both(stubborn)
        pair[1].stop()
        pair[1].restart(autoCreateTopicEnable="false")
        with Wire(pair[1].address) as wire:
            delete = Command.request(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic="T"))
            assert wire.ask(delete).code == ResponseCode.SUCCESS
        sent = producer.send("T", numbered(20))
        with pytest.raises(StepFailed) as refused:
            stubborn.send("T", numbered(20))
    assert {one.broker_name for one in sent} == {"broker-a"}
    assert refused.value.code == TOPIC_NOT_EXIST


def test_a_slow_listener_holds_its_client_back_and_gets_everything(site: Site) -> None:
    topic = group = site.topic("t")
    messages = numbered(400)
    with site.clients.producer(site.name_server, topicQueues=2) as producer:
        producer.send(topic, messages, mode="batch")
        with site.clients.push_consumer(
            site.name_server, group, topic, pullThreshold=5, consumeMs=20
        ) as consumer:
            received = consumer.received(len(messages))
    assert bodies(received) == bodies(messages)
    assert duplicate_count(received) == 0
