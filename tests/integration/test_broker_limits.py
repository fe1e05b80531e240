"""What connections cost a broker: many that say nothing, and many that do not do their part."""

import contextlib
import resource
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tanist.protocol import ResponseCode, encode_command
from tests.support.requests import NO_NAME_SERVER, pull_request, send_request
from tests.support.site import wait_until
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

MIB = 1 << 20
HELD_BYTES = 32 * MIB
_CLIENT_FILES = 6000
MOST_PARKED = 4096


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open thousands of sockets, or skip the test where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _CLIENT_FILES:
        pytest.skip(f"at most {hard} files may be open, and the test needs {_CLIENT_FILES}: raise ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, _CLIENT_FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rss_bytes(broker: BrokerProcess) -> int:
    return psutil.Process(broker.process.pid).memory_info().rss


def file_count(broker: BrokerProcess) -> int:
    return psutil.Process(broker.process.pid).num_fds()


def cpu_s(broker: BrokerProcess) -> float:
    times = psutil.Process(broker.process.pid).cpu_times()
    return times.user + times.system


def connect(broker: BrokerProcess, *, receive_bytes: int | None = None) -> socket.socket:
    host, _, port = broker.address.rpartition(":")
    client = socket.socket()
    client.settimeout(10)
    if receive_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.connect((host, int(port)))
    return client


def check_serves(broker: BrokerProcess) -> None:
    with Wire(broker.address) as wire:
        assert wire.ask(send_request(b"still here")).code == ResponseCode.SUCCESS
        assert wire.ask(pull_request()).code == ResponseCode.SUCCESS


def test_an_idle_broker_takes_little_memory_and_next_to_no_processor(tmp_path: Path) -> None:
    # Files of the default sizes: what is mapped and not touched costs nothing.
    sizes: dict[str, Any] = {
        "mappedFileSizeCommitLog": 1 << 30,
        "mappedFileSizeConsumeQueue": 6_000_000,
        "maxHashSlotNum": 5_000_000,
        "maxIndexNum": 20_000_000,
    }
    with BrokerProcess(tmp_path, NO_NAME_SERVER, **sizes) as broker:
        check_serves(broker)
        shares: list[float] = []
        for _ in range(3):
            start_s, start_cpu_s = time.monotonic(), cpu_s(broker)
            time.sleep(2)
            shares.append((cpu_s(broker) - start_cpu_s) / (time.monotonic() - start_s))
        print(f"idle: {rss_bytes(broker) / MIB:.0f} MiB, {min(shares):.2%} of a processor")
        assert rss_bytes(broker) < 120 * MIB
        assert min(shares) < 0.01


@pytest.mark.usefixtures("many_files")
def test_five_thousand_idle_connections_fit_into_400_mb(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, NO_NAME_SERVER) as broker, contextlib.ExitStack() as clients:
        before_count = file_count(broker)
        for _ in range(5000):
            clients.enter_context(connect(broker))
        wait_until(lambda: file_count(broker) >= before_count + 5000)
        check_serves(broker)
        print(f"5,000 connections: {rss_bytes(broker) / MIB:.0f} MiB")
        assert rss_bytes(broker) < 400_000_000


@pytest.mark.usefixtures("many_files")
def test_a_thousand_peers_that_pull_and_never_read_cost_a_bounded_buffer(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path, NO_NAME_SERVER, serverMaxHeldBytes=HELD_BYTES) as broker,
        contextlib.ExitStack() as clients,
    ):
        with Wire(broker.address) as wire:
            for _ in range(4):
                assert wire.ask(send_request(bytes(64 << 10))).code == ResponseCode.SUCCESS
        before_bytes = rss_bytes(broker)
        # Each wants more than the kernel takes for it, and together they want gigabytes.
        greedy = encode_command(pull_request()) * 20
        for _ in range(1000):
            client = clients.enter_context(connect(broker, receive_bytes=4096))
            client.sendall(greedy)
        broker.process.wait_for_output("cause=NOT_READING", timeout_s=60)
        check_serves(broker)
        grown_bytes = rss_bytes(broker) - before_bytes
        print(f"1,000 peers that do not read: {grown_bytes / MIB:.0f} MiB more")
        assert grown_bytes < 4 * HELD_BYTES


def test_a_consumer_that_stalls_under_a_flood_is_told_to_wait_and_costs_next_to_nothing(
    tmp_path: Path,
) -> None:
    with BrokerProcess(tmp_path, NO_NAME_SERVER) as broker, Wire(broker.address) as stalled:
        check_serves(broker)
        before_bytes = rss_bytes(broker)
        # It asks for more than it may have waiting, and then for all that comes, and reads nothing of it.
        stalled.send(encode_command(pull_request(queue_id=1, suspend_ms=60_000)) * (MOST_PARKED + 100))
        with connect(broker, receive_bytes=4096) as greedy, Wire(broker.address) as producer:
            greedy.setblocking(False)
            for _ in range(500):
                with contextlib.suppress(BlockingIOError):
                    greedy.send(encode_command(pull_request()))
                assert producer.ask(send_request(bytes(16 << 10))).code == ResponseCode.SUCCESS
            # The pages of the log count too: all that was sent, and hardly more.
            assert rss_bytes(broker) - before_bytes < 40 * MIB
        answers = [stalled.receive() for _ in range(100)]
        assert {answer and answer.code for answer in answers} == {ResponseCode.SYSTEM_BUSY}


@pytest.mark.usefixtures("many_files")
def test_a_thousand_peers_that_send_half_a_frame_cost_a_bounded_buffer(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path, NO_NAME_SERVER, serverMaxHeldBytes=HELD_BYTES) as broker,
        contextlib.ExitStack() as clients,
    ):
        check_serves(broker)
        before_bytes = rss_bytes(broker)
        half = struct.pack(">II", 4 * MIB, 100) + bytes(512 << 10)
        for _ in range(1000):
            client = clients.enter_context(connect(broker))
            # The broker may have had enough while this is on its way.
            with contextlib.suppress(ConnectionError):
                client.sendall(half)
        broker.process.wait_for_output("slow peers hold too much memory", timeout_s=60)
        check_serves(broker)
        grown_bytes = rss_bytes(broker) - before_bytes
        print(f"1,000 halves of a frame: {grown_bytes / MIB:.0f} MiB more")
        assert grown_bytes < 4 * HELD_BYTES


def test_peers_that_end_in_the_middle_of_a_frame_are_given_up(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path, NO_NAME_SERVER, serverFrameTimeoutMillis=300) as broker,
        contextlib.ExitStack() as clients,
    ):
        silent = [clients.enter_context(connect(broker)) for _ in range(50)]
        for client in silent:
            client.sendall(encode_command(send_request(b"half"))[:-2])
        for client in silent:
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        broker.process.wait_for_output("cause=HALF_FRAME", timeout_s=5)
        check_serves(broker)


def test_a_broker_opens_as_many_files_as_it_may(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    try:
        broker = BrokerProcess(tmp_path, NO_NAME_SERVER)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with broker:
        assert psutil.Process(broker.process.pid).rlimit(psutil.RLIMIT_NOFILE) == (hard, hard)
