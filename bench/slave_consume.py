"""A master with fixed roles is killed under load: how long consumers have nothing, and what they get twice.

Ours beside Apache RocketMQ's pair at its defaults (classic) and in its acting-master mode, in turns. Each is
read by a stock consumer of RocketMQ 5 and by Tanist's, both at default settings, and by a stock one that is
started again after each kill and hand-back, and so begins at what the broker holds of its offsets.
``slave-consume-rocketmq`` leaves ours out.
"""

import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.fixed_pairs import CHECKS, ActingPair, ClassicPair, Pair, TanistPair
from bench.lean_sends import LeanClient
from bench.processes import own_process
from bench.slave_reads import Seen
from bench.slave_switch import LIMIT_S, Reader, switch
from bench.table import Row
from tests.support.fixed_pair import SQLITE
from tests.support.partners import PartnerMissing
from tests.support.rocketmq.jars import FULL_SPEED
from tests.support.rocketmq.scenario import java_clients

ROUNDS = 10
_LINE = "5.3.3"
_JAVA, _TANIST, _RESTARTED = "Java", "Tanist", "Java restarted"
_OUTAGE_S = {_JAVA: CHECKS + 3.0, _TANIST: CHECKS + 1.0, _RESTARTED: math.inf}
"""What a consumer may take, the slave's checks included."""
_NOT_WITHIN = f"not within {LIMIT_S:g} s"

_Figures = Mapping[str, Sequence[Seen]]
"""By the name of the pair."""


def run(rounds: int | None = None, *, coordinator: str = SQLITE) -> list[Row]:
    """Run all sides; our registry is in SQLite or in ZooKeeper."""
    return _run(rounds, lambda home: [TanistPair(home / "ours", coordinator=coordinator), *_peers(home)])


def run_rocketmq(rounds: int | None = None) -> list[Row]:
    """Run RocketMQ's sides alone."""
    return _run(rounds, _peers)


def _peers(home: Path) -> list[Pair]:
    return [ClassicPair(home / "classic"), ActingPair(home / "acting")]


def _run(rounds: int | None, make_pairs: Callable[[Path], list[Pair]]) -> list[Row]:
    try:
        with tempfile.TemporaryDirectory(prefix="tanist-bench-") as home:
            figures = _take_turns(Path(home), make_pairs(Path(home)), rounds or ROUNDS)
    except PartnerMissing as lack:
        raise SystemExit(f"slave-consume: {lack}") from lack
    return [
        row for kind in _OUTAGE_S for row in _rows(kind, {name: seen[kind] for name, seen in figures.items()})
    ]


def _take_turns(home: Path, pairs: Sequence[Pair], rounds: int) -> dict[str, dict[str, list[Seen]]]:
    """Kill the master of each in turns; what each kind of consumer saw, by the name of the pair."""
    figures: dict[str, dict[str, list[Seen]]] = {
        pair.name: {kind: [] for kind in _OUTAGE_S} for pair in pairs
    }
    with ExitStack() as running:
        client = running.enter_context(LeanClient(home / "lean"))
        processes = {
            _JAVA: running.enter_context(java_clients(_LINE, home / "java", flags=FULL_SPEED)),
            _TANIST: running.enter_context(own_process("bench.read_steps", home / "tanist")),
        }
        readers: dict[Pair, list[Reader]] = {}
        for pair in pairs:
            running.enter_context(pair)
            readers[pair] = [
                Reader(
                    kind,
                    processes[_TANIST if kind == _TANIST else _JAVA],
                    pair,
                    is_restarted=kind == _RESTARTED,
                )
                for kind in _OUTAGE_S
            ]
        for _ in range(rounds):
            for pair in pairs:
                for kind, seen in switch(pair, readers[pair], client).items():
                    figures[pair.name][kind].append(seen)
                    print(f"{pair.name}, {kind} consumer: {seen}", file=sys.stderr)
    return figures


def _rows(kind: str, figures: _Figures) -> list[Row]:
    """The rows of one kind of consumer."""
    limit_s = _OUTAGE_S[kind]
    rounds = len(next(iter(figures.values())))

    def row(
        what: str, tell: Callable[[Sequence[Seen]], str], target: str, is_met: Callable[[Seen], bool] | None
    ) -> Row:
        ours = figures.get(TanistPair.name)
        peers = [f"{name} {tell(seen)}" for name, seen in figures.items() if seen is not ours]
        return Row(
            what,
            "not measured" if ours is None else tell(ours),
            f"RocketMQ {', '.join(peers)}",
            None,
            target,
            None if ours is None or is_met is None else all(map(is_met, ours)),
        )

    return [
        row(
            f"{kind} consumer, {rounds} kills, p50 / worst: has nothing for",
            lambda seen: _spread([one.outage.gap_s for one in seen]),
            f"worst ≤ {limit_s:g} s" if math.isfinite(limit_s) else "",
            (lambda one: one.outage.gap_s <= limit_s) if math.isfinite(limit_s) else None,
        ),
        row(
            "  from the kill to the end of that",
            lambda seen: _spread([one.outage.back_s for one in seen]),
            "",
            None,
        ),
        row(
            "  stored and never delivered",
            lambda seen: f"{sum(one.lost for one in seen)} of {sum(one.stored for one in seen)}",
            "0",
            lambda one: one.lost == 0,
        ),
        row(
            "  delivered twice after the switch, unacknowledged at the kill",
            lambda seen: (
                f"{sum(one.duplicates_at_switch for one in seen)}, {sum(one.unacknowledged for one in seen)}"
            ),
            "≤ unacknowledged",
            lambda one: one.duplicates_at_switch <= one.unacknowledged,
        ),
        row(
            "  has nothing at the hand-back for",
            lambda seen: _spread([one.hand_back_s for one in seen]),
            "",
            None,
        ),
        row(
            "  delivered twice after the hand-back",
            lambda seen: str(sum(one.duplicates_at_hand_back for one in seen)),
            "0",
            lambda one: one.duplicates_at_hand_back == 0,
        ),
    ]


def _spread(times_s: Sequence[float]) -> str:
    p50, worst = statistics.median(times_s), max(times_s)
    if math.isinf(p50):
        return _NOT_WITHIN
    return f"{p50:.2f} / " + (_NOT_WITHIN if math.isinf(worst) else f"{worst:.2f} s")
