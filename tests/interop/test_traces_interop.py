"""Stock clients of both lines that trace their messages find a topic for that."""

from pathlib import Path

import pytest

from tests.support.rocketmq.stock_client import PushConsumer, StockClients
from tests.support.site import Site, bodies, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.topics import create_topic

pytestmark = pytest.mark.partner("java", "maven")

TRACES = "RMQ_SYS_TRACE_TOPIC"


def test_the_traces_of_producer_and_consumer_are_kept(site: Site) -> None:
    topic = site.topic("t")
    with (
        site.clients.producer(site.name_server, isTraced=True) as producer,
        site.clients.push_consumer(site.name_server, site.topic("g"), topic, isTraced=True) as consumer,
    ):
        sent = producer.send(topic, numbered(5))
        consumer.rebalance()
        assert bodies(consumer.received(5)) == bodies(numbered(5))
        with site.clients.push_consumer(site.name_server, site.topic("traces"), TRACES) as traces:
            for one in sent:
                wait_until(lambda one=one: is_traced(traces, one.message_id))


def test_the_topic_of_traces_is_there_from_the_start_where_topics_do_not_come_by_themselves(
    clients: StockClients, own_names: NameServerProcess, tmp_path: Path
) -> None:
    settings = {"autoCreateTopicEnable": "false", "traceTopicEnable": "true", "msgTraceTopicName": "Traces"}
    with BrokerProcess(tmp_path / "broker", own_names.address, **settings) as broker:
        create_topic(broker.address, "T")
        with (
            clients.push_consumer(own_names.address, "looks", "Traces") as traces,
            clients.producer(own_names.address, isTraced=True, traceTopic="Traces") as producer,
        ):
            (sent,) = producer.send("T", numbered(1))
            wait_until(lambda: any(sent.message_id.encode() in one.body for one in traces.received(0)))


def is_traced(traces: PushConsumer, message_id: str) -> bool:
    """Whether its sending, and the begin and the end of its consumption are told."""
    kinds: set[bytes] = set()
    for one in traces.received(0):
        kinds |= {line.split(b"\x01")[0] for line in one.body.split(b"\x02") if message_id.encode() in line}
    return kinds == {b"Pub", b"SubBefore", b"SubAfter"}
