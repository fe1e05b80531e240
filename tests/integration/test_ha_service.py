"""When a broker's replication starts and stops, and what it survives."""

import asyncio
import logging
import os
import resource
import socket
from pathlib import Path

import pytest

from tanist.clock import SystemClock
from tanist.ha.acceptor import Acceptor, Master
from tanist.ha.keys import HaKeys
from tanist.ha.replicas import ReplicaTable
from tanist.ha.settings import HaCompatibility, HaSettings
from tanist.protocol.ha_classic import encode_report
from tanist.protocol.ha_hello import Authentication
from tanist.remoting import bind_port
from tanist.store import MessageStore
from tanist.testing import EmbeddedBroker
from tests.support.attacked import wait_until
from tests.support.conditions import until
from tests.support.ha_pair import running_master
from tests.support.messages import open_store
from tests.support.played_classic import PlayedMaster, PlayedSlave

_CLASSIC = {"brokerRole": "ASYNC_MASTER", "haCompatibility": "classic", "haAllowedAddresses": "127.0.0.1"}
_SLAVE = {"brokerRole": "SLAVE", "brokerId": "1", "haCompatibility": "classic"}


def _make_acceptor(store: MessageStore) -> Acceptor:
    master = Master(
        store=store,
        keys=HaKeys("broker-a", Authentication.NONE),
        settings=HaSettings(ha_compatibility=HaCompatibility.CLASSIC, ha_allowed_addresses="127.0.0.1"),
        replicas=ReplicaTable(fallbehind_max_bytes=1),
        on_replicas=lambda: None,
        make_feed=None,
        clock=SystemClock(),
    )
    return Acceptor(master)


@pytest.mark.behaviour("S1-40")
def test_the_connection_of_a_slave_of_rocketmq_has_small_buffers_no_delay_and_no_linger(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        bound = bind_port("127.0.0.1", 0)
        with open_store(tmp_path) as store:
            acceptor = _make_acceptor(store)
            await acceptor.start(bound)
            with socket.create_connection(bound.getsockname()) as peer:
                peer.sendall(encode_report(0))
                await until(lambda: any(each.is_proven for each in acceptor._connections))
                (connection,) = acceptor._connections
                accepted: socket.socket = connection.wire._transport.get_extra_info("socket")
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    # The system doubles what it is given.
                    assert accepted.getsockopt(socket.SOL_SOCKET, option) in (64 << 10, 128 << 10)
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == bytes(8)
                assert accepted.gettimeout() == 0.0
            await acceptor.close()

    asyncio.run(run())


@pytest.mark.behaviour("S1-34", "S1-44")
@pytest.mark.parametrize("has_silent_peer", [False, True])
def test_a_stop_ends_the_port_within_a_second(tmp_path: Path, has_silent_peer: bool) -> None:
    async def run() -> None:
        bound = bind_port("127.0.0.1", 0)
        with open_store(tmp_path) as store:
            acceptor = _make_acceptor(store)
            await acceptor.start(bound)
            address = bound.getsockname()
            peer = socket.create_connection(address) if has_silent_peer else None
            await asyncio.sleep(0)
            async with asyncio.timeout(1.0):
                await acceptor.close()
            if peer is not None:
                peer.close()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)

    asyncio.run(run())


@pytest.mark.behaviour("S1-30", "S1-39")
def test_the_port_is_there_when_the_store_is_open_and_both_ends_of_its_service_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO), running_master(_CLASSIC):
        pass
    said = [record.getMessage().split(" root=")[0].split(" host=")[0] for record in caplog.records]
    order = [said.index(line) for line in ("store opened", "ha service started", "ha service ended")]
    assert order == sorted(order)


@pytest.mark.behaviour("S1-39")
def test_the_port_goes_on_when_it_could_not_take_a_connection(caplog: pytest.LogCaptureFixture) -> None:
    with running_master(_CLASSIC) as master, socket.socket() as late:
        host, _, port = master.ha_address.rpartition(":")
        free = os.dup(0)
        os.close(free)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            # From now on nothing can be opened: the next free number is beyond what is allowed.
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
            late.connect((host, int(port)))
            wait_until(lambda: "accept" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        with PlayedSlave(master.ha_address) as slave:
            slave.report(0)
            wait_until(lambda: len(master.status().links) == 1)


@pytest.mark.behaviour("S1-78")
def test_a_master_calls_nobody_though_it_was_told_whom() -> None:
    with PlayedMaster() as other, running_master({**_CLASSIC, "haMasterAddress": other.address}) as master:
        assert master.send().status == "SEND_OK"
        assert not other.is_called(0.3)


@pytest.mark.behaviour("S1-79", "S1-90")
def test_a_slave_calls_until_its_master_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with EmbeddedBroker(settings={**_SLAVE, "haMasterAddress": f"127.0.0.1:{port}"}) as slave:
        assert slave.address
        with PlayedMaster(port) as master, master.called() as caller:
            assert caller.read_report() == 0
