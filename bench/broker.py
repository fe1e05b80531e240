"""The broker beside Apache RocketMQ's, under the same Java client, in turns.

Each side has its own name server and one master: ASYNC_FLUSH, files of the default sizes, one topic of
eight queues. The client is RocketMQ's own, one process for both sides, with bodies of 1 KiB that can not
be compressed. Broker, client and everything else share the machine, so only the ratios tell something.

The client grows faster for many rounds, as Java compiles it: a push consumer's second backlog takes half
the time of its first. So some rounds are not counted.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.broker_sides import PEER, Side, Work, both_sides
from bench.figures import OURS, Figure, Goal, Series
from bench.lean_client import Load
from bench.lean_race import load_figures
from bench.race_record import figure_rows
from bench.table import Row
from bench.turns import Allowance, Turns, take_turns, warm_up
from tests.support.partners import PartnerMissing

_ROW = "java-sends"
_ROUNDS = 4
_WARM_ROUNDS = 2
_MEASURED_MS = 1_500
_BACKLOG = 300_000
_DRAIN_ROUNDS = 3
_LATENCY_COUNT = 1_000
_LATENCY_ROUNDS = 3
_FAST_RATE = 1.3
_LOW_P99 = 0.8
_LOW_COST = 0.5
_IDLE_S = 5.0
_IDLE_PERCENT = 1.0
_IDLE_MB = 120.0
_LIMIT_S = 330.0

_WORKS = (
    Work("sync sends, 1 thread", 1),
    Work("sync sends, 8 threads", 8),
    Work("sync sends, 16 threads", 16),
    Work("sync sends, 32 threads", 32),
    Work("async sends, 256 in flight", 1, in_flight=256),
    Work("batches of 64, 4 threads", 4, batch=64),
    Work("one-way sends, 4 threads, every 256th is answered", 4, is_one_way=True),
)


def run() -> list[Row]:
    """Race the two. Brings the jars of RocketMQ with Maven if they are not here."""
    try:
        with tempfile.TemporaryDirectory(prefix="tanist-bench-") as home:
            return figure_rows(java_figures(Path(home), Allowance(_LIMIT_S)))
    except PartnerMissing as lack:
        raise SystemExit(f"broker: {lack}") from lack


def java_figures(home: Path, allowance: Allowance) -> list[Figure]:
    with both_sides(home) as (ours, peer):
        sides = (ours, peer)
        return [
            *_idle(sides, allowance),
            *_latency(sides, allowance),
            *_all_sends(sides, allowance),
            *_drains(sides, allowance),
            *_memory(sides),
        ]


def _idle(sides: tuple[Side, Side], allowance: Allowance) -> list[Figure]:
    """What a broker costs that has producers connected and nothing to do."""
    for side in sides:
        side.process.cpu_percent()
    time.sleep(allowance.amount(int(_IDLE_S * 1000)) / 1000)
    return [
        _figure(
            "an idle broker: CPU", "%", sides, lambda side: side.process.cpu_percent(), Goal(_IDLE_PERCENT)
        ),
        _figure("an idle broker: memory", "MB", sides, Side.resident_mb, Goal(_IDLE_MB)),
    ]


def _latency(sides: tuple[Side, Side], allowance: Allowance) -> list[Figure]:
    count = allowance.amount(_LATENCY_COUNT)
    turns = _turns("latency", sides, lambda side: side.wait_for_one(count), allowance, rounds=_LATENCY_ROUNDS)
    times: tuple[tuple[str, Callable[[Load], float], tuple[Goal, ...]], ...] = (
        ("p50", lambda load: load.p50_micros, (Goal(1.0, PEER),)),
        ("p99", lambda load: load.p99_micros, (Goal(_LOW_P99, PEER),)),
        ("p99.9", lambda load: load.p999_micros, ()),
    )
    return [
        Figure(
            _ROW,
            f"send to a listener that waits: {name}",
            "µs",
            turns.series(lambda seen, read=read: read(seen[0])),
            goals=goals,
        )
        for name, read, goals in times
    ]


def _all_sends(sides: tuple[Side, Side], allowance: Allowance) -> list[Figure]:
    most = max(_WORKS, key=lambda work: work.threads)
    warm_up((lambda ms, side=side: side.send(most, duration_ms=ms) for side in sides), allowance)
    return [figure for work in _WORKS for figure in _sends(work, sides, allowance)]


def _sends(work: Work, sides: tuple[Side, Side], allowance: Allowance) -> list[Figure]:
    duration_ms = allowance.amount(_MEASURED_MS)
    turns = _turns(work.name, sides, lambda side: side.send(work, duration_ms=duration_ms), allowance)
    figures = load_figures(_ROW, work.name, turns, p99=None if work.in_flight or work.batch > 1 else _LOW_P99)
    # How long a client takes to hand over what nobody answers says nothing of the broker.
    return [figures[0], figures[-1]] if work.is_one_way else figures


def _drains(sides: tuple[Side, Side], allowance: Allowance) -> list[Figure]:
    for side in sides:
        side.fill_backlog(allowance.amount(_BACKLOG))
    turns = _turns("drain", sides, Side.drain, allowance, rounds=_DRAIN_ROUNDS)
    figures = load_figures(_ROW, "a push consumer over a backlog", turns, least=_FAST_RATE, p99=None)
    return [figures[0], figures[-1]]


def _memory(sides: tuple[Side, Side]) -> list[Figure]:
    goal = Goal(_LOW_COST, PEER)
    return [
        _figure("memory at the end", "MB", sides, Side.resident_mb, goal),
        _figure("memory at the end, without the pages of files", "MB", sides, Side.anonymous_mb, goal),
    ]


def _figure(
    what: str, unit: str, sides: tuple[Side, Side], look: Callable[[Side], float], goal: Goal
) -> Figure:
    """What one look at each side shows."""
    return Figure(_ROW, what, unit, tuple(Series(side.name, (look(side),)) for side in sides), goals=(goal,))


def _turns(
    what: str,
    sides: tuple[Side, Side],
    measure: Callable[[Side], tuple[Load, float]],
    allowance: Allowance,
    *,
    rounds: int = _ROUNDS,
) -> Turns[tuple[Load, float]]:
    assert sides[0].name == OURS
    return take_turns(
        what,
        {side.name: lambda side=side: measure(side) for side in sides},
        allowance,
        rounds=rounds,
        warm_rounds=_WARM_ROUNDS,
        is_void=lambda seen: seen[0].failures > 0,
    )
