"""What a slave that catches up costs the producers of its master, who send meanwhile.

All of it runs on the same cores. At full speed producers and master take all there is, so what a slave needs
is taken from them, also of one that is in step: both states are shown beside each other, and beside a master
with no slave. At a rate that leaves room, what remains is what the master itself does to them.
"""

import statistics
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bench.ha_catch_up import ROUNDS, caught_up, fill
from bench.lean_client import BUCKET_S, Load
from bench.lean_sends import LeanClient
from bench.replica_groups import ReplicaGroup
from bench.table import Row

BIG_FILE: dict[str, object] = {"mappedFileSizeCommitLog": (2 << 30) - 4096}
"""Producers add to the log while it is copied, and it has to stay one file."""
_LOG_BYTES = 600 << 20
_NEAR_BYTES = 4 << 20
_FULL_SPEED = 0.0
_STEADY_RATE = 20_000.0
"""Messages a second, that each side takes without a slave."""
_CONNECTIONS = {_FULL_SPEED: 16, _STEADY_RATE: 64}
_STATE_S = 2.0
"""How long each state is looked at but that in which a slave catches up, which takes what it takes."""
_STEP_MS = 500
_WARM_UP_MS = 5_000
"""A JVM that has just started is slower than it will be."""
_LEAST_SHARE = 0.8


@dataclass(frozen=True)
class _State:
    """What producers got, in one state of the slave."""

    rate: float
    p99_ms: float


@dataclass(frozen=True)
class _Round:
    alone: _State
    catching_up: _State
    in_step: _State


class _Stream:
    """Producers that send until the block ends; how they fared can be asked then."""

    def __init__(self, client: LeanClient, address: str, rate: float) -> None:
        self._client = client
        self._address = address
        self._rate = rate
        self._loads: list[Load] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._is_over.is_set():
            self._loads.append(
                self._client.send(
                    self._address,
                    connections=_CONNECTIONS[self._rate],
                    duration_ms=_STEP_MS,
                    rate=self._rate,
                )
            )

    def state(self, from_s: float, to_s: float) -> _State:
        """By the spans that lie in this time; the slowest sends by the steps that had a part in it."""
        loads = [load for load in self._loads if load.ended_s > from_s and load.began_s < to_s]
        counts = [
            count
            for load in loads
            # The last span is not whole.
            for number, count in enumerate(load.buckets[:-1])
            if from_s <= load.began_s + number * BUCKET_S and load.began_s + (number + 1) * BUCKET_S <= to_s
        ]
        if not counts:
            raise ValueError(f"the slave was in step within {to_s - from_s:.3f} s, too soon to measure")
        p99_ms = statistics.median(load.p99_micros for load in loads) / 1e3
        return _State(sum(counts) / len(counts) / BUCKET_S, p99_ms)


def producer_rows(client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup) -> list[Row]:
    """How producers fare while an empty slave catches up, beside one in step and beside none."""
    seen = {(group, rate): list[_Round]() for rate in _CONNECTIONS for group in (ours, peer)}
    for _ in range(ROUNDS):
        for (group, rate), rounds in seen.items():
            rounds.append(_run(client, group, rate))
    return [
        row
        for (group, rate), rounds in seen.items()
        for row in _group_rows(group.name, rate, rounds, is_ours=group is ours)
    ]


def _run(client: LeanClient, group: ReplicaGroup, rate: float) -> _Round:
    master = group.start_master("ASYNC_MASTER")
    fill(client, master, until=_LOG_BYTES)
    client.send(
        master.address, connections=_CONNECTIONS[_STEADY_RATE], duration_ms=_WARM_UP_MS, rate=_STEADY_RATE
    )
    with _Stream(client, master.address, rate) as stream:
        alone = _look()
        with caught_up(group, master, near_bytes=_NEAR_BYTES) as (run, _):
            in_step = _look()
    master.destroy()
    seen = _Round(stream.state(*alone), stream.state(run.began_s, run.in_step_s), stream.state(*in_step))
    print(
        f"{group.name}: {run.rate / 1e6:.0f} MB/s to the slave beside {seen.catching_up.rate:.0f} sends/s; "
        f"{seen.in_step.rate:.0f} with it in step, {seen.alone.rate:.0f} without it",
        file=sys.stderr,
    )
    return seen


def _look() -> tuple[float, float]:
    began_s = time.perf_counter()
    time.sleep(_STATE_S)
    return began_s, time.perf_counter()


def _group_rows(name: str, rate: float, rounds: list[_Round], *, is_ours: bool) -> list[Row]:
    busy, in_step = [one.catching_up for one in rounds], [one.in_step for one in rounds]
    alone = [one.alone for one in rounds]
    pace = f"{rate / 1e3:g}k sends/s offered" if rate else "sends at full speed"
    what = f"{pace}, while a slave of {name} catches up"
    goal = _LEAST_SHARE if is_ours else None
    rows = [
        _row(what, _rates(busy), "in step", _rates(in_step), "k/s", goal=None if rate else goal),
        _row(what, _rates(busy), "no slave", _rates(alone), "k/s", goal=goal if rate else None),
    ]
    if rate:
        rows.append(_row(f"{what}: p99", _p99s(busy), "no slave", _p99s(alone), " ms"))
    return rows


def _rates(states: list[_State]) -> list[float]:
    return [state.rate / 1e3 for state in states]


def _p99s(states: list[_State]) -> list[float]:
    return [state.p99_ms for state in states]


def _row(
    what: str, busy: list[float], other: str, beside: list[float], unit: str, *, goal: float | None = None
) -> Row:
    share = statistics.median(mine / theirs for mine, theirs in zip(busy, beside, strict=True))
    return Row(
        what,
        f"{statistics.median(busy):.1f}{unit}",
        f"{other}: {statistics.median(beside):.1f}{unit}",
        share,
        f"≥ {goal:g}" if goal else "",
        share >= goal if goal else None,
    )
