"""A master that is killed: what it said is replicated is there, on its slave."""

import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tanist.protocol import ResponseCode
from tests.support.attacked import wait_until
from tests.support.ha_pair import SECRET, open_master
from tests.support.nameserver import NameServerProcess
from tests.support.replicated_log import LogOnDisk, ends_equal
from tests.support.requests import send_request
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

SENDERS = 4
BEFORE_KILL = 400


class Sender(threading.Thread):
    """Sends messages one after the other until its master is gone, and notes which were acknowledged."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._address = address
        self.acknowledged: list[bytes] = []

    def run(self) -> None:
        with Wire(self._address) as wire:
            for number in range(1_000_000):
                body = f"<{self.name}-{number}>".encode()
                try:
                    answer = wire.ask(send_request(body))
                except (OSError, AssertionError):
                    return
                if answer.code == ResponseCode.SUCCESS:
                    self.acknowledged.append(body)


@contextmanager
def _pair(root: Path) -> Generator[tuple[BrokerProcess, BrokerProcess]]:
    with ExitStack() as running:
        name_server = running.enter_context(NameServerProcess(root / "names")).address
        settings = {"haSecret": SECRET, "autoCreateTopicEnable": "true"}
        master = running.enter_context(
            BrokerProcess(root / "master", name_server, brokerRole="SYNC_MASTER", **settings)
        )
        slave = running.enter_context(
            BrokerProcess(root / "slave", name_server, brokerRole="SLAVE", brokerId=1, **settings)
        )
        yield master, slave


def test_whatever_a_killed_master_acknowledged_is_on_its_slave(tmp_path: Path) -> None:
    with _pair(tmp_path) as (master, slave):
        with open_master(master.address) as asked:
            asked.wait_in_step()
        senders = [Sender(master.address, f"sender{number}") for number in range(SENDERS)]
        for sender in senders:
            sender.start()
        wait_until(lambda: sum(len(sender.acknowledged) for sender in senders) >= BEFORE_KILL)
        master.kill()
        for sender in senders:
            sender.join(60)
        slave.kill()
        held = LogOnDisk.read(tmp_path / "slave" / "store").data
        acknowledged = [body for sender in senders for body in sender.acknowledged]
        assert len(acknowledged) >= BEFORE_KILL
        assert [body for body in acknowledged if body not in held] == []

        master.restart()
        slave.restart()
        with open_master(master.address) as asked:
            asked.wait_in_step()
    assert ends_equal(tmp_path / "master" / "store", tmp_path / "slave" / "store")
