"""The tests that made the HA port famous: a master with a real slave beside the intruder, over sockets.

The same attacks were played on a pair of Apache RocketMQ; docs/ha-port.md has both outcomes side by side.
"""

import logging
import socket
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import MAX_UNPROVEN_BYTES
from tanist.protocol.ha_link import Ack, AckKind, Heartbeat, encode_ack, encode_data_header, encode_heartbeat
from tests.support.attacked import Master, Sent, wait_until
from tests.support.attacked_pair import PATIENCE_S, assert_in_vain, hurried
from tests.support.fake_master import LIES, Lie, tell
from tests.support.false_replicas import FalseMaster, FalseSlave
from tests.support.ha_attacks import ATTACKS, HUGE, Attack, Ground, random_strings, report
from tests.support.ha_pair import (
    FILE_BYTES,
    KEYS,
    Pair,
    make_log,
    running_master,
    running_pair,
    running_slave,
)
from tests.support.intruder import Intruder
from tests.support.relay import Relay

CLASSIC_ATTACKS: Final = [
    attack for attack in ATTACKS if "session" not in attack.name and attack.name != "one byte a second"
]
"""A recorded session is one of ours; it is answered as one."""
_FLOOD_COUNT = 300
_LARGE = 4 << 20


_QUICK: Final = {"haHousekeepingInterval": "2000", "haSendHeartbeatInterval": "500"}
_CLASSIC: Final = {"haCompatibility": "classic", "haAllowedAddresses": "127.0.0.1", **_QUICK}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    make_log(folder / "master")
    with running_pair(store=folder / "master") as pair:
        yield pair


@pytest.fixture(scope="module")
def classic_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Slaves of RocketMQ may come from where the intruder is. The real slave is one of ours."""
    folder = tmp_path_factory.mktemp("classic")
    make_log(folder / "master")
    with running_pair(_CLASSIC, _QUICK, store=folder / "master") as pair:
        yield pair


@pytest.mark.behaviour("S5-11", "S5-14", "S5-17", "S5-18", "S5-19", "S5-20", "S5-21", "S5-24")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.known_bug("RMQ #1893")
def test_an_attack_gets_no_byte_of_the_log_and_changes_nothing(pair: Pair, attack: Attack) -> None:
    assert_in_vain(pair, hurried(attack))


@pytest.mark.behaviour("S5-2", "S5-3", "S5-4", "S5-11")
@pytest.mark.parametrize("attack", CLASSIC_ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_from_an_allowed_address_gets_no_further(classic_pair: Pair, attack: Attack) -> None:
    """Whoever speaks from there may read the log if it reports what can be true. These do not."""
    assert_in_vain(classic_pair, hurried(attack))


@pytest.mark.behaviour("S5-18")
def test_only_allowed_addresses_may_speak_the_classic_way() -> None:
    with running_pair({"haCompatibility": "classic", "haAllowedAddresses": "10.9.8.7"}) as pair:
        honest = Attack("an honest report", lambda ground: [[report(ground.log_end)]])
        assert_in_vain(pair, honest)


def test_the_reason_what_came_and_from_where_are_shown(pair: Pair) -> None:
    with Intruder(pair.master.ha_address) as intruder:
        intruder.connect().sendall(b"999999999\r\n")
        intruder.listen(PATIENCE_S)
        newest = pair.master.status().refused[-1]
        assert {newest.addr} == intruder.addresses
    assert newest.reason.startswith("no hello: ")
    assert newest.received == b"999999999\r\n".hex()


@pytest.mark.behaviour("S5-5", "S5-11")
@pytest.mark.known_bug("RMQ #323", "RMQ #1155", "RMQ #3015")
def test_a_waiting_send_is_not_released_by_any_attack() -> None:
    """A slave that was let in and acks nothing keeps the send waiting; all others lie meanwhile."""
    with running_master({"slaveTimeout": "2000"}) as master, FalseSlave(master.ha_address, KEYS) as stuck:
        assert stuck.is_let_in
        answers: list[Sent] = []
        waiting = threading.Thread(target=lambda: answers.append(master.send()))
        waiting.start()
        ground = Ground(log_start=0, log_end=200, session=report(0))
        with Intruder(master.ha_address) as intruder:
            for attack in ATTACKS:
                for call in attack.calls(ground)[:20]:
                    intruder.connect().sendall(b"".join(call))
            waiting.join()
        (answer,) = answers
        assert answer.status == "FLUSH_SLAVE_TIMEOUT"
        assert answer.seconds >= 2
        (link,) = master.status().links
        assert link.acked_to == 0
        assert link.lag_bytes > 0


ACKS: Final = {"beyond the end": HUGE, "back": 0}


@pytest.mark.behaviour("S5-2", "S5-4", "S5-10", "S5-11")
@pytest.mark.parametrize("offset", ACKS.values(), ids=ACKS.keys())
def test_a_proven_slave_that_lies_is_closed_and_not_believed(pair: Pair, offset: int) -> None:
    before = pair.master.status()
    with FalseSlave(pair.master.ha_address, KEYS) as liar:
        wait_until(lambda: len(pair.master.status().links) == 2)
        # It holds what it was sent, as far as anybody can tell.
        liar.say(encode_ack(Ack(AckKind.RECEIVED, LogOffset(before.log_end))))
        wait_until(lambda: pair.master.is_in_step(count=2))
        liar.say(encode_ack(Ack(AckKind.RECEIVED, LogOffset(offset))))
        assert liar.is_closed()
    wait_until(lambda: len(pair.master.status().links) == 1)
    after = pair.master.status()
    assert after.links == before.links
    assert after.refused_count == before.refused_count + 1
    assert after.refused[-1].reason.startswith(f"impossible ack: ack {offset} is outside")
    assert pair.master.send().status == "SEND_OK"


def test_a_proven_slave_that_reads_nothing_holds_up_nobody_and_keeps_no_file(tmp_path: Path) -> None:
    large = {"mappedFileSizeCommitLog": str(_LARGE)}
    first = tmp_path / "commitlog" / f"{0:020}"
    with running_pair({"fileReservedTime": "0", **large}, large, store=tmp_path) as pair:
        with FalseSlave(pair.master.ha_address, KEYS, file_bytes=_LARGE) as deaf:
            # More than all buffers on the way take.
            while pair.master.status().log_end < 5 * _LARGE:
                assert pair.master.send(bytes(1 << 20)).status == "SEND_OK"
            pair.master.delete_old_files()
            wait_until(lambda: not first.exists())
            assert pair.master.send().status == "SEND_OK"
            # Now it reads, and what it lacks is not there any more.
            assert deaf.is_closed()
        wait_until(lambda: bool(pair.master.status().refused))
        assert "the master has deleted what follows" in pair.master.status().refused[-1].reason
        pair.master.wait_in_step()


@pytest.mark.behaviour("S5-13", "S5-24")
def test_hundreds_of_random_byte_strings_cost_no_memory_and_hardly_a_line(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    before = pair.master.status()
    process = psutil.Process()
    flood(pair, seed=1)
    before_bytes = process.memory_info().rss
    with caplog.at_level(logging.INFO):
        flood(pair, seed=2)
    assert process.memory_info().rss - before_bytes < 16 << 20
    after = pair.master.status()
    assert after.refused_count == before.refused_count + 2 * _FLOOD_COUNT
    assert after.links == before.links
    assert len(after.refused) <= 64
    assert len([line for line in caplog.records if line.name == "tanist.ha.acceptor"]) <= 2


def flood(pair: Pair, *, seed: int) -> None:
    for said in random_strings(_FLOOD_COUNT, seed=seed):
        with Intruder(pair.master.ha_address) as intruder:
            intruder.connect().sendall(said)
            intruder.listen(PATIENCE_S)
            assert intruder.heard == b""


def test_silent_connections_keep_no_slave_out(pair: Pair) -> None:
    with Intruder(pair.master.ha_address) as intruder:
        for _ in range(200):
            intruder.connect()
        with FalseSlave(pair.master.ha_address, KEYS) as slave:
            assert slave.is_let_in


def test_who_begins_late_has_no_more_time_to_prove_itself(pair: Pair) -> None:
    session = bytes(pair.cable.calls[0])
    with Intruder(pair.master.ha_address) as intruder:
        connection = intruder.connect()
        assert intruder.listen(2.0) >= 2.0
        connection.sendall(session[:5])
        assert intruder.listen(PATIENCE_S) < 2.5


# Who lies to a slave.


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_a_slave_follows_nobody_who_proves_nothing(pair: Pair, lie: Lie) -> None:
    log_end = held_by(pair.slave)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pair.cable.lead_to("{}:{}".format(*listener.getsockname()))
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            heard, closed_after_s = tell(connection, lie.says(log_end), patience_s=PATIENCE_S)
    assert closed_after_s is not None
    # It said who it is, and nothing about its log.
    assert len(heard) < MAX_UNPROVEN_BYTES
    pair.cable.lead_to(pair.master.ha_address)
    pair.master.wait_in_step()
    assert held_by(pair.slave) == log_end


def frame(log_offset: int, size_bytes: int) -> bytes:
    body = bytes(64)
    good = encode_data_header(log_offset, 64, epoch=0, confirmed_to=0, body_crc=zlib.crc32(body))
    return good[:1] + size_bytes.to_bytes(4) + good[5:] + body


PROVEN_LIES: Final = {
    "a body of 2^31-1 bytes": frame(0, (1 << 31) - 1),
    "a body of 4 MiB and a byte": frame(0, (4 << 20) + 1),
    "a body of no bytes": frame(0, 0),
    "a body of another size": frame(0, 63),
    "a frame of another place": frame(4096, 64),
}


@pytest.mark.parametrize("said", PROVEN_LIES.values(), ids=PROVEN_LIES.keys())
def test_a_slave_takes_nothing_that_can_not_be_true_from_a_proven_master(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())
        with Relay(address) as cable, running_slave(cable) as slave:
            connection, _ = listener.accept()
            with FalseMaster(connection, KEYS) as master:
                assert master.is_followed
                master.say(said)
                assert master.is_closed()
            assert held_by(slave) == 0


def held_by(slave: Master) -> int:
    return slave.status().client["maxOffset"]


# A master that is deployed anew, and its slave that is not.

_WAY_OUT: Final = (
    "refused: OTHER_INCARNATION: its log is of another master, or of one redeployed: "
    "run tanist admin rebuildSlave"
)


@pytest.mark.behaviour("S5-7", "S5-8", "S5-9", "S5-10", "S5-12", "S5-15", "S5-16")
def test_the_old_slave_of_a_redeployed_master_is_refused_and_a_new_one_heals(tmp_path: Path) -> None:
    with running_master() as first, running_master() as second, Relay(first.ha_address) as cable:
        with running_slave(cable, store=tmp_path / "old") as slave:
            first.wait_in_step()
            assert [first.send().status for _ in range(3)] == ["SEND_OK"] * 3
            held = held_by(slave)
            cable.lead_to(second.ha_address)
            wait_refused(second, slave)
            assert second.send().status == "SLAVE_NOT_AVAILABLE"
            assert second.status().log_end < held
        # Restarting the old slave does not help, nor does a log that has grown beyond the old one.
        while second.status().log_end <= held:
            second.send()
        with running_slave(cable, store=tmp_path / "old") as slave:
            wait_refused(second, slave)
            assert held_by(slave) == held
            assert second.status().links == []
        # A new one is enough: the master is the same, and goes on.
        with running_slave(cable, store=tmp_path / "new") as slave:
            second.wait_in_step()
            assert second.send().status == "SEND_OK"
            assert held_by(slave) == second.status().log_end


def wait_refused(master: Master, slave: Master) -> None:
    """Wait until both sides show that and why the slave is not taken, and what to do."""
    wait_until(lambda: slave.status().client["refused"])
    assert slave.status().client["reason"] == _WAY_OUT
    assert master.status().refused[-1].reason == _WAY_OUT
    assert master.status().links == []


@pytest.mark.behaviour("S5-6")
def test_an_empty_slave_may_begin_with_the_newest_file_and_one_with_data_reports_its_end(
    tmp_path: Path,
) -> None:
    make_log(tmp_path / "master")
    heartbeats = {"haSendHeartbeatInterval": "50"}
    with (
        running_master({"syncFromLastFile": "true"}, store=tmp_path / "master") as master,
        Relay(master.ha_address) as cable,
    ):
        while (log_end := master.status().log_end) < 2 * FILE_BYTES:
            master.send(bytes(FILE_BYTES // 16))
        with running_slave(cable, store=tmp_path / "slave"):
            master.wait_in_step()
            assert [link.sent_from for link in master.status().links] == [2 * FILE_BYTES]
        with running_slave(cable, heartbeats, store=tmp_path / "slave"):
            master.wait_in_step()
            assert [link.sent_from for link in master.status().links] == [log_end]
            beat = encode_heartbeat(Heartbeat(LogOffset(log_end), 0, LogOffset(0)))
            wait_until(lambda: cable.calls[-1].endswith(beat))
