"""What work costs against its size: of a message, of the number of queues and of connections."""

import resource
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.figures import Figure
from bench.lean_client import send_request
from bench.lean_sends import LeanClient
from bench.replica_groups import Node, RocketMQGroup, TanistGroup
from bench.turns import Allowance, take_turns
from tanist.protocol import ResponseCode
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
"""A process needs some open files beside connections."""

STORE: dict[str, object] = {"mappedFileSizeConsumeQueue": 20 * 1000}
"""Small, because each of ten thousand queues has a file of this size at once."""


def size_figures(home: Path, allowance: Allowance) -> list[Figure]:
    _raise_file_limit()
    with ExitStack() as running:
        client = running.enter_context(LeanClient(home / "lean"))
        ours = running.enter_context(TanistGroup(home / "ours", **STORE))
        peer = running.enter_context(RocketMQGroup(home / "peer", **STORE))
        masters = {group.name: group.start_master("ASYNC_MASTER") for group in (ours, peer)}
        return [
            *(_by_message(what, size, client, masters, allowance) for what, size in _MESSAGES.items()),
            *(_by_queues(count, masters, allowance) for count in _QUEUES),
            *(_by_connections(count, client, masters, allowance) for count in _CONNECTIONS),
        ]


def _by_message(
    what: str, size: int, client: LeanClient, masters: Mapping[str, Node], allowance: Allowance
) -> Figure:
    duration_ms = allowance.amount(_MEASURED_MS)

    def rate(node: Node) -> float:
        load = client.send(node.address, connections=_SENDERS, duration_ms=duration_ms, body_bytes=size)
        return load.rate

    curve = "sends a second by the size of the message, 8 connections"
    return _figure(masters, rate, allowance, curve=curve, what=what, at=size, is_more_better=True)


def _by_queues(count: int, masters: Mapping[str, Node], allowance: Allowance) -> Figure:
    """The broker's CPU a message, when messages go to all queues in turn."""
    topic = f"Queues{count}"
    for node in masters.values():
        create_topic(node.address, topic, queue_count=count)
    sends = allowance.amount(_SENDS)

    def cost(node: Node) -> float:
        used_s = node.cpu_s()
        with Wire(node.address) as wire:
            for number in range(sends):
                answer = wire.ask(send_request(topic, number % count, bytes(1024)))
                assert answer.code == ResponseCode.SUCCESS, answer.remark
        return (node.cpu_s() - used_s) / sends * 1e6

    curve = "CPU a message, sends to all queues in turn, by the number of queues"
    return _figure(masters, cost, allowance, curve=curve, what=f"{count:,}", at=count, unit="µs")


def _by_connections(
    count: int, client: LeanClient, masters: Mapping[str, Node], allowance: Allowance
) -> Figure:
    """Sends of a few, beside others that are connected and silent."""
    duration_ms = allowance.amount(_MEASURED_MS)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _FILES_LEFT
    if count > most:
        allowance.note(f"{count:,} connections: left out, this machine lets a process have {most:,}")
        count = most

    def rate(node: Node) -> float:
        with _silent(node.address, count):
            return client.send(node.address, connections=_SENDERS, duration_ms=duration_ms).rate

    curve = "sends a second on 8 connections by the number of others"
    return _figure(masters, rate, allowance, curve=curve, what=f"{count:,}", at=count, is_more_better=True)


def _figure(
    masters: Mapping[str, Node],
    measure: Callable[[Node], float],
    allowance: Allowance,
    *,
    curve: str,
    what: str,
    at: float,
    unit: str = "msg/s",
    is_more_better: bool = False,
) -> Figure:
    turns = take_turns(
        f"{curve}: {what}",
        {name: lambda node=node: measure(node) for name, node in masters.items()},
        allowance,
        rounds=_ROUNDS,
        # A broker is cold at first, and makes the files of its queues with the first message of each.
        warm_rounds=1,
    )
    return Figure(_ROW, f"{curve}: {what}", unit, turns.series(float), is_more_better, curve=curve, at=at)


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
