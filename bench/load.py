"""What clients that do nothing, or do not do their part, cost a broker and its other clients: `make idle`.

Ten thousand connections that say nothing, for ten minutes; a consumer that pulls and does not read while a
producer floods; and one that reads by the trickle while others send. There is no peer but the broker itself
without them.
"""

import argparse
import contextlib
import json
import multiprocessing
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from multiprocessing.synchronize import Event
from pathlib import Path

import psutil

from bench.table import Row, print_rows
from tanist.protocol import ResponseCode, encode_command
from tests.support.requests import NO_NAME_SERVER, pull_request, send_request
from tests.support.site import wait_until
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

MB = 1_000_000
_CONNECTIONS = 10_000
_SPARE_FILES = 500
_IDLE_MB = 150
_LOOK_S = 1.0
_FLOOD = 4_000
_BODY = bytes(16 << 10)
_PARKED = 5_000
_GREEDY = 400
_ROUNDS = 5
_SENDS = 2_000
_MOST_RATIO = 2.0


def run(*, minutes: float = 10.0) -> list[Row]:
    return [*idle(minutes), *stalled(), *slow()]


def idle(minutes: float) -> list[Row]:
    """Hold connections that say nothing, and look at what the broker has meanwhile."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    count = min(_CONNECTIONS, most - _SPARE_FILES)
    # By default it closes them after two minutes, which is what makes them cheap; here they stay.
    with _broker(idle_s=0) as broker, contextlib.ExitStack() as clients:
        process = psutil.Process(broker.process.pid)
        before = process.num_fds()
        for _ in range(count):
            clients.enter_context(_connect(broker.address))
        wait_until(lambda: process.num_fds() >= before + count)
        began_s, began_cpu_s, largest_mb = time.monotonic(), _cpu_s(process), 0.0
        while time.monotonic() < began_s + minutes * 60:
            largest_mb = max(largest_mb, process.memory_info().rss / MB)
            time.sleep(_LOOK_S)
        share = (_cpu_s(process) - began_cpu_s) / (time.monotonic() - began_s)
        left = process.num_fds() - before
    what = f"{count:,} idle connections for {minutes:g} min"
    is_all = count == _CONNECTIONS
    return [
        Row(
            f"{what}: memory",
            f"{largest_mb:.0f} MB",
            "",
            None,
            f"< {_IDLE_MB} MB",
            is_all and largest_mb < _IDLE_MB,
        ),
        Row("  processor", f"{share:.2%}", "", None, "< 2 %", share < 0.02),
        Row("  still there in the end", f"{left:,}", "", None, f"{count:,}", left >= count),
    ]


def stalled() -> list[Row]:
    """Flood a broker beside a consumer that asks for all of it and reads nothing."""
    with _broker() as broker, Wire(broker.address) as producer, Wire(broker.address) as waiting:
        process = psutil.Process(broker.process.pid)
        _flood(producer, 100)
        before_mb = _own_mb(process)
        park = encode_command(pull_request(queue_id=1, suspend_ms=60_000))
        waiting.send(park * _PARKED)
        with _connect(broker.address, receive_bytes=4096) as greedy:
            greedy.setblocking(False)
            # What the broker does not take any more it does not have to keep.
            with contextlib.suppress(BlockingIOError):
                greedy.sendall(encode_command(pull_request()) * _GREEDY)
            failures = _flood(producer, _FLOOD)
            grown_mb = _own_mb(process) - before_mb
        codes = [_code(waiting) for _ in range(_PARKED - 4096)]
    busy = codes.count(ResponseCode.SYSTEM_BUSY)
    flooded = f"a stalled consumer beside {_FLOOD:,} sends of 16 KiB"
    return [
        Row(f"{flooded}: memory grown", f"{grown_mb:.1f} MB", "", None, "< 10 MB", grown_mb < 10),
        Row("  sends that failed", str(failures), "", None, "0", failures == 0),
        Row(
            "  pulls too many that got SYSTEM_BUSY",
            str(busy),
            "",
            None,
            str(len(codes)),
            busy == len(codes),
        ),
    ]


def slow() -> list[Row]:
    """The 99th percentile of a producer's sends, with and without somebody who reads by the trickle."""
    alone: list[float] = []
    beside: list[float] = []
    with _broker() as broker, Wire(broker.address) as producer:
        _flood(producer, 200)
        for _ in range(_ROUNDS):
            alone.append(_p99_ms(producer))
            with _trickling(broker):
                beside.append(_p99_ms(producer))
    without_ms, with_ms = statistics.median(alone), statistics.median(beside)
    ratio = with_ms / without_ms
    return [
        Row(
            "p99 of sends beside one slow client",
            f"{with_ms:.2f} ms",
            f"{without_ms:.2f} ms without",
            ratio,
            f"<= {_MOST_RATIO:g} x",
            ratio <= _MOST_RATIO,
        )
    ]


@contextlib.contextmanager
def _broker(*, idle_s: int = 120) -> Generator[BrokerProcess]:
    with (
        tempfile.TemporaryDirectory() as folder,
        BrokerProcess(Path(folder), NO_NAME_SERVER, serverChannelMaxIdleTimeSeconds=idle_s) as broker,
    ):
        yield broker


@contextlib.contextmanager
def _trickling(broker: BrokerProcess) -> Generator[None]:
    """Somebody pulls without end and reads some bytes now and then, in a process of its own."""
    apart = multiprocessing.get_context("spawn")
    is_begun, is_over = apart.Event(), apart.Event()
    reader = apart.Process(target=_trickle, args=(broker.address, is_begun, is_over))
    reader.start()
    try:
        is_begun.wait()
        yield
    finally:
        is_over.set()
        reader.join()


def _trickle(address: str, is_begun: Event, is_over: Event) -> None:
    with _connect(address, receive_bytes=4096) as peer:
        peer.setblocking(False)
        pull = encode_command(pull_request())
        while not is_over.wait(0.01):
            with contextlib.suppress(BlockingIOError):
                peer.send(pull)
            with contextlib.suppress(BlockingIOError):
                if peer.recv(64):
                    is_begun.set()


def _connect(address: str, *, receive_bytes: int | None = None) -> socket.socket:
    host, _, port = address.rpartition(":")
    peer = socket.socket()
    if receive_bytes is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    peer.connect((host, int(port)))
    return peer


def _flood(producer: Wire, count: int) -> int:
    return sum(producer.ask(send_request(_BODY)).code != ResponseCode.SUCCESS for _ in range(count))


def _code(wire: Wire) -> int | None:
    answer = wire.receive()
    return None if answer is None else answer.code


def _p99_ms(producer: Wire) -> float:
    times: list[float] = []
    for _ in range(_SENDS):
        began_s = time.perf_counter()
        producer.ask(send_request())
        times.append((time.perf_counter() - began_s) * 1e3)
    return statistics.quantiles(times, n=100)[-1]


def _own_mb(process: psutil.Process) -> float:
    """Without the pages of the log, which are the system's to keep or to drop."""
    for line in Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024 / MB
    raise AssertionError("this system does not tell what is a process's own")


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def write_rows(rows: list[Row], record: Path | None) -> int:
    """Print them, and keep them for `make evidence`; the exit code."""
    print_rows(rows)
    if record is not None:
        kept = [
            {"what": row.what, "ours": row.ours, "target": row.target, "isMet": row.is_met} for row in rows
        ]
        record.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.is_met for row in rows) else 1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.load")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long connections are idle")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args(arguments)
    return write_rows(run(minutes=given.minutes), given.record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
