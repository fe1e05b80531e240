"""``python -m bench.push_profile``: whose CPU time it is that a push consumer's backlog takes, and what for.

The backlog of the row of java-sends, read by RocketMQ's Java client from Tanist and from RocketMQ in turns.
`perf` counts system calls and takes samples of broker and client in one round more; the text that is printed
is kept in ``docs/profiles/push.txt``.
"""

import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.broker_sides import Side, both_sides
from bench.lean_client import Load

_BACKLOG = 300_000
_WARM_ROUNDS = 2
_ROUNDS = 3
_CALLS = ("read", "recvfrom", "readv", "write", "writev", "sendto", "sendmsg", "epoll_wait", "futex")
_EVENTS = (*(f"syscalls:sys_enter_{call}" for call in _CALLS), "context-switches")
_WAITING = 65_535
"""The most that the client lets one say."""
_SAMPLES_A_SECOND = 999
_LEAST_SHARE = 0.015
_SHOWN_EVENTS = {"context-switches": "switches of threads"}
_NUMBER = re.compile(r"[-_#]?\d[\d.]*_?$")


@dataclass
class _Process:
    """A broker or its client."""

    pid: int
    micros: list[float] = field(default_factory=list[float])
    """Of CPU time for a message, in each round."""
    calls: Counter[str] = field(default_factory=Counter[str])
    threads: Counter[str] = field(default_factory=Counter[str])
    places: Counter[str] = field(default_factory=Counter[str])

    @property
    def cost(self) -> float:
        return statistics.median(self.micros)


@dataclass
class _Profile:
    """What reading from one side took."""

    broker: _Process
    client: _Process
    rates: list[float] = field(default_factory=list[float])
    watched_count: int = 0
    """Of messages in the round in which calls and samples were taken."""

    def note(self, load: Load, broker_s: float) -> None:
        self.rates.append(load.rate)
        for process, used_s in ((self.broker, broker_s), (self.client, load.cpu_seconds)):
            process.micros.append(used_s / load.count * 1e6)


def run() -> Iterable[str]:
    """The lines of the profile."""
    with tempfile.TemporaryDirectory(prefix="tanist-profile-") as home, both_sides(Path(home)) as sides:
        for side in sides:
            side.fill_backlog(_BACKLOG)
        yield f"RocketMQ's Java push consumer reads {_BACKLOG:,} messages of 1 KiB in 8 queues, 32 a pull."
        yield f"On {psutil.cpu_count()} cores; medians of {_ROUNDS} rounds of each side, in turns.\n"
        profiles = _measure(sides)
        yield "The client as it comes: it rests for 50 ms once 1,000 messages of a queue wait to be handled."
        yield from _summary(profiles)
        yield f"\nThe client told to rest only once {_WAITING:,} wait (pullThresholdForQueue), so never."
        yield from _summary(_measure(sides, waiting=_WAITING))
        yield "\nWhere the time goes, the client as it comes:\n"
        for side in sides:
            profile = profiles[side.name]
            _look_into(side, profile, Path(home))
            yield from _details(f"{side.name}: the broker", profile.broker, profile.watched_count)
            yield from _details(f"{side.name}: its client", profile.client, profile.watched_count)
            yield from _bound(profile.client)


def _measure(sides: Sequence[Side], *, waiting: int = 0) -> dict[str, _Profile]:
    profiles = {side.name: _Profile(_Process(side.process.pid), _Process(side.client_pid)) for side in sides}
    for number in range(-_WARM_ROUNDS, _ROUNDS):
        for side in sides if number % 2 else sides[::-1]:
            load, broker_s = side.drain(waiting=waiting)
            if number >= 0:
                profiles[side.name].note(load, broker_s)
    return profiles


def _look_into(side: Side, profile: _Profile, home: Path) -> None:
    """One more round, which is not timed: to look has its price."""
    with _watched(profile.broker, home), _watched(profile.client, home):
        profile.watched_count = side.drain()[0].count


@contextmanager
def _watched(process: _Process, home: Path) -> Generator[None]:
    """Count calls and take samples of a process meanwhile."""
    counts, samples = home / f"{process.pid}.stat", home / f"{process.pid}.perf"
    pid = str(process.pid)
    stat = ["perf", "stat", "-x,", "-o", str(counts), "-e", ",".join(_EVENTS), "-p", pid]
    record = ["perf", "record", "-q", "-F", str(_SAMPLES_A_SECOND), "-o", str(samples), "-p", pid]
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in (stat, record)
    ]
    try:
        yield
    finally:
        for one in running:
            one.send_signal(2)  # As from a keyboard: it writes down what it has.
            one.wait()
    for line in counts.read_text().splitlines():
        value, _, event, *_ = [*line.split(","), "", ""]
        if value.isdigit():
            process.calls[event.removeprefix("syscalls:sys_enter_")] += int(value)
    for command, place in _samples(samples):
        process.threads[_NUMBER.sub("", command)] += 1
        process.places[place] += 1


def _samples(path: Path) -> Generator[tuple[str, str]]:
    """The thread of each sample, and which code it was in: the kernel's and C's by name, Java's as one."""
    fields = ["perf", "script", "-i", str(path), "-F", "comm,ip,sym,dso"]
    told = subprocess.run(fields, capture_output=True, text=True, check=True).stdout
    for line in told.splitlines():
        found = re.match(r"\s*(.+?)\s+[0-9a-f]{6,16} (.*) \((.*)\)$", line)
        if found is None:
            continue
        command, symbol, where = found.groups()
        name = Path(where.strip("[]")).name
        if "kernel" in where:
            yield command, f"kernel {symbol}"
        elif name.startswith(("perf-", "anon", "unknown", "//anon", "heap")) or "JIT" in where:
            yield command, "code that was compiled as it ran"
        elif name == "libjvm.so":
            yield command, name
        else:
            yield command, f"{name} {symbol}"


def _summary(profiles: dict[str, _Profile]) -> Generator[str]:
    head = ("", "messages/s", "the broker's CPU", "the client's CPU", "of all cores busy")
    yield "{:10} {:>12} {:>18} {:>18} {:>20}".format(*head)
    for name, profile in profiles.items():
        rate = statistics.median(profile.rates)
        ours, client = profile.broker.cost, profile.client.cost
        share = (ours + client) * rate / 1e6 / (psutil.cpu_count() or 1)
        yield f"{name:10} {rate:12,.0f} {ours:15.2f} µs {client:15.2f} µs {share:20.0%}"


def _details(what: str, process: _Process, count: int) -> Generator[str]:
    yield f"{what}, {process.cost:.2f} µs of CPU a message"
    calls = ", ".join(
        f"{_SHOWN_EVENTS.get(name, name)} {number / count * 1000:.1f}"
        for name, number in process.calls.most_common()
        if number > count / 10_000
    )
    yield f"  for 1,000 messages: {calls}"
    for counted in (process.threads, process.places):
        total = counted.total()
        for name, number in counted.most_common():
            if number < total * _LEAST_SHARE:
                break
            yield f"  {number / total:6.1%} {number / total * process.cost:7.2f} µs  {name}"
        yield ""


def _bound(client: _Process) -> Generator[str]:
    """What no broker can change: all that comes over one connection one thread of the client reads."""
    ((name, number),) = client.threads.most_common(1)
    micros = number / client.threads.total() * client.cost
    yield f"Its thread {name} takes {micros:.2f} µs a message, so at most {1e3 / micros:.0f}k a second.\n"


if __name__ == "__main__":
    for text in run():
        print(text, flush=True)
    sys.exit(0)
