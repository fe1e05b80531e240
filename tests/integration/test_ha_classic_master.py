"""What a master does on its port with slaves that speak RocketMQ's classic replication."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attacked import Master, wait_until
from tests.support.ha_pair import FILE_BYTES, running_master
from tests.support.played_classic import PlayedSlave
from tests.support.replicated_log import LogOnDisk, send_messages

_CLASSIC = {
    "brokerRole": "ASYNC_MASTER",
    "haCompatibility": "classic",
    "haAllowedAddresses": "127.0.0.0/24",
}
_OTHER_HOST = "127.0.0.2"
_INTRUDER_HOST = "127.0.0.66"
_FORBIDDEN_HOST = "127.0.1.1"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("master") / "store"


@pytest.fixture(scope="module")
def serving(store: Path) -> Iterator[Master]:
    """A master whose log is longer than what connections have room for."""
    with running_master(_CLASSIC, store=store) as master:
        send_messages(master.address, 60_000, first=0)
        yield master


@pytest.fixture
def master(serving: Master) -> Iterator[Master]:
    """The same without slaves, before and after."""
    yield serving
    wait_until(lambda: not serving.status().links)


def _acked(master: Master) -> list[int]:
    return [link.acked_to for link in master.status().links]


@pytest.mark.behaviour("S1-41", "S1-55", "S1-65", "S1-71")
def test_a_slave_is_sent_the_log_and_what_it_reports_is_shown(master: Master, store: Path) -> None:
    log_end = master.status().log_end
    with PlayedSlave(master.ha_address) as slave:
        slave.report(0)
        assert slave.read_to(log_end) == LogOnDisk.read(store).data
        slave.report(log_end)
        wait_until(lambda: _acked(master) == [log_end])
        (link,) = master.status().links
        assert (link.addr, link.lag_bytes) == (slave.address, 0)


@pytest.mark.behaviour("S1-59")
def test_a_slave_that_has_not_reported_is_sent_nothing_and_is_no_slave(master: Master) -> None:
    with PlayedSlave(master.ha_address) as slave:
        slave.say(bytes(7))
        assert slave.is_silent(0.3)
        assert master.status().links == []
        slave.say(bytes(1))
        assert slave.read_frame().log_offset == 0


@pytest.mark.behaviour("S1-41", "S1-43", "S1-62")
def test_slaves_are_served_side_by_side_each_from_its_own_offset(master: Master, store: Path) -> None:
    log_end, start = master.status().log_end, 2 * FILE_BYTES
    with (
        PlayedSlave(master.ha_address) as one,
        PlayedSlave(master.ha_address, host=_OTHER_HOST) as other,
    ):
        one.report(0)
        wait_until(lambda: len(master.status().links) == 1)
        other.report(start)
        wait_until(lambda: len(master.status().links) == 2)
        assert other.read_to(log_end, start=start) == LogOnDisk.read(store).data[start:]
        other.report(log_end)
        wait_until(lambda: sorted(_acked(master)) == [0, log_end])
        assert one.read_to(log_end) == LogOnDisk.read(store).data


@pytest.mark.behaviour("S1-42", "S1-66", "S1-72")
def test_a_slave_that_reads_slowly_is_heard_and_gets_every_byte_once(master: Master, store: Path) -> None:
    log_end = master.status().log_end
    with PlayedSlave(master.ha_address) as slave:
        slave.report(0)
        first = slave.read_frame()
        # The rest is on its way and stays there: it is more than the connection has room for.
        slave.report(len(first.body))
        wait_until(lambda: _acked(master) == [len(first.body)])
        assert slave.read_to(log_end) == LogOnDisk.read(store).data
        slave.report(log_end)
        wait_until(lambda: _acked(master) == [log_end])


@pytest.mark.behaviour("S1-58", "S1-52")
def test_a_quiet_connection_stays_and_its_next_report_is_understood(master: Master) -> None:
    log_end = master.status().log_end
    with PlayedSlave(master.ha_address) as slave:
        slave.report(0)
        slave.read_to(log_end)
        assert slave.is_silent(0.3)
        report = log_end.to_bytes(8, "big")
        slave.say(report[:3])
        assert slave.is_silent(0.3)
        slave.say(report[3:])
        wait_until(lambda: _acked(master) == [log_end])


@pytest.mark.behaviour("S1-69", "S1-70", "S1-104")
def test_a_new_message_is_sent_before_any_heartbeat_and_its_producer_waits_for_nobody(
    master: Master,
) -> None:
    log_end = master.status().log_end
    with PlayedSlave(master.ha_address) as slave:
        slave.report(log_end)
        wait_until(lambda: len(master.status().links) == 1)
        sent = master.send()
        assert sent.status == "SEND_OK"
        frame = slave.read_frame()
        assert frame.log_offset == log_end
        assert b"the crown jewels" in frame.body


@pytest.mark.behaviour("S1-36", "S1-38", "S1-47", "S1-49", "S1-50")
def test_whoever_goes_is_no_slave_any_more_however_and_whenever_it_goes(master: Master) -> None:
    log_end = master.status().log_end
    for _ in range(5):
        PlayedSlave(master.ha_address).close()
        PlayedSlave(master.ha_address).reset()
        hasty = PlayedSlave(master.ha_address)
        hasty.report(0)
        hasty.reset()
    slave = PlayedSlave(master.ha_address)
    slave.report(log_end)
    wait_until(lambda: _acked(master) == [log_end])
    slave.close()
    wait_until(lambda: not master.status().links)
    with PlayedSlave(master.ha_address) as again:
        again.report(log_end)
        wait_until(lambda: _acked(master) == [log_end])


@pytest.mark.behaviour("S1-73", "S1-75", "S1-76")
def test_broken_transfers_leave_nothing_behind(master: Master) -> None:
    def held() -> tuple[int, int]:
        maps = Path("/proc/self/maps").read_text()
        return len(list(Path("/proc/self/fd").iterdir())), maps.count("commitlog")

    wait_until(lambda: not master.status().links)
    # The broker opens and closes files of its own meanwhile, but not so many.
    most = [count + 10 for count in held()]
    for _ in range(20):
        slave = PlayedSlave(master.ha_address)
        slave.report(0)
        slave.read_frame()
        slave.reset()
    wait_until(lambda: not master.status().links)
    wait_until(lambda: all(now <= allowed for now, allowed in zip(held(), most, strict=True)))


@pytest.mark.behaviour("S1-48", "S5-10")
def test_a_slave_that_lies_loses_its_connection_and_no_other_does(master: Master) -> None:
    log_end = master.status().log_end
    with (
        PlayedSlave(master.ha_address, host=_INTRUDER_HOST) as liar,
        PlayedSlave(master.ha_address) as slave,
    ):
        slave.report(log_end)
        liar.report(log_end)
        wait_until(lambda: _acked(master) == [log_end, log_end])
        liar.report(log_end + 1)
        assert liar.read_rest() == b""
        wait_until(lambda: _acked(master) == [log_end])
        master.send()
        assert slave.read_frame().log_offset == log_end
        refused = master.status().refused[-1]
        assert refused.addr.startswith(_INTRUDER_HOST)
        assert f"ack {log_end + 1} is outside [{log_end}, {log_end}]" in refused.reason


@pytest.mark.behaviour("S5-12", "S5-24")
def test_an_absurd_first_report_is_refused_and_shown_and_gets_no_byte(master: Master) -> None:
    with PlayedSlave(master.ha_address, host=_INTRUDER_HOST) as intruder:
        intruder.say(b"999999999\r\n")
        assert intruder.read_rest() == b""
    status = master.status()
    assert status.links == []
    assert "its first report is 4123389851770370361" in status.refused[-1].reason


def test_a_slave_that_was_refused_is_not_heard_for_a_while(master: Master) -> None:
    """A slave of RocketMQ 4.9 is back at once, without any pause."""
    with PlayedSlave(master.ha_address, host=_INTRUDER_HOST) as intruder:
        intruder.report(1 << 50)
        assert intruder.read_rest() == b""
    count = master.status().refused_count
    with PlayedSlave(master.ha_address, host=_INTRUDER_HOST) as again:
        again.report(1 << 50)
        assert again.is_silent(0.3)
        assert master.status().refused_count == count
        assert again.read_rest() == b""


def test_from_another_address_nothing_is_heard(master: Master) -> None:
    with PlayedSlave(master.ha_address, host=_FORBIDDEN_HOST) as stranger:
        stranger.report(0)
        assert stranger.read_rest() == b""
    assert "haAllowedAddresses" in master.status().refused[-1].reason


def test_a_second_connection_from_the_same_address_takes_the_place_of_the_first(master: Master) -> None:
    log_end = master.status().log_end
    with PlayedSlave(master.ha_address) as first, PlayedSlave(master.ha_address) as second:
        first.report(log_end)
        wait_until(lambda: len(master.status().links) == 1)
        second.report(log_end)
        assert first.read_rest() == b""
        wait_until(lambda: [link.addr for link in master.status().links] == [second.address])


@pytest.mark.behaviour("S1-57")
def test_a_send_waits_for_a_slave_of_rocketmq_only_if_its_address_counts() -> None:
    settings = {
        **_CLASSIC,
        "brokerRole": "SYNC_MASTER",
        "haCountedAddresses": _OTHER_HOST,
        "slaveTimeout": "500",
    }
    with running_master(settings) as master:
        with PlayedSlave(master.ha_address) as uncounted:
            uncounted.report(0)
            wait_until(lambda: len(master.status().links) == 1)
            assert master.send().status == "SLAVE_NOT_AVAILABLE"
        log_end = master.status().log_end
        with PlayedSlave(master.ha_address, host=_OTHER_HOST) as counted:
            counted.report(log_end)
            wait_until(lambda: _acked(master) == [log_end])
            assert master.send().status == "FLUSH_SLAVE_TIMEOUT"
            counted.report(master.status().log_end)
            wait_until(lambda: _acked(master) == [master.status().log_end])


@pytest.mark.behaviour("S1-44", "S1-46", "S1-64")
def test_an_idle_slave_gets_heartbeats_and_a_silent_one_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {**_CLASSIC, "haSendHeartbeatInterval": "100", "haHousekeepingInterval": "1000"}
    with running_master(settings) as master, caplog.at_level(logging.INFO):
        master.send()
        log_end = master.status().log_end
        with PlayedSlave(master.ha_address) as slave:
            slave.report(log_end)
            assert [slave.read_frame() for _ in range(3)] == [(log_end, b"")] * 3
            assert set(slave.read_rest()) <= set(log_end.to_bytes(12, "big") + log_end.to_bytes(8, "big"))
            address = slave.address
        wait_until(lambda: not master.status().links)
    assert f"ha housekeeping, found this connection[{address}] expired, " in caplog.text


@pytest.mark.behaviour("S1-35", "S1-56", "S1-63")
def test_the_log_tells_who_came_and_what_it_asked_for(
    master: Master, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="tanist.ha"), PlayedSlave(master.ha_address) as slave:
        slave.report(FILE_BYTES)
        slave.read_frame()
        slave.report(FILE_BYTES)
        address = slave.address
    said = [record.getMessage() for record in caplog.records]
    assert f"HAService receive new connection, {address}" in said
    assert said.count(f"slave[{address}] request offset {FILE_BYTES}") == 1
    begun = f"master transfer data from {FILE_BYTES} to slave[{address}], and slave request {FILE_BYTES}"
    assert sum(line.startswith(begun) for line in said) == 1


@pytest.mark.behaviour("S1-60")
def test_with_syncFromLastFile_an_empty_slave_begins_with_the_last_file(tmp_path: Path) -> None:  # noqa: N802
    with running_master({**_CLASSIC, "syncFromLastFile": "true"}, store=tmp_path / "store") as master:
        send_messages(master.address, 10_000, first=0)
        log_end = master.status().log_end
        start = log_end - log_end % FILE_BYTES
        assert start > 0
        with PlayedSlave(master.ha_address) as slave:
            slave.report(0)
            assert slave.read_to(log_end, start=start) == LogOnDisk.read(tmp_path / "store").data[start:]


@pytest.mark.behaviour("S1-33")
def test_a_master_that_is_started_again_has_its_port_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {**_CLASSIC, "haListenPort": str(port)}
    for _ in range(2):
        with running_master(settings, store=tmp_path / "store") as master:
            slave = PlayedSlave(master.ha_address)
            slave.report(0)
            wait_until(lambda master=master: len(master.status().links) == 1)
        # The master hung up first, so the connection lingers on its side.
        slave.read_rest()
        slave.close()
