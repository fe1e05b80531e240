"""Writes that are answered when a slave has them too: ours beside Apache RocketMQ's, and beside Redis.

SYNC_MASTER and one slave, bodies of 1 KiB. RocketMQ is told to wait for its slave (``inSyncReplicas=2``),
which it does not by default. Once with RocketMQ's Java client for both, and once with a client that costs
next to nothing, so that the brokers are what is measured. The sides take turns in going first.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from bench.figures import Figure, Goal, Series
from bench.lean_client import Load
from bench.lean_race import PEER, load_figures
from bench.lean_sends import BODY_BYTES, LeanClient
from bench.processes import cpu_s
from bench.redis_pair import redis_pair
from bench.replica_groups import QUEUES, Node, ReplicaGroup, wait_in_step
from bench.turns import Allowance, take_turns, warm_up
from tests.support.partners import PartnerMissing
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.stock_client import StockClients

_ROW = "double-write"
_REDIS = "Redis"
_LINE = "5.3.3"
_ROUNDS = 4
_WARM_ROUNDS = 2
_MEASURED_MS = 1_500
_SENDERS = (1, 16)
_FAST_RATE = 1.5
_LEAN_RATE = 2.5
"""Where the brokers alone are measured, with many at work: the senders of the other rows take their share."""
_LOW_P99 = 0.5
_REDIS_RATE = 1.0

_Send = Callable[[int, int], tuple[Load, float]]
"""With so many senders for so many milliseconds; what came of it, and the CPU seconds of master and slave."""


def java_figures(ours: ReplicaGroup, peer: ReplicaGroup, home: Path, allowance: Allowance) -> list[Figure]:
    """The double write under RocketMQ's own client, in one process for both sides."""
    with StockClients(_LINE, home / "java", flags=FULL_SPEED) as clients:
        pairs = [_start_pair(group) for group in (ours, peer)]
        sides = {
            group.name: _counted(_java_send(clients, group), pair)
            for group, pair in zip((ours, peer), pairs, strict=True)
        }
        _warm_up(sides, allowance)
        figures = [
            figure for senders in _SENDERS for figure in _race("Java client", senders, sides, allowance)
        ]
    _destroy(pairs)
    return figures


def lean_figures(
    client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup, home: Path, allowance: Allowance
) -> list[Figure]:
    """The same under the lean client, and Redis beside it if it is there."""
    with ExitStack() as running:
        pairs = [_start_pair(group) for group in (ours, peer)]
        sides = {
            group.name: _counted(_lean_send(client, pair[0].address, "remoting"), pair)
            for group, pair in zip((ours, peer), pairs, strict=True)
        }
        lack = ""
        try:
            redis = running.enter_context(redis_pair(home))
            send = _lean_send(client, redis.address, "redis")
            sides[_REDIS] = lambda senders, ms: _with_cpu(send, redis.pids, senders, ms)
        except PartnerMissing as missing:
            lack = str(missing)
        _warm_up(sides, allowance)
        figures = [
            figure
            for senders in _SENDERS
            for figure in _race("lean client", senders, sides, allowance, lack=lack)
        ]
    _destroy(pairs)
    return figures


def _warm_up(sides: Mapping[str, _Send], allowance: Allowance) -> None:
    warm_up((partial(send, max(_SENDERS)) for send in sides.values()), allowance)


def _race(
    client: str, senders: int, sides: Mapping[str, _Send], allowance: Allowance, *, lack: str = ""
) -> list[Figure]:
    duration_ms = allowance.amount(_MEASURED_MS)
    what = f"{client}, 1 sender" if senders == 1 else f"{client}, {senders} senders"
    turns = take_turns(
        what,
        {name: lambda send=send: send(senders, duration_ms) for name, send in sides.items()},
        allowance,
        rounds=_ROUNDS,
        warm_rounds=_WARM_ROUNDS,
        is_void=lambda seen: seen[0].failures > 0,
    )
    is_beside_redis = _REDIS in sides or bool(lack)
    is_crowded = is_beside_redis and senders > 1
    return load_figures(
        _ROW,
        what,
        turns,
        least=_LEAN_RATE if is_crowded else _FAST_RATE,
        p99=_LOW_P99,
        peer=PEER,
        more=(Goal(_REDIS_RATE, _REDIS),) if is_beside_redis else (),
        missing=(Series(_REDIS, lack=lack),) if lack else (),
    )


def _counted(send: Callable[[int, int], Load], pair: tuple[Node, Node]) -> _Send:
    return lambda senders, ms: _with_cpu(send, [node.pid for node in pair], senders, ms)


def _with_cpu(
    send: Callable[[int, int], Load], pids: Sequence[int], senders: int, duration_ms: int
) -> tuple[Load, float]:
    used_s = sum(map(cpu_s, pids))
    load = send(senders, duration_ms)
    return load, sum(map(cpu_s, pids)) - used_s


def _java_send(clients: StockClients, group: ReplicaGroup) -> Callable[[int, int], Load]:
    producer = clients.producer(group.name_server, topicQueues=QUEUES)

    def send(senders: int, duration_ms: int) -> Load:
        answer = clients.process.do(
            "load",
            name=producer.name,
            topic="Bench",
            bodyBytes=BODY_BYTES,
            durationMs=duration_ms,
            threads=senders,
            batch=1,
            inFlight=0,
        )
        return msgspec.convert(answer, Load)

    return send


def _lean_send(client: LeanClient, address: str, kind: str) -> Callable[[int, int], Load]:
    return lambda senders, ms: client.send(address, connections=senders, duration_ms=ms, kind=kind)


def _start_pair(group: ReplicaGroup) -> tuple[Node, Node]:
    master = group.start_master("SYNC_MASTER")
    slave = group.start_slave(1)
    wait_in_step(master)
    return master, slave


def _destroy(pairs: Sequence[tuple[Node, Node]]) -> None:
    for node in itertools.chain(*pairs):
        node.destroy()
