"""Our clients beside RocketMQ's Java ones, each in a process of its own, against the same broker, in turns.

The broker is Tanist's; ``clients-rocketmq`` takes Apache RocketMQ's. Bodies have 1 KiB and can not be
compressed; the topic has eight queues. Clients, broker and everything else share the machine, so rates say
little; what counts is the throughput per core: messages for each second of CPU time that the client's
process took while they were sent or read. Starts do not count, and some rounds go before, because Java
compiles what runs often.

Other Python clients run beside ours where they can: see ``other_clients``.
"""

import statistics
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.table import Row
from tests.support.partners import PartnerMissing
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.scenario import ScenarioProcess, java_clients
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_LINE = "5.3.3"
_ROUNDS = 5
_WARM_ROUNDS = 2
_MEASURED_MS = 2_000
_BODY_BYTES = 1024
_QUEUES = 8
_BACKLOG = 100_000
_PER_CORE = 0.5
_ANY_GOOD = 1.0

_STORE: dict[str, object] = {
    "flushDiskType": "ASYNC_FLUSH",
    "mappedFileSizeCommitLog": 1 << 30,
    "mappedFileSizeConsumeQueue": 300_000 * 20,
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
}


class _Load(msgspec.Struct, frozen=True, rename="camel"):
    """What a process tells of one run."""

    count: int
    rate: float
    cpu_seconds: float
    failures: int = 0


@dataclass(frozen=True)
class _Work:
    """One kind of load: sends with so many on their way, or a backlog that is read."""

    name: str
    in_flight: int = 0
    is_by_handler: bool = False

    @property
    def is_read(self) -> bool:
        return not self.in_flight


_WORKS = (
    _Work("sends one at a time", in_flight=1),
    _Work("sends, 256 in flight", in_flight=256),
    _Work("backlog read with async for; Java: push consumer"),
    _Work("backlog read with run(handler); Java: push consumer", is_by_handler=True),
)


class _Side:
    """The clients of one process, connected to the broker."""

    def __init__(self, name: str, process: ScenarioProcess, name_server: str) -> None:
        self.name = name
        self._process = process
        self._name_server = name_server
        self._group_count = 0
        process.do("producer", name="p", nameServer=name_server, group=f"{name}-p", topicQueues=_QUEUES)

    def fill(self, topic: str, *, count: int) -> int:
        """Put at least ``count`` messages into a topic; how many there are then."""
        done = 0
        fill = {"topic": topic, "bodyBytes": _BODY_BYTES, "durationMs": 500, "threads": 2, "batch": 64}
        while done < count:
            done += msgspec.convert(self._process.do("load", name="p", **fill), _Load).count
        return done

    def run(self, work: _Work, *, backlog: int) -> _Load:
        load = msgspec.convert(self._read(work, backlog) if work.is_read else self._send(work), _Load)
        if load.failures:
            print(f"{self.name}: {load.failures} sends failed", file=sys.stderr)
        return load

    def _send(self, work: _Work) -> object:
        return self._process.do(
            "load",
            name="p",
            topic="Bench",
            bodyBytes=_BODY_BYTES,
            durationMs=_MEASURED_MS,
            threads=1,
            batch=1,
            # The Java client sends in turn, without a callback, if none are in flight.
            inFlight=work.in_flight if work.in_flight > 1 else 0,
        )

    def _read(self, work: _Work, backlog: int) -> object:
        self._group_count += 1
        return self._process.do(
            "drain",
            nameServer=self._name_server,
            topic="Backlog",
            group=f"{self.name}-{self._group_count}",
            count=backlog,
            isByHandler=work.is_by_handler,
        )


def run() -> list[Row]:
    """Race the clients against a broker of ours."""
    return _run(_tanist)


def run_at_rocketmq() -> list[Row]:
    """Race them against RocketMQ's broker."""
    return _run(_rocketmq)


def _run(site: "_Site") -> list[Row]:
    try:
        with tempfile.TemporaryDirectory(prefix="tanist-bench-") as home, ExitStack() as running:
            name_server = running.enter_context(site(Path(home)))
            java = running.enter_context(java_clients(_LINE, Path(home) / "java", flags=FULL_SPEED))
            ours = running.enter_context(_our_clients(Path(home) / "ours"))
            return _race(_Side("tanist", ours, name_server), _Side("java", java, name_server))
    except PartnerMissing as lack:
        raise SystemExit(f"clients: {lack}") from lack
