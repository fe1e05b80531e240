"""Sends of a client that costs next to nothing, to one master: ours, RocketMQ's, and NATS JetStream."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.figures import OURS, Figure, Goal, Series
from bench.lean_client import Load
from bench.lean_sends import LeanClient
from bench.nats_server import nats_server
from bench.processes import cpu_s
from bench.replica_groups import Node, RocketMQGroup, TanistGroup
from bench.turns import Allowance, Turns, take_turns, warm_up
from tests.support.partners import PartnerMissing

PEER = "RocketMQ"
NATS = "NATS"
_ROUNDS = 4
_MEASURED_MS = 1_500
_WARM_MS = 3_000
_FAST_RATE = 1.3
_LOW_P99 = 0.8
_LOW_CPU = 0.5

Send = Callable[[int, int], tuple[Load, float]]
"""Sends with so many connections for so many milliseconds; what came of it, and the server's CPU seconds."""


def lean_figures(home: Path, allowance: Allowance) -> list[Figure]:
    with ExitStack() as running:
        client = running.enter_context(LeanClient(home / "lean"))
        sides = dict(_masters(running, client, home))
        lack = ""
        try:
            address, pid = running.enter_context(nats_server(home / "nats"))
            sides[NATS] = _sender(client, address, pid, kind="nats")
        except PartnerMissing as missing:
            lack = str(missing)
        _warm_up(sides, allowance)
        return [
            figure
            for connections in (1, 8, 16, 32)
            for figure in _figures("lean-sends", connections, sides, allowance, lack)
        ]


def sync_flush_figures(home: Path, allowance: Allowance) -> list[Figure]:
    """Sends that are answered when they are on the disk."""
    with ExitStack() as running:
        client = running.enter_context(LeanClient(home / "lean"))
        sides = dict(_masters(running, client, home, flushDiskType="SYNC_FLUSH"))
        _warm_up(sides, allowance)
        return [
            figure
            for connections in (1, 16)
            for figure in _figures("sync-flush", connections, sides, allowance)
        ]


def _masters(running: ExitStack, client: LeanClient, home: Path, **settings: object) -> Mapping[str, Send]:
    ours = running.enter_context(TanistGroup(home / "ours", **settings))
    peer = running.enter_context(RocketMQGroup(home / "peer", **settings))
    return {
        OURS: _sender_to(client, ours.start_master("ASYNC_MASTER")),
        PEER: _sender_to(client, peer.start_master("ASYNC_MASTER")),
    }


def _sender_to(client: LeanClient, node: Node) -> Send:
    return _sender(client, node.address, node.pid, kind="remoting")


def _sender(client: LeanClient, address: str, pid: int, *, kind: str) -> Send:
    def send(connections: int, duration_ms: int) -> tuple[Load, float]:
        used_s = cpu_s(pid)
        load = client.send(address, connections=connections, duration_ms=duration_ms, kind=kind)
        return load, cpu_s(pid) - used_s

    return send


def _warm_up(sides: Mapping[str, Send], allowance: Allowance) -> None:
    for connections in (1, 16):
        warm_up((partial(send, connections) for send in sides.values()), allowance, duration_ms=_WARM_MS)


def _figures(
    row: str, connections: int, sides: Mapping[str, Send], allowance: Allowance, lack: str = ""
) -> list[Figure]:
    duration_ms = allowance.amount(_MEASURED_MS)
    what = "1 connection" if connections == 1 else f"{connections} connections"
    turns = take_turns(
        what,
        {name: lambda send=send: send(connections, duration_ms) for name, send in sides.items()},
        allowance,
        rounds=_ROUNDS,
        is_void=lambda seen: seen[0].failures > 0,
    )
    return load_figures(row, what, turns, missing=(Series(NATS, lack=lack),) if lack else ())


def load_figures(
    row: str,
    what: str,
    turns: Turns[tuple[Load, float]],
    *,
    least: float = _FAST_RATE,
    p99: float | None = _LOW_P99,
    peer: str = PEER,
    more: tuple[Goal, ...] = (),
    missing: tuple[Series, ...] = (),
) -> list[Figure]:
    """Rate, latencies and the server's CPU of sends that took turns; ``more`` are goals of the rate."""
    times: tuple[tuple[str, Callable[[Load], float], tuple[Goal, ...]], ...] = (
        ("p50", lambda load: load.p50_micros, ()),
        ("p99", lambda load: load.p99_micros, () if p99 is None else (Goal(p99, peer),)),
        ("p99.9", lambda load: load.p999_micros, ()),
    )
    return [
        Figure(
            row,
            what,
            "msg/s",
            turns.series(lambda seen: seen[0].rate) + missing,
            is_more_better=True,
            goals=(Goal(least, peer), *more),
        ),
        *(
            Figure(
                row,
                f"{what}: {name}",
                "µs",
                turns.series(lambda seen, read=read: read(seen[0])) + missing,
                goals=goals,
            )
            for name, read, goals in times
        ),
        Figure(
            row,
            f"{what}: the server's CPU a message",
            "µs",
            turns.series(lambda seen: seen[1] / seen[0].count * 1e6) + missing,
            goals=(Goal(_LOW_CPU, peer),),
        ),
    ]
