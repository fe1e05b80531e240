"""How far a slave is behind its master that waits for nobody: at low load, after a burst, and under load,
where the offsets of consumers are looked at too.

A message is visible on a slave when the slave counts it as the last of its queue, which both brokers can be
asked. It is asked again and again, because a pull that waits is not woken by what RocketMQ's slaves receive.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from bench.figures import Figure, Goal, percentile
from bench.ha_loaded import LOOK_S, PACE, LoadedLag, commits_under_load, lag_under_load
from bench.lean_client import send_request
from bench.lean_sends import BODY_BYTES, LeanClient
from bench.replica_groups import Node, ReplicaGroup, wait_in_step, wait_until
from bench.turns import Allowance, Turns, take_turns
from tanist.protocol.codes import ResponseCode

_PUSHES = 60
_PUSH_ROUNDS = 3
_PAUSE_S = 0.1
"""As long as RocketMQ's master waits between two looks at its log, so that sends fall anywhere between."""
_PUSH_P50_MS = 2.0
_PUSH_TOPIC = "Push"

_BURST = 200_000
_BURST_BATCH = 32
_BURST_CONNECTIONS = 4
_ROUNDS = 3
_LOADED_MS = 4_000
_BURST_TOPIC = "Burst"
_BURST_MS = 1_000.0
_COMMIT_MS = 200.0
_ROW = "lag"

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Burst:
    """What a burst left behind, and how long that lasted."""

    rate: float
    lag_bytes: int
    in_step_ms: float
    readable_ms: float


def lag_figures(
    client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup, allowance: Allowance
) -> list[Figure]:
    pairs: dict[str, tuple[Node, Node]] = {}
    for group in (ours, peer):
        master = group.start_master("ASYNC_MASTER")
        pairs[group.name] = master, group.start_slave(1)
        wait_in_step(master)

    def sides(measure: Callable[[Node, Node], _T]) -> dict[str, Callable[[], _T]]:
        return {name: lambda pair=pair: measure(*pair) for name, pair in pairs.items()}

    count = allowance.amount(_PUSHES)
    sent = {name: itertools.count(1) for name in pairs}
    pushes = take_turns(
        "push",
        {name: lambda n=name: _pushes(*pairs[n], sent[n], count) for name in pairs},
        allowance,
        rounds=_PUSH_ROUNDS,
        warm_rounds=1,
    )
    most = allowance.amount(_BURST)
    bursts = take_turns(
        "burst", sides(lambda master, slave: _burst(client, master, slave, most)), allowance, rounds=_ROUNDS
    )
    loaded_ms = allowance.amount(_LOADED_MS)
    loaded = take_turns(
        "lag under load",
        sides(lambda master, _slave: lag_under_load(master, loaded_ms)),
        allowance,
        rounds=_ROUNDS,
    )
    # Ours alone: RocketMQ's slaves ask for the offsets every ten seconds.
    numbers = itertools.count(1)
    commits = take_turns(
        "commits under load",
        {ours.name: lambda: commits_under_load(*pairs[ours.name], numbers, loaded_ms)},
        allowance,
        rounds=_ROUNDS,
    )
    for node in itertools.chain(*pairs.values()):
        node.destroy()
    return [
        *_push_figures(pushes),
        *_burst_figures(bursts),
        *_loaded_figures(loaded),
        *_commit_figures(commits),
    ]


def _pushes(master: Node, slave: Node, numbers: Iterator[int], count: int) -> list[float]:
    """Seconds from a send to the message's being visible on the slave."""
    request = send_request(_PUSH_TOPIC, 0, bytes(BODY_BYTES))
    taken: list[float] = []
    pause = random.Random(1)
    for wanted in itertools.islice(numbers, count):
        time.sleep(pause.uniform(0, _PAUSE_S))
        began_s = time.perf_counter()
        answer = master.ask(request)
        if answer.code != ResponseCode.SUCCESS:
            raise RuntimeError(f"{master.address} refused a message: {answer.remark}")
        seen_s = wait_until(
            lambda wanted=wanted: slave.queue_end(_PUSH_TOPIC, 0) >= wanted,
            what="a message is on the slave",
            poll_s=LOOK_S,
        )
        taken.append(seen_s - began_s)
    return taken


def _push_figures(turns: Turns[list[float]]) -> list[Figure]:
    return [
        Figure(
            _ROW,
            f"low load, a send until it is visible on the slave: {name}",
            "ms",
            turns.series(lambda taken, share=share: percentile(taken, share) * 1e3),
            goals=goals,
        )
        for name, share, goals in (("p50", 0.5, (Goal(_PUSH_P50_MS),)), ("p99", 0.99, ()))
    ]


def _burst(client: LeanClient, master: Node, slave: Node, most: int) -> _Burst:
    there = slave.readable(_BURST_TOPIC)
    load = client.send(
        master.address,
        connections=_BURST_CONNECTIONS,
        most=most,
        batch=_BURST_BATCH,
        topic=_BURST_TOPIC,
    )
    status = master.status()
    lag_bytes = status.log_end - min(one.acked_to for one in status.slaves)
    in_step_s = wait_in_step(master)
    wanted = there + load.count
    readable_s = wait_until(lambda: slave.readable(_BURST_TOPIC) >= wanted, what="the burst is readable")
    return _Burst(load.rate, lag_bytes, (in_step_s - load.ended_s) * 1e3, (readable_s - load.ended_s) * 1e3)


def _burst_figures(turns: Turns[_Burst]) -> list[Figure]:
    what = f"a burst of {_BURST // 1000}k messages"
    return [
        Figure(
            _ROW,
            f"{what}: no lag again within",
            "ms",
            turns.series(lambda one: one.in_step_ms),
            goals=(Goal(_BURST_MS),),
        ),
        Figure(_ROW, f"{what}: all is readable within", "ms", turns.series(lambda one: one.readable_ms)),
        Figure(_ROW, f"{what}: the lag at its end", "MB", turns.series(lambda one: one.lag_bytes / 1e6)),
        Figure(
            _ROW, f"{what}: batches of 32", "msg/s", turns.series(lambda one: one.rate), is_more_better=True
        ),
    ]


def _loaded_figures(turns: Turns[LoadedLag]) -> list[Figure]:
    what = f"under {PACE // 1000}k messages a second"
    return [
        Figure(_ROW, f"{what}: the lag, p50", "kB", turns.series(lambda one: one.p50_bytes / 1e3)),
        Figure(_ROW, f"{what}: the lag, worst", "kB", turns.series(lambda one: one.worst_bytes / 1e3)),
        Figure(_ROW, f"{what}: sent", "msg/s", turns.series(lambda one: one.rate), is_more_better=True),
    ]


def _commit_figures(turns: Turns[list[float]]) -> list[Figure]:
    return [
        Figure(
            _ROW,
            f"under {PACE // 1000}k messages a second, a commit until it is on the slave: {name}",
            "ms",
            turns.series(lambda taken, share=share: percentile(taken, share) * 1e3),
            goals=(Goal(_COMMIT_MS),),
        )
        for name, share in (("p50", 0.5), ("p99", 0.99))
    ]
