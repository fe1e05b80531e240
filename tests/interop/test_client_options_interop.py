"""Options of stock clients that change what they say to a broker. Each is heard, and what it is for works."""

from collections.abc import Callable, Iterator

import pytest

from tanist.model.message import COMPRESSION_MASK, SysFlag
from tanist.protocol import RequestCode
from tanist.protocol.bodies.client import HeartbeatData, decode_heartbeat
from tanist.protocol.compression import Compression
from tanist.protocol.headers.send import SendMessageRequestV2
from tests.support import partners
from tests.support.overheard import OverheardBroker
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import Site, bodies, numbered, wait_until
from tests.support.tanist_cluster import NameServerProcess

pytestmark = pytest.mark.partner("java", "maven")

NEW_LINE = "5.3.3"
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

    def are_short(count: int, *, since: int) -> bool:
        return sum(beat.is_without_sub for beat in beats()[since:]) >= count

    with new_clients.producer(names.address) as producer:
        producer.send(topic, numbered(5))
    with new_clients.push_consumer(
        names.address, group, topic, beatsShortly=True, heartbeatMs=200, rebalanceMs=500
    ) as consumer:
        assert bodies(consumer.received(5)) == bodies(numbered(5))
        wait_until(lambda: are_short(2, since=0))
        broker.process.stop()
        before = len(beats())
        broker.process.restart()
        # It knows of no subscription, which a short one stands for.
        wait_until(lambda: are_short(2, since=before))
        assert not all(beat.is_without_sub for beat in beats()[before:])
        with new_clients.producer(names.address) as producer:
            producer.send(topic, numbered(5, start=5))
        assert bodies(consumer.received(10)) == bodies(numbered(10))
