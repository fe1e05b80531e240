"""A master and its slaves over real sockets: what is replicated, and how they go on when one was away."""

import logging
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode
from tanist.protocol.ha_link import FRAME_BYTES
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import GetMaxOffsetRequest
from tests.support.attacked import Master, wait_until
from tests.support.ha_pair import running_master, running_slave
from tests.support.relay import Relay
from tests.support.replicated_log import LogOnDisk, ends_equal, send_messages
from tests.support.requests import TOPIC
from tests.support.tls import HA_MASTER, ha_slave
from tests.support.wire import Wire

_LIMIT_BYTES = 1 << 20


@contextmanager
def _pair(
    root: Path, *, master: Mapping[str, str] = {}, slave: Mapping[str, str] = {}
) -> Generator[tuple[Master, Master]]:
    with (
        running_master(master, store=root / "master") as first,
        Relay(first.ha_address) as cable,
        running_slave(cable, slave, store=root / "slave") as second,
    ):
        first.wait_in_step()
        yield first, second


def _max_offset(broker: Master) -> int:
    with Wire(broker.address) as wire:
        header = GetMaxOffsetRequest(topic=TOPIC, queue_id=0)
        answer = wire.ask(Command.request(RequestCode.GET_MAX_OFFSET, header))
        return answer.header(QueueOffsetResponse).queue_offset


@pytest.mark.behaviour("S1-43", "S1-77", "S1-99")
def test_every_slave_has_the_masters_bytes_and_serves_them(tmp_path: Path) -> None:
    asynchronous = {"brokerRole": "ASYNC_MASTER"}
    with running_master(asynchronous, store=tmp_path / "master") as master, Relay(master.ha_address) as cable:
        send_messages(master.address, 3000, first=0)
        with (
            running_slave(cable, store=tmp_path / "1") as first,
            running_slave(cable, store=tmp_path / "2", broker_id=2) as second,
        ):
            master.wait_in_step(count=2)
            send_messages(master.address, 3000, first=3000)
            master.wait_in_step(count=2)
            for slave in (first, second):
                wait_until(lambda slave=slave: _max_offset(slave) == 6000)
    for name in ("1", "2"):
        assert ends_equal(tmp_path / "master", tmp_path / name)
    assert LogOnDisk.read(tmp_path / "1").record_count == 6000


@pytest.mark.behaviour("S1-79", "S1-81", "S1-86")
def test_a_cut_link_goes_on_where_it_was(tmp_path: Path) -> None:
    with (
        running_master(store=tmp_path / "master") as master,
        Relay(master.ha_address) as cable,
        running_slave(cable, store=tmp_path / "slave"),
    ):
        for round_number in range(3):
            master.wait_in_step()
            cable.cut()
            wait_until(lambda: not master.status().links)
            cable.mend()
            master.wait_in_step()
            send_messages(master.address, 1000, first=round_number * 1000)
        master.wait_in_step()
    assert ends_equal(tmp_path / "master", tmp_path / "slave")
    assert LogOnDisk.read(tmp_path / "slave").record_count == 3000


def test_a_slave_is_sent_to_no_faster_than_the_settings_say(tmp_path: Path) -> None:
    limited = {
        "brokerRole": "ASYNC_MASTER",
        "haFlowControlEnable": "true",
        "maxHaTransferByteInSecond": str(_LIMIT_BYTES),
    }
    with running_master(limited, store=tmp_path / "master") as master, Relay(master.ha_address) as cable:
        send_messages(master.address, 20_000, first=0)
        began_s = time.monotonic()
        with running_slave(cable, store=tmp_path / "slave"):
            master.wait_in_step()
            took_s = time.monotonic() - began_s
    log_bytes = len(LogOnDisk.read(tmp_path / "slave").data)
    # A tenth of a second may go at once, and a frame that is begun goes as a whole.
    least_s = (log_bytes - FRAME_BYTES) / _LIMIT_BYTES - 0.1
    assert took_s > least_s > 0.5


def test_both_go_on_after_a_restart_of_each(tmp_path: Path) -> None:
    for number in range(3):
        with _pair(tmp_path) as (master, _):
            send_messages(master.address, 1000, first=number * 1000)
            master.wait_in_step()
    assert ends_equal(tmp_path / "master", tmp_path / "slave")
    assert LogOnDisk.read(tmp_path / "slave").record_count == 3000


@pytest.mark.known_bug("KIP-966")
def test_a_slave_that_promises_its_disk_acks_what_is_on_it(tmp_path: Path) -> None:
    with _pair(tmp_path, slave={"haAckMode": "flushed"}) as (master, _):
        send_messages(master.address, 1000, first=0)
        master.wait_in_step()
        (link,) = master.status().links
        assert link.ack_kind == "flushed"


def test_two_sides_that_show_their_certificates_need_no_secret(tmp_path: Path) -> None:
    with _pair(tmp_path, master=HA_MASTER, slave=ha_slave("client")) as (master, _):
        send_messages(master.address, 2000, first=0)
        master.wait_in_step()
    assert ends_equal(tmp_path / "master", tmp_path / "slave")


def test_whoever_has_a_strangers_certificate_or_none_is_not_served(tmp_path: Path) -> None:
    with running_master(HA_MASTER | {"brokerRole": "ASYNC_MASTER"}) as master:
        send_messages(master.address, 10, first=0)
        with Relay(master.ha_address) as cable:
            for settings in (ha_slave("stranger"), {}):
                calls = len(cable.calls)
                with running_slave(cable, settings) as slave:
                    wait_until(lambda calls=calls: len(cable.calls) >= calls + 2)
                    assert slave.status().client["maxOffset"] == 0
                    assert master.status().links == []
        assert master.status().refused_counts["TLS handshake failed"] >= 4
        reasons = {peer.reason for peer in master.status().refused}
        assert any("CERTIFICATE_VERIFY_FAILED" in reason for reason in reasons)


def test_two_slaves_with_the_same_id_are_told_of_and_take_turns_more_and_more_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with running_master() as master, Relay(master.ha_address) as cable, running_slave(cable):
        master.wait_in_step()
        with running_slave(cable):
            # The pauses double: eight turns take most of a second, and a third of that if each began anew.
            began_s = time.monotonic()
            wait_until(lambda: caplog.text.count("slave left") >= 8)
            took_s = time.monotonic() - began_s
    assert took_s > 0.5
    assert caplog.text.count("if these are two, give each its own brokerId") == 1
