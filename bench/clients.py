"""Our clients beside RocketMQ's Java ones, each in a process of its own, against the same broker, in turns.

The broker is Tanist's; ``clients-rocketmq`` takes Apache RocketMQ's. Bodies have 1 KiB and can not be
compressed; the topic has eight queues. Clients, broker and everything else share the machine, so rates say
little; what counts is the throughput per core: messages for each second of CPU time that the client's
process took while they were sent or read. Starts do not count, and some rounds go before, because Java
compiles what runs often.

Other Python clients run beside ours where they can: see ``other_clients``.
"""

import itertools
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import msgspec

from bench.other_clients import other_clients
from bench.processes import own_process
from bench.table import Row
from tests.support.partners import PartnerMissing
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.scenario import ScenarioProcess, StepFailed, java_clients
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_LINE = "5.3.3"
_ROUNDS = 5
_WARM_ROUNDS = 4
_MEASURED_MS = 2_000
_BODY_BYTES = 1024
_QUEUES = 8
_BACKLOG = 100_000
_PER_CORE = 0.5
_FASTEST = 1.0
_CLUSTER = "tanist-tests"

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
    is_for_all: bool = True
    """Whether the other Python clients do it too."""

    @property
    def is_read(self) -> bool:
        return not self.in_flight


_WORKS = (
    _Work("sends one at a time", in_flight=1),
    _Work("sends, 256 in flight", in_flight=256),
    _Work("backlog read with async for; Java: push consumer", is_for_all=False),
    _Work("backlog read with run(handler); Java: push consumer", is_by_handler=True),
)


class _Side:
    """The clients of one process, connected to the broker."""

    def __init__(self, name: str, process: ScenarioProcess, name_server: str) -> None:
        self.name = name
        self._process = process
        self._name_server = name_server
        self._group = name.partition(" ")[0]
        self._group_count = 0
        process.do(
            "producer", name="p", nameServer=name_server, group=f"{self._group}-p", topicQueues=_QUEUES
        )

    def fill(self, topic: str, *, count: int) -> int:
        """Put at least ``count`` messages into a topic; how many there are then."""
        done = 0
        fill = {"topic": topic, "bodyBytes": _BODY_BYTES, "durationMs": 500, "threads": 2, "batch": 64}
        while done < count:
            done += msgspec.convert(self._process.do("load", name="p", **fill), _Load).count
        return done

    @property
    def next_group(self) -> str:
        """The group that reads a backlog next."""
        return f"{self._group}-{self._group_count}"

    def rewind(self, group: str) -> None:
        """Have a group begin at the beginning of the backlog."""
        self._process.do("rewind", nameServer=self._name_server, topic="Backlog", group=group, queues=_QUEUES)

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
        group = self.next_group
        self._group_count += 1
        return self._process.do(
            "drain",
            nameServer=self._name_server,
            topic="Backlog",
            group=group,
            count=backlog,
            isByHandler=work.is_by_handler,
        )


def run() -> list[Row]:
    """Race the clients against a broker of ours."""
    return [_what_row("Tanist"), *_run(_tanist)]


def run_at_rocketmq() -> list[Row]:
    """Race them against RocketMQ's broker."""
    return [_what_row(f"RocketMQ {_LINE}"), *_run(_rocketmq)]


def _run(site: Callable[[Path], AbstractContextManager[str]]) -> list[Row]:
    try:
        with tempfile.TemporaryDirectory(prefix="tanist-bench-") as name, ExitStack() as running:
            home = Path(name)
            name_server = running.enter_context(site(home))
            java = running.enter_context(java_clients(_LINE, home / "java", flags=FULL_SPEED))
            ours = running.enter_context(own_process("bench.client_steps", home / "ours"))
            others = running.enter_context(other_clients(home, name_server, cluster=_CLUSTER))
            sides = [_Side("tanist", ours, name_server), _Side("java", java, name_server)]
            # The producers of the others want to know that the topic is there.
            sides[1].fill("Bench", count=1)
            for other in others.running:
                try:
                    sides.append(_Side(*other))
                except StepFailed as failure:
                    others.lacks[other[0]] = str(failure)
            return _race(*sides) + [_lack_row(who, why) for who, why in others.lacks.items()]
    except PartnerMissing as lack:
        raise SystemExit(f"clients: {lack}") from lack


@contextmanager
def _tanist(home: Path) -> Generator[str]:
    with (
        NameServerProcess(home / "tanist-ns") as names,
        BrokerProcess(home / "tanist", names.address, name="broker-a", **_STORE),
    ):
        yield names.address


@contextmanager
def _rocketmq(home: Path) -> Generator[str]:
    with RocketMQ(home / "rocketmq", flags=FULL_SPEED) as rocketmq:
        rocketmq.start_broker(properties=_STORE)
        yield rocketmq.name_server


def _race(ours: _Side, java: _Side, *others: _Side) -> list[Row]:
    seen, lacks = _measure(ours, java, others)
    rows = [row for work in _WORKS for row in _rows(work, seen[work, ours], seen[work, java])]
    for side in others:
        for work in _WORKS:
            if (work, side) in lacks:
                rows.append(_lack_row(f"{side.name}: {work.name}", lacks[work, side]))
            elif (work, side) in seen:
                rows.append(_other_row(side.name, work, seen[work, ours], seen[work, side]))
    return rows


def _measure(
    ours: _Side, java: _Side, others: Sequence[_Side]
) -> tuple[dict[tuple[_Work, _Side], list[_Load]], dict[tuple[_Work, _Side], str]]:
    """What each side did in each round; and why one of the others did not."""
    backlog = java.fill("Backlog", count=_BACKLOG)
    sides = (ours, java, *others)
    seen: dict[tuple[_Work, _Side], list[_Load]] = {}
    lacks: dict[tuple[_Work, _Side], str] = {}
    for number in range(-_WARM_ROUNDS, _ROUNDS):
        for work, side in itertools.product(_WORKS, sides if number % 2 else sides[::-1]):
            is_other = side in others
            if (work, side) in lacks or (is_other and not work.is_for_all):
                continue
            try:
                if is_other and work.is_read:
                    ours.rewind(side.next_group)
                load = side.run(work, backlog=backlog)
            except StepFailed as failure:
                if not is_other:
                    raise
                lacks[work, side] = str(failure)
            else:
                if number >= 0:
                    seen.setdefault((work, side), []).append(load)
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    return seen, lacks


def _other_row(name: str, work: _Work, ours: list[_Load], other: list[_Load]) -> Row:
    cost, other_cost = _cost(ours), _cost(other)
    return Row(
        f"{name}: {work.name}, messages per second of CPU",
        f"{1e-3 / cost:.1f}k",
        f"{1e-3 / other_cost:.1f}k",
        other_cost / cost,
        f"≥ {_FASTEST}",
        other_cost / cost >= _FASTEST,
    )


def _what_row(broker: str) -> Row:
    ours = f"Python {platform.python_version()}, uvloop {metadata.version('uvloop')}"
    return Row(f"clients of a broker of {broker}, 1 KiB", ours, f"Java client {_LINE}", None, "", None)


def _lack_row(what: str, why: str) -> Row:
    return Row(what, "", f"not run: {why}", None, "", None)


def _cost(loads: list[_Load]) -> float:
    """The client's CPU seconds a message."""
    return statistics.median(load.cpu_seconds / load.count for load in loads)


def _rows(work: _Work, ours: list[_Load], java: list[_Load]) -> list[Row]:
    rate, java_rate = (statistics.median(load.rate for load in loads) for loads in (ours, java))
    cost, java_cost = _cost(ours), _cost(java)
    return [
        Row(work.name, f"{rate / 1e3:.1f}k/s", f"Java {java_rate / 1e3:.1f}k/s", rate / java_rate, "", None),
        Row(
            "  the client's CPU a million messages",
            f"{cost * 1e6:.1f} s",
            f"Java {java_cost * 1e6:.1f} s",
            cost / java_cost,
            "",
            None,
        ),
        Row(
            "  messages per second of its CPU",
            f"{1e-3 / cost:.1f}k",
            f"Java {1e-3 / java_cost:.1f}k",
            java_cost / cost,
            f"≥ {_PER_CORE}",
            java_cost / cost >= _PER_CORE,
        ),
    ]
