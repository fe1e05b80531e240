"""Brokers of Apache RocketMQ and of Tanist follow each other, and hold the same log byte for byte."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tanist.protocol import ResponseCode
from tests.support import partners
from tests.support.following import ToldTables, entries
from tests.support.replicated_log import LogOnDisk, ends_equal, send_messages
from tests.support.requests import pull_request
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.cluster import Broker
from tests.support.site import BROKER, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

_MESSAGES = 100_000
_QUARTER = _MESSAGES // 4
_FILE_BYTES = 1 << 20
_TANIST = {"mappedFileSizeCommitLog": _FILE_BYTES, "haCompatibility": "classic"}
_TANIST_MASTER = {**_TANIST, "brokerRole": "ASYNC_MASTER", "haAllowedAddresses": "127.0.0.1"}
_ROCKETMQ = {
    "mappedFileSizeCommitLog": _FILE_BYTES,
    # A slave says where its log ends so long after it has connected, and its master hears nothing before.
    "haSendHeartbeatInterval": 500,
    # On a busy machine it would drop sends that have waited for 200 ms.
    "waitTimeMillsInSendQueue": 60_000,
}
_LOOK_S = 0.3
_ROCKETMQ_SLAVE = {**_ROCKETMQ, "brokerRole": "SLAVE", "brokerId": 1}


@pytest.fixture
def rocketmq(own_names: NameServerProcess, tmp_path: Path) -> Iterator[RocketMQ]:
    try:
        rocketmq = RocketMQ(tmp_path / "rocketmq", name_server=own_names.address)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        yield rocketmq


def _wait_for_equal(whole: Path, newer: Path) -> None:
    wait_until(lambda: ends_equal(whole, newer), timeout_s=150, pause_s=_LOOK_S)


def _is_read(address: str, queue_offset: int) -> bool:
    """Whether a consumer that asks this broker gets messages from there on."""
    with Wire(address) as wire:
        return wire.ask(pull_request(queue_offset)).code == ResponseCode.SUCCESS


def _make_entries(address: str) -> None:
    with Wire(address) as wire:
        for request in entries("FollowedTopic", "FollowedGroup", offset=0):
            answer = wire.ask(request)
            assert answer.code == ResponseCode.SUCCESS, answer.remark


def _wait_for_equal_tables(master: str, slave: str) -> None:
    """Wait until both tell the same of all four tables, the entries of a test and a delivery among them."""

    def are_equal() -> bool:
        told = ToldTables.of(master)
        is_delivered = any(told.delay_offsets.values())
        return is_delivered and told == ToldTables.of(slave)

    # A slave of RocketMQ 5 asks for tables once it knows its master, perhaps a minute after its start.
    wait_until(are_equal, timeout_s=150, pause_s=_LOOK_S)
    told = ToldTables.of(slave)
    assert told.groups["FollowedGroup"].retry_max_times == 7
    assert told.consumer_offsets["FollowedTopic@FollowedGroup"] == {1: 0}


@pytest.mark.behaviour("S1-62", "S1-77", "S1-81")
@pytest.mark.takes(20)
def test_a_slave_of_rocketmq_follows_a_master_of_tanist(rocketmq: RocketMQ, tmp_path: Path) -> None:
    home = tmp_path / "master"
    store = home / "store"
    with BrokerProcess(home, rocketmq.name_server, name=BROKER, **_TANIST_MASTER) as master:
        send_messages(master.address, _QUARTER, first=0)
        slave = rocketmq.start_broker(name=BROKER, properties=_ROCKETMQ_SLAVE)
        _wait_for_equal(store, slave.store_dir)
        send_messages(master.address, _QUARTER, first=_QUARTER)
        slave.kill()
        send_messages(master.address, _QUARTER, first=2 * _QUARTER)
        again = rocketmq.start_broker(name=BROKER, store_dir=slave.store_dir, properties=_ROCKETMQ_SLAVE)
        _wait_for_equal(store, again.store_dir)
        master.kill()
        master.restart()
        send_messages(master.address, _MESSAGES - 3 * _QUARTER, first=3 * _QUARTER)
        _wait_for_equal(store, again.store_dir)
        log = LogOnDisk.read(again.store_dir)
        assert (log.start, log.record_count) == (0, _MESSAGES)
        assert "refused" not in master.process.output()


@pytest.mark.behaviour("S1-77", "S1-81", "S1-96", "S1-99")
@pytest.mark.takes(20)
@pytest.mark.parametrize("start", [RocketMQ.start_broker, RocketMQ.start_old_broker], ids=["5.x", "4.9"])
def test_a_slave_of_tanist_follows_a_master_of_rocketmq(
    rocketmq: RocketMQ, start: Callable[..., Broker], tmp_path: Path
) -> None:
    home = tmp_path / "slave"
    store = home / "store"
    master = start(rocketmq, name=BROKER, properties=_ROCKETMQ)
    settings = {**_TANIST, "brokerRole": "SLAVE", "brokerId": 1}
    with BrokerProcess(home, rocketmq.name_server, name=BROKER, **settings) as slave:
        # An empty slave gets only the newest file from RocketMQ, so it has to be there from the start.
        send_messages(master.address, 1, first=0)
        _wait_for_equal(master.store_dir, store)
        send_messages(master.address, _QUARTER - 1, first=1)
        # So that the master knows the group that will read from its slave.
        assert _is_read(master.address, 0)
        _wait_for_equal(master.store_dir, store)
        slave.kill()
        send_messages(master.address, _QUARTER, first=_QUARTER)
        slave.restart()
        _wait_for_equal(master.store_dir, store)
        master.stop()
        ports = {"listenPort": master.port, "haListenPort": master.ha_port}
        again = start(rocketmq, name=BROKER, store_dir=master.store_dir, properties={**_ROCKETMQ, **ports})
        send_messages(again.address, _MESSAGES - 2 * _QUARTER, first=2 * _QUARTER)
        _wait_for_equal(again.store_dir, store)
        log = LogOnDisk.read(store)
        assert (log.start, log.record_count) == (0, _MESSAGES)
        # Topic and group came from the master's tables, the messages from its log.
        wait_until(lambda: _is_read(slave.address, _MESSAGES - 10), pause_s=_LOOK_S)
        _make_entries(again.address)
        _wait_for_equal_tables(again.address, slave.address)


@pytest.mark.takes(15)
def test_a_slave_of_rocketmq_takes_its_tables_from_a_master_of_tanist(
    rocketmq: RocketMQ, tmp_path: Path
) -> None:
    with BrokerProcess(tmp_path / "master", rocketmq.name_server, name=BROKER, **_TANIST_MASTER) as master:
        _make_entries(master.address)
        slave = rocketmq.start_broker(name=BROKER, properties=_ROCKETMQ_SLAVE)
        _wait_for_equal_tables(master.address, slave.address)


@pytest.mark.behaviour("S1-60", "S1-77", "S1-96")
@pytest.mark.takes(30)
def test_a_broker_of_rocketmq_4_9_follows_a_master_of_tanist_and_is_followed_by_a_slave_of_tanist(
    rocketmq: RocketMQ, tmp_path: Path
) -> None:
    """Every broker of RocketMQ serves its log, so that one of them is a slave and a master here."""
    home, tail_home = tmp_path / "master", tmp_path / "tail"
    store, tail_store = home / "store", tail_home / "store"
    master_settings = {**_TANIST_MASTER, "syncFromLastFile": "true"}
    with BrokerProcess(home, rocketmq.name_server, name=BROKER, **master_settings) as master:
        send_messages(master.address, _QUARTER, first=0)
        slave = rocketmq.start_old_broker(name=BROKER, properties=_ROCKETMQ_SLAVE)
        _wait_for_equal(store, slave.store_dir)
        tail_settings = {
            "haMasterAddress": f"127.0.0.1:{slave.ha_port}",
            "brokerRole": "SLAVE",
            "brokerId": 2,
        }
        with BrokerProcess(tail_home, rocketmq.name_server, name=BROKER, **_TANIST, **tail_settings) as tail:
            send_messages(master.address, _QUARTER, first=_QUARTER)
            _wait_for_equal(slave.store_dir, tail_store)
            wait_until(lambda: _is_read(slave.address, 2 * _QUARTER - 10), pause_s=_LOOK_S)
            slave.stop()
            tail.stop()
            send_messages(master.address, _QUARTER, first=2 * _QUARTER)
            tail.restart()
            again = rocketmq.start_old_broker(
                name=BROKER,
                store_dir=slave.store_dir,
                properties={**_ROCKETMQ_SLAVE, "listenPort": slave.port},
            )
            master.stop()
            master.restart()
            send_messages(master.address, _MESSAGES - 3 * _QUARTER, first=3 * _QUARTER)
            _wait_for_equal(store, again.store_dir)
            _wait_for_equal(again.store_dir, tail_store)
            assert LogOnDisk.read(store).record_count == _MESSAGES
            assert LogOnDisk.read(tail_store).start > 0
