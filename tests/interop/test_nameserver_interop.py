"""Tanist's name server among the real RocketMQ: its brokers, its clients, its operator command."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tanist.model.data_version import DataVersion
from tanist.model.route import TopicRouteData
from tanist.model.topics import TopicConfig
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.registration import RegisterBrokerBody, encode_registration, registration_crc
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import OUR_VERSION
from tanist.protocol.headers.nameserver import GetRouteRequest, RegisterBrokerRequest
from tanist.store.settings import StoreSettings
from tests.support import partners
from tests.support.nameserver import NameServerProcess
from tests.support.rocketmq import RocketMQ, body_of
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

# The columns of clusterList that are measured: rates, ages, the disk.
_FIGURES = re.compile(r"(?<=V5_3_3).*")

# The shortest period that a broker takes.
_OFTEN = {"registerNameServerPeriod": 10_000}


@pytest.fixture
def name_server(tmp_path: Path) -> Iterator[NameServerProcess]:
    with NameServerProcess(tmp_path / "tanist", supportActingMaster="true") as server:
        yield server


@pytest.fixture
def around_tanist(tmp_path: Path, name_server: NameServerProcess) -> Iterator[RocketMQ]:
    """RocketMQ with Tanist's name server in place of its own."""
    try:
        rocketmq = RocketMQ(tmp_path / "around-tanist", name_server=name_server.address)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        yield rocketmq


def route(address: str, topic: str) -> TopicRouteData | None:
    with Wire(address) as client:
        answer = client.ask(Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic)))
    return decode_java_json(answer.body, TopicRouteData) if answer.code == ResponseCode.SUCCESS else None


def wait_until(is_so: Callable[[], bool], *, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.takes(18)
def test_mqadmin_prints_what_it_prints_against_the_real_one(
    rocketmq: RocketMQ, around_tanist: RocketMQ, name_server: NameServerProcess
) -> None:
    both = f"{rocketmq.name_server};{name_server.address}"
    # Without its timer the broker fails to delete a topic.
    rocketmq.start_broker(properties={"namesrvAddr": both, "timerWheelEnable": "true", **_OFTEN})
    around_tanist.produce("Orders", count=8, queues=(0, 1, 2, 3))
    for address in (rocketmq.name_server, name_server.address):
        wait_until(lambda address=address: route(address, "Orders") is not None, timeout_s=30)
    show_route = ("topicRoute", "-t", "Orders")
    commands = (
        ("clusterList",),
        ("topicList",),
        ("topicList", "-c"),
        show_route,
        ("updateKvConfig", "-s", "NS", "-k", "key", "-v", "value"),
        ("deleteKvConfig", "-s", "NS", "-k", "key"),
        ("wipeWritePerm", "-b", "broker-a"),
        show_route,
        ("addWritePerm", "-b", "broker-a"),
        show_route,
        ("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true"),
        ("getNamesrvConfig",),
    )

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(around.mqadmin_each, *commands) for around in (rocketmq, around_tanist)]
    (*theirs, their_settings), (*ours, our_settings) = (run.result() for run in running)

    real, own = rocketmq.name_server, name_server.address
    assert [_steady(text, own) for text in ours] == [_steady(text, real) for text in theirs]
    expected = ["broker-a", "Orders", "tanist-tests", '"perm":6', "success", "success", "wipe write perm"]
    expected += ['"perm":4', "add write perm", '"perm":6', "success"]
    for text, part in zip(ours, expected, strict=True):
        assert part in text
    _check_settings(_settings(our_settings), _settings(their_settings))

    delete = ("deleteTopic", "-c", "tanist-tests", "-t", "Orders")
    [deleted] = around_tanist.mqadmin_each(delete)
    assert "success" in deleted
    assert rocketmq.mqadmin_each(delete) == [deleted]
    assert route(own, "Orders") is None


def _steady(printed: str, name_server: str) -> str:
    return _FIGURES.sub("...", printed.replace(name_server, "NAME-SERVER"))


def _settings(printed: str) -> dict[str, str]:
    lines = (line.partition("=") for line in printed.splitlines() if not line.startswith("=="))
    return {key.strip(): value.strip() for key, separator, value in lines if separator}


def _check_settings(ours: dict[str, str], theirs: dict[str, str]) -> None:
    """What both have and no test chose is the same in both."""
    same = ours.keys() & theirs.keys() - {"listenPort", "kvConfigPath", "supportActingMaster"}
    assert {"enableTopicList", "serverChannelMaxIdleTimeSeconds", "needWaitForService"} <= same
    assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
    assert ours["orderMessageEnable"] == "true"


@pytest.mark.takes(25)
def test_brokers_come_and_go_and_clients_find_them(
    around_tanist: RocketMQ, name_server: NameServerProcess, tmp_path: Path
) -> None:
    store_dir = tmp_path / "store"

    def is_there() -> bool:
        return route(name_server.address, "Kept") is not None

    broker = around_tanist.start_broker(store_dir=store_dir, properties=_OFTEN)
    sent = around_tanist.produce("Kept", count=20, queues=(0, 1))
    assert {message.status for message in sent} == {"SEND_OK"}
    bodies = sorted(message.body for message in around_tanist.consume_all("Kept"))
    assert bodies == sorted(body_of(number, 100) for number in range(20))

    broker.kill()
    # Far below the lease of two minutes, as below: it is the end of the connection that counts.
    wait_until(lambda: not is_there(), timeout_s=10)

    broker = around_tanist.start_broker(store_dir=store_dir, properties=_OFTEN)
    assert is_there()
    name_server.process.kill()
    name_server.restart()
    wait_until(is_there, timeout_s=20)
    assert len(around_tanist.consume_all("Kept")) == 20

    broker.stop()
    assert not is_there()


@pytest.mark.partner("arrow", "java", "maven")
def test_a_slave_stands_in_for_its_dead_master(
    around_tanist: RocketMQ, name_server: NameServerProcess, tmp_path: Path
) -> None:
    acting = {"enableSlaveActingMaster": "true", "slaveReadEnable": "true"}
    master = around_tanist.start_broker(properties={**acting, "brokerRole": "ASYNC_MASTER"})
    around_tanist.produce("Kept", count=10)
    # A slave asks for the topics of its master a minute after its start. This one knows them before.
    config = tmp_path / "slave" / "config"
    config.mkdir(parents=True)
    shutil.copy(master.store_dir / "config" / "topics.json", config)
    slave = around_tanist.start_broker(
        store_dir=config.parent, properties={**acting, "brokerRole": "SLAVE", "brokerId": 1}
    )

    def addresses() -> dict[int, str]:
        found = route(name_server.address, "Kept")
        return found.broker_datas[0].broker_addrs if found else {}

    assert addresses() == {0: master.address, 1: slave.address}
    log = Path("commitlog", "0" * 20)
    wait_until(
        lambda: (
            (slave.store_dir / log).exists()
            and (slave.store_dir / log).read_bytes() == (master.store_dir / log).read_bytes()
        ),
        timeout_s=30,
    )
    from tanist.spark.audit.job import audit  # noqa: PLC0415 - it needs what may not be installed.

    sizes = StoreSettings(max_hash_slot_num=1000, max_index_num=4000)
    stores = str(master.store_dir), str(slave.store_dir)
    # The slave has the bytes first, and its queues and index of them soon after.
    wait_until(lambda: not audit(*stores, settings=sizes).index_problems, timeout_s=60)
    audited = audit(*stores, settings=sizes)
    assert audited.is_equal
    assert audited.log_start < audited.log_end == audited.ends[0]

    master.kill()
    wait_until(lambda: addresses() == {0: slave.address}, timeout_s=10)

    found = route(name_server.address, "Kept")
    assert found is not None
    assert found.queue_datas[0].perm == 4
    assert len(around_tanist.consume_all("Kept")) == 10


def test_both_name_servers_believe_the_later_of_two_masters(
    shared_rocketmq: RocketMQ, name_server: NameServerProcess
) -> None:
    broker_name, topic = "switching-broker", "Switching"

    def claims(address: str, wire: Wire, *, port: int, broker_id: int, epoch: int) -> dict[int, str]:
        """The group after a broker has registered."""
        # RocketMQ takes a first registration with one topic for a late one of a broker that is gone.
        topics = {name: TopicConfig(topic_name=name) for name in (topic, "SwitchingToo")}
        table = TopicConfigTable(topics=topics, data_version=DataVersion(state_version=epoch))
        body = encode_registration(
            RegisterBrokerBody(topic_configs=table), is_compressed=False, version=OUR_VERSION
        )
        header = RegisterBrokerRequest(
            broker_name=broker_name,
            broker_addr=f"127.0.0.1:{port}",
            cluster_name="switching",
            ha_server_addr=f"127.0.0.1:{port + 1}",
            broker_id=broker_id,
            body_crc32=registration_crc(body),
            is_compressed=False,
        )
        request = Command.request(RequestCode.REGISTER_BROKER, header, body=body)
        answer = wire.ask(request)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        found = route(address, topic)
        return found.broker_datas[0].broker_addrs if found is not None else {}

    def play(address: str) -> list[dict[int, str]]:
        with Wire(address) as first, Wire(address) as second:
            return [
                claims(address, first, port=10, broker_id=0, epoch=1),
                claims(address, second, port=20, broker_id=2, epoch=1),
                claims(address, second, port=20, broker_id=0, epoch=2),
                claims(address, first, port=10, broker_id=0, epoch=1),
                claims(address, first, port=10, broker_id=1, epoch=2),
                claims(address, first, port=10, broker_id=0, epoch=3),
                claims(address, second, port=20, broker_id=2, epoch=3),
            ]

    ours = play(name_server.address)
    assert ours == play(shared_rocketmq.name_server)
    one, two = "127.0.0.1:10", "127.0.0.1:20"
    assert ours == [
        {0: one},
        {0: one, 2: two},
        {0: two},
        {0: two},
        {0: two, 1: one},
        {0: one},
        {0: one, 2: two},
    ]
