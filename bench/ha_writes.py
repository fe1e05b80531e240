"""Writes that are answered when a slave has them too: ours beside Apache RocketMQ's, and beside Redis.

SYNC_MASTER and one slave, bodies of 1 KiB. RocketMQ is told to wait for its slave (``inSyncReplicas=2``),
which it does not by default. Once with RocketMQ's Java client for both, and once with a client that costs
next to nothing, so that the brokers are what is measured. The sides take turns in going first.
"""

import itertools
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.lean_client import Load
from bench.lean_sends import BODY_BYTES, LeanClient
from bench.processes import cpu_s
from bench.redis_pair import redis_pair
from bench.replica_groups import QUEUES, Node, ReplicaGroup, wait_in_step
from bench.table import Row
from tests.support.partners import PartnerMissing
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.stock_client import StockClients

_LINE = "5.3.3"
_ROUNDS = 4
_WARM_ROUNDS = 2
_MEASURED_MS = 1_500
_SENDERS = (1, 16)
_JAVA_RATE = 1.5
_JAVA_P99 = 0.5
_LEAN_RATE = 2.5
_REDIS_RATE = 1.0


@dataclass
class _Side:
    """A pair, how it is sent to, and what came of that."""

    name: str
    send: Callable[[int], Load]
    pids: Sequence[int]
    loads: list[Load] = field(default_factory=list[Load])
    costs: list[float] = field(default_factory=list[float])
    """CPU seconds that master and slave took for a message."""

    @property
    def rate(self) -> float:
        return statistics.median(load.rate for load in self.loads)

    @property
    def p99_ms(self) -> float:
        return statistics.median(load.p99_micros for load in self.loads) / 1e3

    @property
    def cost_micros(self) -> float:
        return statistics.median(self.costs) * 1e6

    def measure(self, senders: int) -> None:
        used_s = sum(map(cpu_s, self.pids))
        load = self.send(senders)
        used_s = sum(map(cpu_s, self.pids)) - used_s
        self.loads.append(load)
        self.costs.append(used_s / load.count)
        if load.failures:
            print(f"{self.name}: {load.failures} sends failed", file=sys.stderr)

    def forget(self) -> None:
        self.loads.clear()
        self.costs.clear()


def java_rows(ours: ReplicaGroup, peer: ReplicaGroup, home: Path) -> list[Row]:
    """The double write under RocketMQ's own client, in one process for both sides."""
    with StockClients(_LINE, home / "java", flags=FULL_SPEED) as clients:
        pairs = [_start_pair(group) for group in (ours, peer)]
        sides = [_java_side(clients, *both) for both in zip((ours, peer), pairs, strict=True)]
        rows: list[Row] = []
        for senders in _SENDERS:
            _take_turns(sides, senders)
            rows += _pair_rows(f"Java client, {_senders(senders)}", *sides, least=_JAVA_RATE, p99=_JAVA_P99)
    _destroy(pairs)
    return rows


def lean_rows(client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup, home: Path) -> list[Row]:
    """The same under the lean client, and Redis beside it if it is there."""
    with ExitStack() as running:
        pairs = [_start_pair(group) for group in (ours, peer)]
        sides = [_lean_side(client, *both) for both in zip((ours, peer), pairs, strict=True)]
        redis: _Side | None = None
        lack = ""
        try:
            pair = running.enter_context(redis_pair(home))
            redis = _Side("Redis", lambda senders: _send_to_redis(client, pair.address, senders), pair.pids)
        except PartnerMissing as missing:
            lack = str(missing)
        rows: list[Row] = []
        for senders in _SENDERS:
            _take_turns([*sides, *([redis] if redis else [])], senders)
            is_many = senders > 1
            what = f"lean client, {_senders(senders)}"
            rows += _pair_rows(what, *sides, least=_LEAN_RATE if is_many else None, p99=None)
            rows += _redis_rows(sides[0], redis, lack, least=_REDIS_RATE if is_many else None)
    _destroy(pairs)
    return rows


def _java_side(clients: StockClients, group: ReplicaGroup, pair: tuple[Node, Node]) -> _Side:
    producer = clients.producer(group.name_server, topicQueues=QUEUES)

    def send(senders: int) -> Load:
        answer = clients.process.do(
            "load",
            name=producer.name,
            topic="Bench",
            bodyBytes=BODY_BYTES,
            durationMs=_MEASURED_MS,
            threads=senders,
            batch=1,
            inFlight=0,
        )
        return msgspec.convert(answer, Load)

    return _Side(group.name, send, [node.pid for node in pair])


def _lean_side(client: LeanClient, group: ReplicaGroup, pair: tuple[Node, Node]) -> _Side:
    address = pair[0].address
    return _Side(
        group.name,
        lambda senders: client.send(address, connections=senders, duration_ms=_MEASURED_MS),
        [node.pid for node in pair],
    )


def _send_to_redis(client: LeanClient, address: str, senders: int) -> Load:
    return client.send(address, connections=senders, duration_ms=_MEASURED_MS, kind="redis")


def _start_pair(group: ReplicaGroup) -> tuple[Node, Node]:
    master = group.start_master("SYNC_MASTER")
    slave = group.start_slave(1)
    wait_in_step(master)
    return master, slave


def _destroy(pairs: Sequence[tuple[Node, Node]]) -> None:
    for node in itertools.chain(*pairs):
        node.destroy()


def _take_turns(sides: Sequence[_Side], senders: int) -> None:
    for number in range(-_WARM_ROUNDS, _ROUNDS):
        if number == 0:
            for side in sides:
                side.forget()
        for side in sides if number % 2 else sides[::-1]:
            side.measure(senders)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)


def _pair_rows(what: str, ours: _Side, peer: _Side, *, least: float | None, p99: float | None) -> list[Row]:
    return [
        _rate_row(f"double write, {what}", ours, peer, least=least),
        _p99_row("  p99", ours, peer, most=p99),
        _cost_row("  CPU of both a message", ours, peer),
    ]


def _redis_rows(ours: _Side, redis: _Side | None, lack: str, *, least: float | None) -> list[Row]:
    what = "  beside Redis: XADD, WAIT 1, one replica"
    if redis is None:
        return [Row(what, "", f"not run: {lack}", None, "", None)]
    return [
        _rate_row(what, ours, redis, least=least),
        _p99_row("    p99", ours, redis, most=None),
        _cost_row("    CPU of both a message", ours, redis),
    ]


def _rate_row(what: str, ours: _Side, peer: _Side, *, least: float | None) -> Row:
    ratio = ours.rate / peer.rate
    return Row(
        what,
        f"{ours.rate / 1e3:.1f}k/s",
        f"{peer.name} {peer.rate / 1e3:.1f}k/s",
        ratio,
        "" if least is None else f"≥ {least:g}",
        None if least is None else ratio >= least,
    )


def _p99_row(what: str, ours: _Side, peer: _Side, *, most: float | None) -> Row:
    ratio = ours.p99_ms / peer.p99_ms
    return Row(
        what,
        f"{ours.p99_ms:.2f} ms",
        f"{peer.name} {peer.p99_ms:.2f} ms",
        ratio,
        "" if most is None else f"≤ {most:g}",
        None if most is None else ratio <= most,
    )


def _cost_row(what: str, ours: _Side, peer: _Side) -> Row:
    return Row(
        what,
        f"{ours.cost_micros:.0f} µs",
        f"{peer.name} {peer.cost_micros:.0f} µs",
        ours.cost_micros / peer.cost_micros,
        "",
        None,
    )


def _senders(count: int) -> str:
    return "1 sender" if count == 1 else f"{count} senders"
