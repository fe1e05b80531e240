"""How long nobody can write or read after a fault of the master, seen by six kinds of clients."""

import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.controlled_groups import BROKER, TOPIC, ControlledGroup, Member
from bench.failover_readers import Readers
from bench.lean_client import send_request
from bench.processes import own_process
from tanist.protocol import ResponseCode
from tests.support.controllers import ControllerView
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.stock_client import Producer, StockClients, store_host
from tests.support.wire import Wire

_LINE = "5.3.3"
_POLL_S = 0.005
_LIMIT_MS = 75_000
_PROBE_S = 1.0
_NS = 1_000_000_000


@dataclass(frozen=True)
class Fault:
    """What is done to a master, and what brings it back."""

    name: str
    strike: Callable[[Member], None]
    heal: Callable[[Member], None]


def _thaw(member: Member) -> None:
    member.thaw()
    member.restart()


def _mend(member: Member) -> None:
    member.host.mend()
    member.restart()


KILL = Fault("kill -9", lambda member: member.crash(), lambda member: member.restart())
FREEZE = Fault("frozen", lambda member: member.freeze(), _thaw)
CUT = Fault("cut off", lambda member: member.host.cut(), _mend)


@dataclass(frozen=True)
class Failover:
    """Seconds from the fault until each of them goes on."""

    elected_s: float
    raw_s: float
    tanist_s: float
    java_s: float
    tanist_reads_s: float
    java_reads_s: float


class Producers:
    """A producer of ours and a stock one, which send to a group without end. They end with the block."""

    def __init__(self, home: Path, group: ControlledGroup, java: StockClients) -> None:
        self._java: Producer = java.producer(group.name_server)
        self._tanist = own_process("bench.stream_steps", home / f"stream-{group.name}")
        self._tanist.do("stream", nameServer=group.name_server, topic=TOPIC)
        self._java.start_stream(TOPIC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tanist.__exit__(kind, error, trace)
        self._java.end_stream()

    def tanist_went_on(self, broker: str, since_ns: int) -> int:
        """When ours first had a message acknowledged by this broker since then."""
        return self._tanist.do(
            "streamed-from", storeHost=store_host(broker), sinceNs=since_ns, timeoutMs=_LIMIT_MS
        )

    def java_went_on(self, broker: str, since_ns: int) -> int:
        """When the stock one had."""
        return self._java.acknowledged_by(broker, since_ns=since_ns)

    def wait_for_flow(self, broker: str) -> None:
        """Wait until both have messages acknowledged by this broker now."""
        now_ns = time.monotonic_ns()
        self.tanist_went_on(broker, now_ns)
        self.java_went_on(broker, now_ns)


class _Watch:
    """Two threads that look when the controller names a new master, and when a replica takes messages."""

    def __init__(self, group: ControlledGroup, epoch: int, successor: Member) -> None:
        self._group = group
        self._epoch = epoch
        self._successor = successor
        self.elected_ns = self.raw_ns = 0
        self._threads = [threading.Thread(target=self._look), threading.Thread(target=self._probe)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for thread in self._threads:
            thread.join()

    def _look(self) -> None:
        with ControllerView(self._group.controller) as view:
            for _ in _polls():
                seen = view.group(BROKER)
                if seen.master_address and seen.master_epoch > self._epoch:
                    self.elected_ns = time.monotonic_ns()
                    return

    def _probe(self) -> None:
        """Send to the replica that is left, until it is master and takes it."""
        request = send_request(TOPIC, 0, b"probe")
        wire: Wire | None = None
        for _ in _polls():
            try:
                wire = wire or Wire(self._successor.address, timeout_s=_PROBE_S)
                if wire.ask(request).code == ResponseCode.SUCCESS:
                    self.raw_ns = time.monotonic_ns()
                    break
            except (OSError, AssertionError):
                wire = _closed(wire)
        _closed(wire)


def _closed(wire: Wire | None) -> None:
    if wire is not None:
        wire.close()


def _polls() -> Generator[None]:
    deadline_s = time.monotonic() + _LIMIT_MS / 1000
    while time.monotonic() < deadline_s:
        yield
        time.sleep(_POLL_S)


def fail_over(group: ControlledGroup, producers: Producers, readers: Readers, fault: Fault) -> Failover:
    """Strike the master, see who goes on when, and have the group whole again."""
    before = group.wait_in_step()
    master = group.member(before.master_address)
    successor = group.other(master)
    producers.wait_for_flow(master.address)
    readers.wait_for_flow()
    with _Watch(group, before.master_epoch, successor) as watch:
        struck_ns = time.monotonic_ns()
        fault.strike(master)
    if not (watch.elected_ns and watch.raw_ns):
        raise RuntimeError(
            f"{group.name} has no new master {_LIMIT_MS // 1000} s after a fault: {fault.name}"
        )
    tanist_ns = producers.tanist_went_on(successor.address, struck_ns)
    java_ns = producers.java_went_on(successor.address, struck_ns)
    # Before the new master takes messages a consumer is only given what it held.
    tanist_reads_ns = readers.tanist.went_on(watch.raw_ns)
    java_reads_ns = readers.java.went_on(watch.raw_ns)
    fault.heal(master)
    times = (watch.elected_ns, watch.raw_ns, tanist_ns, java_ns, tanist_reads_ns, java_reads_ns)
    seen = Failover(*((at_ns - struck_ns) / _NS for at_ns in times))
    print(
        f"{group.name}, {fault.name}: elected {seen.elected_s:.3f} s, raw send {seen.raw_s:.3f} s, "
        f"Tanist's producer {seen.tanist_s:.3f} s, Java's producer {seen.java_s:.3f} s, "
        f"Tanist's consumer {seen.tanist_reads_s:.3f} s, Java's consumer {seen.java_reads_s:.3f} s",
        file=sys.stderr,
    )
    return seen


def take_turns(
    home: Path, ours: ControlledGroup, peer: ControlledGroup, fault: Fault, rounds: int
) -> tuple[list[Failover], list[Failover]]:
    """Strike both sides in turns."""
    seen: dict[ControlledGroup, list[Failover]] = {ours: [], peer: []}
    with (
        StockClients(_LINE, home / "clients", flags=FULL_SPEED) as java,
        _clients(home, tuple(seen), java) as clients,
    ):
        for _ in range(rounds):
            for group, failovers in seen.items():
                failovers.append(fail_over(group, *clients[group], fault))
    return seen[ours], seen[peer]


@contextmanager
def _clients(
    home: Path, groups: Sequence[ControlledGroup], java: StockClients
) -> Generator[dict[ControlledGroup, tuple[Producers, Readers]]]:
    with ExitStack() as running:
        yield {
            group: (
                running.enter_context(Producers(home, group, java)),
                running.enter_context(Readers(home, group, java)),
            )
            for group in groups
        }
