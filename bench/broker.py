"""The broker beside Apache RocketMQ's, under the same Java client, in turns.

Each side has its own name server and one master: ASYNC_FLUSH, files of the default sizes, one topic of
eight queues. The client is RocketMQ's own, one process for both sides, with bodies of 1 KiB that can not
be compressed. Broker, client and everything else share the machine, so only the ratios tell something.

The client grows faster for many rounds, as Java compiles it: a push consumer's second backlog takes half
the time of its first. So some rounds are not counted, and the sides take turns in going first: else the
second of each pair would always have the warmer client.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from bench.table import Row
from tests.support.partners import PartnerMissing
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.stock_client import Producer, StockClients
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_LINE = "5.3.3"
_ROUNDS = 4
_WARM_MS = 2_000
_WARM_DRAINS = 2
_MEASURED_MS = 2_000
_BODY_BYTES = 1024
_QUEUES = 8
_BACKLOG = 300_000
_FAST_RATE = 1.3
_LOW_P99 = 0.8
_LOW_COST = 0.5

_STORE: dict[str, object] = {
    "flushDiskType": "ASYNC_FLUSH",
    "mappedFileSizeCommitLog": 1 << 30,
    "mappedFileSizeConsumeQueue": 300_000 * 20,
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
}


@dataclass(frozen=True)
class _Work:
    """One kind of load: so many threads, each of which keeps so much under way."""

    name: str
    threads: int
    batch: int = 1
    in_flight: int = 0


_WORKS = (
    _Work("sync sends, 1 thread", 1),
    _Work("sync sends, 8 threads", 8),
    _Work("sync sends, 32 threads", 32),
    _Work("async sends, 256 in flight", 1, in_flight=256),
    _Work("batches of 64, 4 threads", 4, batch=64),
)
_DRAIN = "push consumer over a backlog"
_LATENCY_COUNT = 1_000
_LATENCY_ROUNDS = 3
_IDLE_S = 10.0
_IDLE_PERCENT = 1.0
_IDLE_MB = 120.0


class _Load(msgspec.Struct, frozen=True, rename="camel"):
    """What the client tells about one run."""

    count: int
    failures: int
    rate: float
    p50_micros: float
    p99_micros: float


@dataclass(frozen=True)
class _Figures:
    """One run, as client and broker saw it."""

    rate: float
    p50_micros: float
    p99_micros: float
    cpu_micros: float


class _Side:
    """One broker, and the producer that is connected to it."""

    def __init__(
        self, name: str, pid: int, name_server: str, clients: StockClients, producer: Producer
    ) -> None:
        self.name = name
        self.process = psutil.Process(pid)
        self._name_server = name_server
        self._clients = clients
        self._producer = producer
        self._backlog = 0
        self._drain_count = 0

    def send(self, work: _Work, *, duration_ms: int, topic: str = "Bench") -> _Figures:
        return self._measure(
            "load",
            name=self._producer.name,
            topic=topic,
            bodyBytes=_BODY_BYTES,
            durationMs=duration_ms,
            threads=work.threads,
            batch=work.batch,
            inFlight=work.in_flight,
        )[0]

    def fill_backlog(self) -> None:
        fill = {"topic": "Backlog", "bodyBytes": _BODY_BYTES, "durationMs": 500, "threads": 4, "batch": 64}
        while self._backlog < _BACKLOG:
            self._backlog += self._measure("load", name=self._producer.name, **fill)[1]

    def drain(self) -> _Figures:
        """Read the whole backlog with a new group."""
        self._drain_count += 1
        return self._measure(
            "drain",
            nameServer=self._name_server,
            topic="Backlog",
            group=f"{self.name}-{self._drain_count}",
            count=self._backlog,
        )[0]

    def wait_for_one(self) -> _Figures:
        """Send to a consumer that waits, again and again."""
        self._drain_count += 1
        return self._measure(
            "latency",
            name=self._producer.name,
            nameServer=self._name_server,
            # A new topic each time: a new group reads all that there is.
            topic=f"Latency{self._drain_count}",
            group=f"{self.name}-{self._drain_count}",
            bodyBytes=_BODY_BYTES,
            count=_LATENCY_COUNT,
        )[0]

    def _measure(self, step: str, **options: object) -> tuple[_Figures, int]:
        used_s = self._cpu_s()
        load = msgspec.convert(self._clients.process.do(step, **options), _Load)
        used_s = self._cpu_s() - used_s
        if load.failures:
            print(f"{self.name}: {load.failures} sends failed", file=sys.stderr)
        cpu_micros = used_s / load.count * 1e6
        return _Figures(load.rate, load.p50_micros, load.p99_micros, cpu_micros), load.count

    def _cpu_s(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system


def run() -> list[Row]:
    """Race the two. Brings the jars of RocketMQ with Maven if they are not here."""
    try:
        with tempfile.TemporaryDirectory(prefix="tanist-bench-") as home, _both(Path(home)) as sides:
            return _race(*sides)
    except PartnerMissing as lack:
        raise SystemExit(f"broker: {lack}") from lack


@contextmanager
def _both(home: Path) -> Generator[tuple[_Side, _Side]]:
    with ExitStack() as running:
        clients = running.enter_context(StockClients(_LINE, home / "clients", flags=FULL_SPEED))
        names = running.enter_context(NameServerProcess(home / "tanist-ns"))
        ours = running.enter_context(BrokerProcess(home / "tanist", names.address, name="broker-a", **_STORE))
        rocketmq = running.enter_context(RocketMQ(home / "rocketmq", flags=FULL_SPEED))
        theirs = rocketmq.start_broker(properties=_STORE)

        def side(name: str, pid: int, address: str) -> _Side:
            producer = clients.producer(address, topicQueues=_QUEUES)
            return _Side(name, pid, address, clients, producer)

        yield (
            side("Tanist", ours.process.pid, names.address),
            side("RocketMQ", theirs.process.pid, rocketmq.name_server),
        )


def _race(ours: _Side, peer: _Side) -> list[Row]:
    seen: dict[tuple[str, _Side], list[_Figures]] = {}
    sides = (ours, peer)
    first_rows = _idle_rows(ours.process, peer.process) + _latency_rows(ours, peer)
    for work in _WORKS:
        for side in sides:
            side.send(work, duration_ms=_WARM_MS, topic="Warm")
    for side in sides:
        side.fill_backlog()
    for _ in range(_WARM_DRAINS):
        for side in sides:
            side.drain()
    for number in range(_ROUNDS):
        in_turn = sides if number % 2 else sides[::-1]
        for work in _WORKS:
            for side in in_turn:
                figures = side.send(work, duration_ms=_MEASURED_MS)
                seen.setdefault((work.name, side), []).append(figures)
        for side in in_turn:
            seen.setdefault((_DRAIN, side), []).append(side.drain())
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    rows = first_rows
    for name in (*(work.name for work in _WORKS), _DRAIN):
        rows += _rows(name, _median(seen[name, ours]), _median(seen[name, peer]))
    return rows + _memory_rows(ours.process, peer.process)


def _median(figures: list[_Figures]) -> _Figures:
    return _Figures(
        statistics.median(one.rate for one in figures),
        statistics.median(one.p50_micros for one in figures),
        statistics.median(one.p99_micros for one in figures),
        statistics.median(one.cpu_micros for one in figures),
    )


def _rows(name: str, ours: _Figures, peer: _Figures) -> list[Row]:
    rate = ours.rate / peer.rate
    rows = [
        Row(
            name,
            f"{ours.rate / 1e3:.1f}k/s",
            f"RocketMQ {peer.rate / 1e3:.1f}k/s",
            rate,
            f"≥ {_FAST_RATE}",
            rate >= _FAST_RATE,
        )
    ]
    if name.startswith("sync"):
        rows.append(_lower("  p99", ours.p99_micros / 1e3, peer.p99_micros / 1e3, "ms", _LOW_P99))
    elif peer.p99_micros:
        rows.append(_lower("  p99", ours.p99_micros / 1e3, peer.p99_micros / 1e3, "ms", None))
    rows.append(_lower("  the broker's CPU a message", ours.cpu_micros, peer.cpu_micros, "µs", _LOW_COST))
    return rows


def _latency_rows(*sides: _Side) -> list[Row]:
    seen: list[list[_Figures]] = [[] for _ in sides]
    # The first round warms the client up.
    for _ in range(_LATENCY_ROUNDS + 1):
        for side, figures in zip(sides, seen, strict=True):
            figures.append(side.wait_for_one())
    ours, peer = (_median(figures[1:]) for figures in seen)
    return [
        _lower("send to waiting listener: p50", ours.p50_micros / 1e3, peer.p50_micros / 1e3, "ms", 1.0),
        _lower("  p99", ours.p99_micros / 1e3, peer.p99_micros / 1e3, "ms", None),
    ]


def _idle_rows(ours: psutil.Process, peer: psutil.Process) -> list[Row]:
    """What a broker costs that has producers connected and nothing to do."""
    for process in (ours, peer):
        process.cpu_percent()
    time.sleep(_IDLE_S)
    mine, theirs = ours.cpu_percent(), peer.cpu_percent()
    mine_mb, peer_mb = (process.memory_info().rss / 1e6 for process in (ours, peer))
    return [
        Row(
            "idle broker: CPU",
            f"{mine:.1f} %",
            f"RocketMQ {theirs:.1f} %",
            mine / theirs if theirs else None,
            f"< {_IDLE_PERCENT:g} %",
            mine < _IDLE_PERCENT,
        ),
        Row(
            "  RSS",
            f"{mine_mb:.0f} MB",
            f"RocketMQ {peer_mb:.0f} MB",
            mine_mb / peer_mb,
            f"< {_IDLE_MB:g} MB",
            mine_mb < _IDLE_MB,
        ),
    ]


def _memory_rows(ours: psutil.Process, peer: psutil.Process) -> list[Row]:
    mine_mb, peer_mb = (process.memory_info().rss / 1e6 for process in (ours, peer))
    return [
        _lower("the broker's RSS at the end", mine_mb, peer_mb, "MB", _LOW_COST),
        _lower("  without the pages of files", _anonymous_mb(ours), _anonymous_mb(peer), "MB", None),
    ]


def _anonymous_mb(process: psutil.Process) -> float:
    """RSS counts the pages of mapped files, which the system takes back when it needs them."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (kilobytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(kilobytes) * 1024 / 1e6


def _lower(what: str, ours: float, peer: float, unit: str, target: float | None) -> Row:
    """A figure of which less is better."""
    ratio = ours / peer
    return Row(
        what,
        f"{ours:.1f} {unit}",
        f"RocketMQ {peer:.1f} {unit}",
        ratio,
        "" if target is None else f"≤ {target}",
        None if target is None else ratio <= target,
    )
