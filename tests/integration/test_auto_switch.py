"""Replicas under a controller, as processes: what a killed, frozen or lonely master means for producers."""

import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.protocol import ResponseCode, encode_command
from tanist.protocol.ha_autoswitch import (
    MasterFrameDecoder,
    MasterHandshake,
    SlaveHandshake,
    encode_slave_handshake,
    encode_slave_report,
)
from tanist.store.diverged import diverged_folders, read_diverged, read_report
from tests.support.attacked import wait_until
from tests.support.group_senders import GroupSenders, bodies_at
from tests.support.ha_pair import open_master
from tests.support.replicated_log import ends_equal
from tests.support.requests import TOPIC, send_request
from tests.support.tanist_cluster import BrokerProcess
from tests.support.tanist_group import NAME, GroupProcess
from tests.support.wire import Wire

SOME = 200
LEASE_S = 3.0
"""The default of controllerHeartBeatTimeoutMills: no lease lasts longer."""
BIG = 1 << 20
MORE_THAN_A_LINK_HOLDS = 24
"""So many big messages do not fit into what the system buffers between two processes."""


@contextmanager
def _loaded_group(directory: Path) -> Generator[tuple[GroupProcess, GroupSenders]]:
    """A group of two, and senders that have begun; at the end it is whole, and nothing is lost."""
    with GroupProcess(directory) as group:
        with GroupSenders([replica.address for replica in group.replicas]) as senders:
            senders.wait_for(SOME)
            yield group, senders
        group.wait_in_step()
        master, (slave,) = group.master(), group.slaves()
        assert senders.lost(bodies_at(master.address)) == []
        wait_until(lambda: ends_equal(master.store, slave.store))
        for replica in group.replicas:
            assert "Traceback" not in replica.process.output()


@pytest.mark.behaviour("S2-44", "S2-45")
def test_a_killed_master_is_replaced_comes_back_as_slave_and_takes_nothing_acknowledged_with_it(
    tmp_path: Path,
) -> None:
    with _loaded_group(tmp_path) as (group, senders):
        old = group.master()
        old.kill()
        new = group.wait_for_master(besides=old)
        senders.wait_for(SOME)
        old.restart()
        group.wait_in_step()
        senders.wait_for(SOME)
        assert group.master() is new


def test_what_a_killed_master_had_alone_is_kept_aside_when_it_comes_back(tmp_path: Path) -> None:
    with GroupProcess(tmp_path) as group:
        old, (new,) = group.master(), group.slaves()
        bodies = {b"alone %d " % number + bytes(BIG) for number in range(MORE_THAN_A_LINK_HOLDS)}
        with Wire(old.address) as wire:
            assert wire.ask(send_request(b"of both")).code == ResponseCode.SUCCESS
            new.pause()
            for body in sorted(bodies):
                wire.send(encode_command(send_request(body)))
            wait_until(lambda: _stored_bytes(old) > len(bodies) * BIG)
            old.kill()
        new.resume()
        group.wait_for_master(besides=old)
        held = bodies_at(new.address)
        old.restart()
        group.wait_in_step()
        wait_until(lambda: ends_equal(new.store, old.store))
        assert b"of both" in held
        assert bodies - held
        assert set(_diverged_bodies(old)) == bodies - held


def _stored_bytes(broker: BrokerProcess) -> int:
    """What the files of its log hold, but for the zeros at the end of the last one."""
    files = sorted((broker.store / "commitlog").iterdir())
    return sum(len(file.read_bytes().rstrip(b"\0")) for file in files)


def _diverged_bodies(broker: BrokerProcess) -> list[bytes]:
    (folder,) = diverged_folders(broker.store)
    report = read_report(folder)
    assert report is not None
    assert report.topics == {TOPIC: report.message_count}
    return [bytes(record.body) for record in read_diverged(folder, report)]


@pytest.mark.behaviour("S2-53")
def test_a_frozen_master_acknowledges_nothing_when_it_wakes_after_its_successor_began(
    tmp_path: Path,
) -> None:
    with _loaded_group(tmp_path) as (group, senders), Wire(group.master().address) as wire:
        old = group.master()
        old.pause()
        group.wait_for_master(besides=old)
        senders.wait_for(SOME)
        late = [b"late %d" % number for number in range(SOME)]
        for opaque, body in enumerate(late, 1):
            request = send_request(body)
            request.opaque = opaque
            wire.send(encode_command(request))
        old.resume()
        answers = [wire.receive() for _ in late]
        assert [one for one in answers if one is not None and one.code == ResponseCode.SUCCESS] == []
        group.wait_in_step()
        assert bodies_at(group.master().address).isdisjoint(late)


@pytest.mark.behaviour("S2-54")
@pytest.mark.takes(11)
def test_sends_go_on_without_a_controller_and_a_master_that_dies_meanwhile_is_replaced_once_it_is_back(
    tmp_path: Path,
) -> None:
    with _loaded_group(tmp_path) as (group, senders):
        old = group.master()
        group.controller.kill()
        senders.wait_for(SOME, after_s=time.monotonic() + LEASE_S)
        old.kill()
        group.controller.restart()
        group.wait_for_master(besides=old)
        senders.wait_for(SOME)
        old.restart()


def test_a_slave_with_an_id_that_the_controller_never_gave_does_not_count(tmp_path: Path) -> None:
    with GroupProcess(
        tmp_path,
        replicas=1,
        haCompatibility="autoswitch",
        haAllowedAddresses="127.0.0.1",
        haCountedAddresses="127.0.0.1",
    ) as group:
        replica = group.master()
        with open_master(replica.address) as master:
            host, _, port = master.ha_address.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=10) as stranger:
                stranger.sendall(encode_slave_handshake(SlaveHandshake(9)))
                (told,) = MasterFrameDecoder().feed(stranger.recv(1 << 16))
                assert isinstance(told, MasterHandshake)
                stranger.sendall(encode_slave_report(told.log_end))
                replica.process.wait_for_output("sync state set is refused", timeout_s=10)
                # It acks nothing of what follows, and nobody waits for it.
                assert [master.send().status for _ in range(3)] == ["SEND_OK"] * 3
                assert len(master.status().links) == 1
        assert group.view.group(NAME).not_in_sync_replicas == []
        assert [member.broker_id for member in group.view.group(NAME).in_sync_replicas] == [1]
