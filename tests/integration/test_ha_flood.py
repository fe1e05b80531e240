"""The HA port of a running master under thousands of lies, with a slave in step and a send that waits.

The send needs a second slave. That one was let in, and acks nothing until the lies are over.
"""

import select
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import pytest

from tanist.model.offsets import LogOffset
from tanist.protocol import FrameDecoder, ResponseCode, encode_command
from tanist.protocol.ha_hello import MAX_UNPROVEN_BYTES
from tanist.protocol.ha_link import Ack, AckKind, encode_ack
from tests.support.attacked import JEWELS, Master, wait_until
from tests.support.false_replicas import FalseSlave
from tests.support.ha_attacks import random_strings
from tests.support.ha_flood import call_all, turns
from tests.support.ha_pair import FILE_BYTES, GROUP, KEYS, SECRET, open_master, running_slave
from tests.support.relay import Relay
from tests.support.requests import NO_NAME_SERVER, send_request
from tests.support.rocketmq.cluster import free_port
from tests.support.tanist_cluster import BrokerProcess

pytestmark = pytest.mark.takes(15)

RANDOM_COUNT = 10_000
_WARM_UP_COUNT = 2_000
_MOST_GROWN_BYTES = 8 << 20
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Scene:
    """A master, its slave in step, and a slave that has acked nothing."""

    process: BrokerProcess
    master: Master
    cable: Relay
    stuck: FalseSlave


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    process = BrokerProcess(
        tmp_path_factory.mktemp("master"),
        NO_NAME_SERVER,
        name=GROUP,
        brokerRole="SYNC_MASTER",
        haListenPort=free_port(),
        haSecret=SECRET,
        inSyncReplicas=3,
        slaveTimeout=120_000,
        haHousekeepingInterval=120_000,
        mappedFileSizeCommitLog=FILE_BYTES,
    )
    with (
        process,
        open_master(process.address) as master,
        Relay(master.ha_address) as cable,
        running_slave(cable),
    ):
        master.wait_in_step()
        with FalseSlave(master.ha_address, KEYS) as stuck:
            assert stuck.is_let_in
            wait_until(lambda: len(master.status().links) == 2)
            yield Scene(process, master, cable, stuck)


@contextmanager
def sending(scene: Scene) -> Generator[None]:
    """A send waits while the block lasts, and is answered when the second slave says that it has it."""
    host, _, port = scene.master.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S) as producer:
        before = scene.master.status().log_end
        producer.sendall(encode_command(send_request(JEWELS)))
        wait_until(lambda: scene.master.status().log_end > before)
        log_end = scene.master.status().log_end
        wait_until(lambda: log_end in [link.acked_to for link in scene.master.status().links])
        yield
        assert select.select([producer], [], [], 0) == ([], [], [])
        scene.stuck.say(encode_ack(Ack(AckKind.RECEIVED, LogOffset(log_end))))
        (answer,) = FrameDecoder().feed(producer.recv(1 << 16))
        assert answer.code == ResponseCode.SUCCESS


def assert_in_vain(scene: Scene, calls: list[list[bytes]]) -> None:
    """Make these calls: none hears of the log, and all that the master shows stays but whom it refused."""
    before = scene.master.status()
    heard = call_all(scene.master.ha_address, calls)
    assert len(heard) == len(calls)
    assert max(map(len, heard)) <= MAX_UNPROVEN_BYTES
    assert not any(JEWELS in said for said in heard)
    after = scene.master.status()
    # The same slaves on the same connections, with what they acked and lack.
    assert after.links == before.links
    assert (after.log_end, after.in_sync_count) == (before.log_end, before.in_sync_count)
    assert after.refused_count == before.refused_count + len(calls)


def rss_bytes(scene: Scene) -> int:
    return psutil.Process(scene.process.process.pid).memory_info().rss


@pytest.mark.behaviour("S5-11", "S5-14", "S5-19", "S5-24")
def test_every_prefix_of_a_recorded_session_is_in_vain(scene: Scene) -> None:
    session = bytes(scene.cable.calls[0])
    with sending(scene):
        assert_in_vain(scene, [turns(session, end) for end in range(len(session) + 1)])


@pytest.mark.behaviour("S5-11", "S5-13", "S5-14", "S5-24")
def test_10000_random_byte_strings_are_in_vain_and_cost_no_memory(scene: Scene) -> None:
    with sending(scene):
        assert_in_vain(scene, [[said] for said in random_strings(_WARM_UP_COUNT, seed=1)])
        before_bytes = rss_bytes(scene)
        assert_in_vain(scene, [[said] for said in random_strings(RANDOM_COUNT, seed=2)])
        grown = rss_bytes(scene) - before_bytes
        assert grown < _MOST_GROWN_BYTES, f"grew by {grown} bytes"
