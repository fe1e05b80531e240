"""What work costs against its size: of a message, of the number of queues and of connections.

RocketMQ refuses what has waited for its threads for 200 ms, which on a busy machine happens to anything that
is large or first. Rates are those of the messages that were taken, a message that was refused on its way to
the queues is sent again, and how many were refused is noted beside the figures.
"""

import resource
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from bench.figures import Figure
from bench.lean_client import send_request
from bench.lean_sends import BODY_BYTES, LeanClient
from bench.replica_groups import Node, RocketMQGroup, TanistGroup
from bench.turns import Allowance, take_turns
from tanist.protocol import ResponseCode
from tests.support.rocketmq.scenario import StepFailed
from tests.support.topics import create_topic
from tests.support.wire import Wire

_ROW = "sizes"
_ROUNDS = 2
_MEASURED_MS = 700
_SENDERS = 8
_MESSAGES = {"128 B": 128, "1 KiB": 1 << 10, "64 KiB": 1 << 16, "1 MiB": 1 << 20}
_QUEUES = (1, 100, 10_000)
_SENDS = 10_000
_CONNECTIONS = (1, 1_000, 10_000)
_FILES_LEFT = 500
"""So many more files a process may come to need, beside those of more queues or connections."""
_MOST_REFUSALS = 1_000
"""A broker that refuses as many sends to its queues is not slow but broken."""

STORE: dict[str, object] = {"mappedFileSizeConsumeQueue": 20 * 1000}
"""Small, because each of ten thousand queues has a file of this size at once."""


def size_figures(home: Path, allowance: Allowance) -> list[Figure]:
    _raise_file_limit()
    with ExitStack() as running:
        client = running.enter_context(LeanClient(home / "lean"))
        ours = running.enter_context(TanistGroup(home / "ours", **STORE))
        peer = running.enter_context(RocketMQGroup(home / "peer", **STORE))
        masters = {group.name: group.start_master("ASYNC_MASTER") for group in (ours, peer)}
        return _figures(_Sizes(client, masters, allowance))


def _figures(sizes: "_Sizes") -> list[Figure]:
    """One part after the other. One that fails is noted, and takes no other with it."""
    figures: list[Figure] = []
    parts = [
        *(partial(sizes.by_message, what, size) for what, size in _MESSAGES.items()),
        # Before the queues: RocketMQ has a file open for each of them, and a process may have only so many.
        *(partial(sizes.by_connections, count) for count in _CONNECTIONS),
        *(partial(sizes.by_queues, count) for count in _QUEUES),
    ]
    for part in parts:
        try:
            figures.append(part())
        except StepFailed as failure:
            if not figures:
                raise
            sizes.allowance.note(f"{part.func.__name__} {part.args[0]}: not run: {failure}")
    return figures


@dataclass(frozen=True)
class _Sizes:
    """What the parts of the row have in common."""

    client: LeanClient
    masters: Mapping[str, Node]
    allowance: Allowance

    def by_message(self, what: str, size: int) -> Figure:
        curve = "sends a second by the size of the message, 8 connections"

        def rate(name: str) -> float:
            return self._rate(f"{curve}: {what}", name, body_bytes=size)

        return self._figure(rate, curve=curve, what=what, at=size, is_more_better=True)

    def by_connections(self, wanted: int) -> Figure:
        """Sends of a few, beside others that are connected and silent."""
        count = self._as_far_as_files_go(wanted, "connections")
        curve, what = "sends a second on 8 connections by the number of others", f"{count:,}"

        def rate(name: str) -> float:
            with _silent(self.masters[name].address, count):
                return self._rate(f"{curve}: {what}", name)

        return self._figure(rate, curve=curve, what=what, at=count, is_more_better=True)

    def by_queues(self, wanted: int) -> Figure:
        """The broker's CPU a message, when messages go to all queues in turn."""
        count = self._as_far_as_files_go(wanted, "queues")
        topic, sends = f"Queues{count}", self.allowance.amount(_SENDS)
        curve, what = "CPU a message, sends to all queues in turn, by the number of queues", f"{count:,}"
        for node in self.masters.values():
            create_topic(node.address, topic, queue_count=count)

        def cost(name: str) -> float:
            node = self.masters[name]
            used_s = node.cpu_s()
            refusals = _send_to_all(node, topic, queue_count=count, sends=sends)
            used_s = node.cpu_s() - used_s
            if refusals:
                self._note_refusals(f"{curve}: {what}", name, len(refusals), of=sends, said=refusals[0])
            return used_s / sends * 1e6

        return self._figure(cost, curve=curve, what=what, at=count, unit="µs")

    def _rate(self, what: str, name: str, *, body_bytes: int = BODY_BYTES) -> float:
        load = self.client.send(
            self.masters[name].address,
            connections=_SENDERS,
            duration_ms=self.allowance.amount(_MEASURED_MS),
            body_bytes=body_bytes,
        )
        if load.failures:
            sent = load.count + load.failures
            self._note_refusals(what, name, load.failures, of=sent, said=load.first_failure)
        return load.rate

    def _note_refusals(self, what: str, name: str, count: int, *, of: int, said: str) -> None:
        self.allowance.note(
            f"{what}: {name} did not take {count:,} of {of:,} messages, and said to the first: {said}"
        )

    def _as_far_as_files_go(self, wanted: int, what: str) -> int:
        """So many, or as many as the broker with the most open files can still have."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        used = max(psutil.Process(node.pid).num_fds() for node in self.masters.values())
        most = limit - used - _FILES_LEFT
        if wanted <= most:
            return wanted
        self.allowance.note(
            f"{wanted:,} {what}: {most:,} instead, a process on this machine may have {limit:,} open files"
        )
        return most

    def _figure(
        self,
        measure: Callable[[str], float],
        *,
        curve: str,
        what: str,
        at: float,
        unit: str = "msg/s",
        is_more_better: bool = False,
    ) -> Figure:
        turns = take_turns(
            f"{curve}: {what}",
            {name: partial(measure, name) for name in self.masters},
            self.allowance,
            rounds=_ROUNDS,
            # A broker is cold at first, and makes the files of its queues with the first message of each.
            warm_rounds=1,
        )
        return Figure(_ROW, f"{curve}: {what}", unit, turns.series(float), is_more_better, curve=curve, at=at)


def _send_to_all(node: Node, topic: str, *, queue_count: int, sends: int) -> list[str]:
    """Send to all queues in turn, and again what is refused; what was said with each refusal."""
    refusals: list[str] = []
    with Wire(node.address) as wire:
        for number in range(sends):
            request = send_request(topic, number % queue_count, bytes(BODY_BYTES))
            while (answer := wire.ask(request)).code != ResponseCode.SUCCESS:
                refusals.append(answer.remark or f"code {answer.code}")
                if len(refusals) == _MOST_REFUSALS:
                    raise StepFailed(topic, error=f"{len(refusals)} refusals", message=refusals[-1])
    return refusals


@contextmanager
def _silent(address: str, count: int) -> Generator[None]:
    host, _, port = address.rpartition(":")
    with ExitStack() as open_ones:
        for _ in range(count):
            open_ones.enter_context(socket.create_connection((host, int(port))))
        yield


def _raise_file_limit() -> None:
    """For this process and those that it starts."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
