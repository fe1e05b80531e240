"""The stock clients of both lines when the master of a pair is gone: the slave is read, and takes nothing."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode
from tests.support.ha_pair import SECRET, open_master
from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import bodies, is_sent, numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")


@contextmanager
def _pair(home: Path) -> Generator[tuple[str, BrokerProcess, BrokerProcess]]:
    with (
        NameServerProcess(home / "names") as names,
        BrokerProcess(home / "master", names.address, brokerRole="SYNC_MASTER", haSecret=SECRET) as master,
        BrokerProcess(
            home / "slave", names.address, brokerRole="SLAVE", brokerId=1, haSecret=SECRET
        ) as slave,
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
