"""The stock clients of both lines at a pair: its slave is read if the master is gone, or sends them there."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.tables import KVTable
from tests.support.ha_pair import SECRET, open_master
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.site import BROKER, bodies, is_sent, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.topics import shown_group
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")


@contextmanager
def _pair(
    home: Path, settings: Mapping[str, Any] = {}
) -> Generator[tuple[str, BrokerProcess, BrokerProcess]]:
    given: dict[str, Any] = {"haSecret": SECRET, **settings}
    with (
        NameServerProcess(home / "names") as names,
        BrokerProcess(home / "master", names.address, brokerRole="SYNC_MASTER", **given) as master,
        BrokerProcess(home / "slave", names.address, brokerRole="SLAVE", brokerId=1, **given) as slave,
    ):
        yield names.address, master, slave


def _offsets(address: str) -> bytes:
    with Wire(address) as wire:
        return bytes(wire.ask(Command.request(RequestCode.GET_ALL_CONSUMER_OFFSET)).body)


def test_a_group_goes_on_at_the_slave_where_it_stood_at_the_master(
    clients: StockClients, tmp_path: Path
) -> None:
    with _pair(tmp_path) as (names, master, slave), clients.producer(names) as producer:
        with open_master(master.address) as seen:
            seen.wait_in_step()
        early, late = numbered(20), numbered(20, start=20)
        assert {receipt.status for receipt in producer.send("Orders", early)} == {"SEND_OK"}
        with clients.push_consumer(names, "billing", "Orders") as first:
            assert bodies(first.received(20)) == bodies(early)
        producer.send("Orders", late)
        # What the group committed when it left is at the slave too.
        wait_until(lambda: _offsets(slave.address) == _offsets(master.address))
        master.kill()
        with clients.push_consumer(names, "billing", "Orders") as second:
            assert bodies(second.received(20)) == bodies(late)
            assert not is_sent(lambda: producer.send("Orders", numbered(1, start=99)))
            master.restart()
            wait_until(lambda: is_sent(lambda: producer.send("Orders", numbered(1, start=40))))
            assert bodies(second.received(21)) == bodies(numbered(21, start=20))


def _given_out(address: str) -> int:
    """How many messages a broker has given to consumers."""
    with Wire(address) as wire:
        answer = wire.ask(Command.request(RequestCode.GET_BROKER_RUNTIME_INFO))
    return int(decode_java_json(answer.body, KVTable).table["msgGetTotalTodayNow"])


def test_a_group_that_is_far_behind_is_led_to_the_slave_and_back_to_the_master(
    clients: StockClients, tmp_path: Path
) -> None:
    # Whatever is found counts as read from the disk, until the brokers are told otherwise.
    readable = {"slaveReadEnable": "true", "accessMessageInMemoryMaxRatio": 0}
    with (
        _pair(tmp_path, readable) as (names, master, slave),
        clients.producer(names) as producer,
    ):

        def send(messages: Sequence[Outgoing]) -> None:
            producer.send("Orders", messages, mode="queue", brokerName=BROKER, queueId=0)

        send(numbered(200))
        wait_until(lambda: shown_group(names, "Orders") == ({0: master.address, 1: slave.address}, 6))
        with clients.push_consumer(names, "billing", "Orders") as consumer:
            assert len(consumer.received(200)) == 200
            by_master, by_slave = _given_out(master.address), _given_out(slave.address)
            assert by_master + by_slave == 200
            assert 0 < by_master < by_slave
            for broker in (master, slave):
                with Wire(broker.address) as wire:
                    body = b"accessMessageInMemoryMaxRatio=40\n"
                    answer = wire.ask(Command.request(RequestCode.UPDATE_BROKER_CONFIG, body=body))
                    assert answer.code == ResponseCode.SUCCESS, answer.remark
            # The pull that waits at the slave is answered there, and with it comes the way back.
            for number in range(200, 203):
                send(numbered(1, start=number))
                assert bodies(consumer.received(number + 1)) == bodies(numbered(number + 1))
            assert _given_out(slave.address) == by_slave + 1
            assert _given_out(master.address) == by_master + 2
