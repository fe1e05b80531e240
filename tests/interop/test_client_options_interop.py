"""Options of stock clients that change what they say to a broker. Each is heard, and what it is for works."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tanist.model.message import COMPRESSION_MASK, SysFlag
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.client import ConsumerConnections, HeartbeatData, decode_heartbeat
from tanist.protocol.codes import HeaderEncoding
from tanist.protocol.compression import Compression
from tanist.protocol.headers.common import ConsumerGroupRequest
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.send import SendMessageRequestV2
from tanist.protocol.java_json import decode_java_json
from tests.support import partners
from tests.support.overheard import OverheardBroker
from tests.support.requests import SUSPEND, send_request
from tests.support.rocketmq.jars import CLIENT_LINES, QUICK_START
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import BROKER, Site, bodies, numbered, wait_until
from tests.support.tanist_cluster import NameServerProcess
from tests.support.wire import Wire

pytestmark = [pytest.mark.partner("java", "maven"), pytest.mark.takes(35)]

NEW_LINE = "5.3.3"
TOPIC_NOT_EXIST = 17
OLD_WAYS = ("-Drocketmq.serialize.type=ROCKETMQ", "-Dorg.apache.rocketmq.client.sendSmartMsg=false")
"""Headers that are no JSON, and sends whose fields have their long names."""
SQUEEZABLE = Outgoing(b"squeeze me " * 4096)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServerProcess]:
    with NameServerProcess(tmp_path_factory.mktemp("ns")) as names:
        yield names


@pytest.fixture(scope="module")
def broker(names: NameServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverheardBroker]:
    with OverheardBroker(tmp_path_factory.mktemp("broker"), names.address) as broker:
        yield broker
        assert "Traceback" not in broker.process.process.output()


@pytest.fixture
def site(clients: StockClients, names: NameServerProcess, request: pytest.FixtureRequest) -> Site:
    return Site(clients, names.address, f"{clients.line.replace('.', '_')}-{request.node.originalname[-60:]}")


@pytest.fixture
def new_clients(started_clients: Callable[[str], StockClients]) -> StockClients:
    """Those of RocketMQ 5, for what only they can do."""
    try:
        return started_clients(NEW_LINE)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)


def subscriptions(address: str, group: str) -> set[str]:
    """The topics that a broker knows a group to want."""
    asked = Command.request(
        RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupRequest(consumer_group=group)
    )
    with Wire(address) as wire:
        answer = wire.ask(asked)
    if answer.code == ResponseCode.CONSUMER_NOT_ONLINE:
        return set()
    return set(decode_java_json(answer.body, ConsumerConnections).subscription_table)


def test_a_producer_sends_through_the_fast_port_if_it_is_told_to(broker: OverheardBroker, site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server, usesFastPort=True) as producer:
        producer.send(topic, numbered(5))
        producer.send(topic, numbered(5, start=5), mode="async")
    assert len(broker.fast.about(topic)) == 10
    assert broker.main.about(topic) == []
    with site.clients.push_consumer(site.name_server, topic, topic) as consumer:
        assert bodies(consumer.received(10)) == bodies(numbered(10))


def test_clients_of_a_namespace_share_topics_and_groups_with_nobody_else(
    broker: OverheardBroker, site: Site
) -> None:
    topic = site.topic("t")
    own = {"namespace": "Own"}
    with (
        site.clients.producer(site.name_server) as outside,
        site.clients.producer(site.name_server, **own) as inside,
    ):
        outside.send(topic, numbered(5))
        inside.send(topic, numbered(5, start=5))
        with site.clients.push_consumer(site.name_server, topic, topic, **own) as consumer:
            received = consumer.received(5)
    assert bodies(received) == bodies(numbered(5, start=5))
    assert {one.topic for one in received} == {topic}
    requests = broker.main.about(f"Own%{topic}")
    assert {RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE} <= {one.code for one in requests}
    assert {one.ext["consumerGroup"] for one in requests if one.code == RequestCode.PULL_MESSAGE} == {
        f"Own%{topic}"
    }


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.ZSTD], ids=lambda each: each.name)
def test_a_body_goes_through_as_the_producer_compressed_it(
    broker: OverheardBroker,
    new_clients: StockClients,
    names: NameServerProcess,
    compression: Compression,
) -> None:
    topic = f"Compressed-{compression.name}"
    with new_clients.producer(names.address, compression=compression.name) as producer:
        producer.send(topic, [SQUEEZABLE])
    with new_clients.push_consumer(names.address, topic, topic) as consumer:
        assert bodies(consumer.received(1)) == {SQUEEZABLE.body}
    (send,) = [one for one in broker.main.about(topic) if one.code == RequestCode.SEND_MESSAGE_V2]
    sys_flag = send.header(SendMessageRequestV2).sys_flag
    assert sys_flag & SysFlag.COMPRESSED
    assert sys_flag & COMPRESSION_MASK == compression
    assert len(send.body) < len(SQUEEZABLE.body)


def test_short_heartbeats_keep_a_consumer_and_a_restarted_broker_asks_for_a_long_one(
    broker: OverheardBroker, new_clients: StockClients, names: NameServerProcess
) -> None:
    topic = group = "Beats"

    def beats() -> list[HeartbeatData]:
        told = [decode_heartbeat(one.body) for one in broker.main.heard(RequestCode.HEART_BEAT)]
        return [one for one in told if group in {each.group_name for each in one.consumer_data_set}]

    with new_clients.producer(names.address) as producer:
        producer.send(topic, numbered(5))
    with new_clients.push_consumer(
        names.address, group, topic, beatsShortly=True, heartbeatMs=200
    ) as consumer:
        assert bodies(consumer.received(5)) == bodies(numbered(5))
        wait_until(lambda: any(beat.is_without_sub for beat in beats()))
        assert topic in subscriptions(broker.process.address, group)
        broker.process.stop()
        before = len(beats())
        broker.process.restart()
        wait_until(lambda: not all(beat.is_without_sub for beat in beats()[before:]))
        # The client took its subscriptions for known until it was told that they are not.
        assert beats()[before].is_without_sub
        wait_until(lambda: topic in subscriptions(broker.process.address, group))


def test_a_pull_that_blocks_is_answered_when_a_message_comes(broker: OverheardBroker, site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:
        producer.send(topic, numbered(1), mode="queue", brokerName=BROKER, queueId=0)

    def pulls() -> list[PullMessageRequest]:
        asked = broker.main.about(topic)
        return [one.header(PullMessageRequest) for one in asked if one.code == RequestCode.PULL_MESSAGE]

    with (
        site.clients.pull_consumer(site.name_server, topic) as consumer,
        ThreadPoolExecutor(1) as aside,
        Wire(broker.process.address) as wire,
    ):
        assert consumer.pull(topic, BROKER, 0, 1).status == "NO_NEW_MSG"
        pulling = aside.submit(consumer.pull, topic, BROKER, 0, 1, is_blocking=True)
        wait_until(lambda: len(pulls()) == 2)
        wire.ask(send_request(b"late", topic=topic))
        pulled = pulling.result()
    assert pulled.status == "FOUND"
    assert bodies(pulled.messages) == {b"late"}
    assert [bool(pull.sys_flag & SUSPEND) for pull in pulls()] == [False, True]


@pytest.mark.parametrize("line", CLIENT_LINES)
def test_clients_with_binary_headers_and_long_sends_are_served_as_others_are(
    broker: OverheardBroker, names: NameServerProcess, line: str, tmp_path: Path
) -> None:
    topic = f"Old-ways-{line.replace('.', '_')}"
    marked = Outgoing(b"marked", tags="TagA", keys="one two", flag=-7, properties={"цвет": "синий"})
    try:
        clients = StockClients(line, tmp_path / "clients", flags=(*QUICK_START, *OLD_WAYS))
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with (
        clients,
        clients.producer(names.address) as producer,
        clients.pull_consumer(names.address, f"{topic}-by-hand") as by_hand,
        clients.transaction_producer(names.address, f"{topic}-p") as in_transactions,
    ):
        producer.send(topic, [marked])
        producer.send(topic, numbered(5), mode="async")
        producer.send(topic, numbered(5, start=5), mode="batch")
        producer.send_one_way(topic, numbered(1, start=10))
        in_transactions.send(topic, numbered(1, start=11), state="COMMIT")
        with clients.push_consumer(names.address, topic, topic) as consumer:
            received = consumer.received(13)
        assert by_hand.bounds(topic, BROKER, 0, time_ms=0)["queues"] == 4
        with pytest.raises(StepFailed) as no_topic:
            by_hand.pull("None-of-it", BROKER, 0, 0)
    assert no_topic.value.code == TOPIC_NOT_EXIST
    assert bodies(received) == bodies([marked, *numbered(12)])
    (same,) = [one for one in received if one.body == marked.body]
    assert (same.tags, same.keys, same.flag) == (marked.tags, marked.keys, marked.flag)
    assert same.properties["цвет"] == "синий"
    calls = [call for call in broker.main.calls() if any(one.ext.get("topic") == topic for one in call)]
    asked = [request for call in calls for request in call]
    assert {one.encoding for one in asked} == {HeaderEncoding.BINARY}
    codes = Counter(one.code for one in asked)
    assert codes[RequestCode.SEND_MESSAGE] >= 8
    assert not codes[RequestCode.SEND_MESSAGE_V2]
