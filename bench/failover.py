"""A master's fault: two replicas under a controller, ours beside Apache RocketMQ's, both at default settings.

Each part can be run alone: ``failover-kill``, ``failover-freeze``, ``failover-cut``, ``failover-loss``,
``failover-rejoin``. The first three say how long it takes, from the fault, until

- a new master is elected: the controller is asked every 5 ms,
- a raw send succeeds: one is tried every 5 ms at the replica that is left,
- a producer of ours goes on, and a stock one of RocketMQ 5,
- a consumer of each is given messages of the new master.

Both producers send all the time, four at a time with pauses of 2 ms.
"""

import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.controlled_groups import RocketMQTrio, TanistTrio
from bench.failover_loss import loss_rows
from bench.failover_rejoin import rejoin_rows
from bench.failover_times import CUT, FREEZE, KILL, Failover, Fault, take_turns
from bench.table import Row
from tanist.chaos.hosts import Switch
from tanist.chaos.means import NotPossible
from tests.support.partners import PartnerMissing

ROUNDS = 10
_REJOIN_ROUNDS = 3
_PRODUCER_S = 1.0
_SILENT_S = 5.0
_ROUTE_S = 31.0
"""A stock client asks for routes every 30 s."""


def _kill(home: Path, rounds: int) -> list[Row]:
    with TanistTrio(home / "ours") as ours, RocketMQTrio(home / "peer") as peer:
        return _rows(KILL, *take_turns(home, ours, peer, KILL, rounds))


def _freeze(home: Path, rounds: int) -> list[Row]:
    with TanistTrio(home / "ours") as ours, RocketMQTrio(home / "peer") as peer:
        return _rows(FREEZE, *take_turns(home, ours, peer, FREEZE, rounds))


def _cut(home: Path, rounds: int) -> list[Row]:
    with ExitStack() as running:
        try:
            first, second = (running.enter_context(Switch(number, hosts=2)) for number in (1, 2))
        except NotPossible as lack:
            return [Row("cut off from everything", "not measured", str(lack), None, "", None)]
        ours = running.enter_context(TanistTrio(home / "ours", hub=first.address, hosts=first.hosts))
        peer = running.enter_context(RocketMQTrio(home / "peer", hub=second.address, hosts=second.hosts))
        return _rows(CUT, *take_turns(home, ours, peer, CUT, rounds))


_PARTS: dict[str, tuple[Callable[[Path, int], list[Row]], int]] = {
    "kill": (_kill, ROUNDS),
    "freeze": (_freeze, ROUNDS),
    "cut": (_cut, ROUNDS),
    "loss": (loss_rows, ROUNDS),
    "rejoin": (rejoin_rows, _REJOIN_ROUNDS),
}


def run(rounds: int | None = None) -> list[Row]:
    """Run all parts."""
    return [row for name in _PARTS for row in _run_part(name, rounds)]


def parts(rounds: int | None = None) -> dict[str, Callable[[], list[Row]]]:
    """Each part by the name of its benchmark."""
    return {f"failover-{name}": lambda name=name: _run_part(name, rounds) for name in _PARTS}


def _run_part(name: str, rounds: int | None) -> list[Row]:
    part, usual = _PARTS[name]
    try:
        with tempfile.TemporaryDirectory(prefix="tanist-bench-") as home:
            return part(Path(home), rounds or usual)
    except PartnerMissing as lack:
        raise SystemExit(f"failover: {lack}") from lack


def _rows(fault: Fault, ours: list[Failover], peer: list[Failover]) -> list[Row]:
    def row(what: str, time_of: Callable[[Failover], float], target: str, is_met: _IsMet | None) -> Row:
        mine, theirs = (sorted(map(time_of, seen)) for seen in (ours, peer))
        p50, peer_p50 = statistics.median(mine), statistics.median(theirs)
        return Row(
            what,
            f"{p50:.2f} / {mine[-1]:.2f} s",
            f"RocketMQ {peer_p50:.2f} / {theirs[-1]:.2f} s",
            p50 / peer_p50,
            target,
            None if is_met is None else is_met(mine, theirs),
        )

    is_kill = fault is KILL
    return [
        row(
            f"{fault.name}, {len(ours)} times, p50 / worst: a master is elected",
            lambda one: one.elected_s,
            "",
            None,
        ),
        row(
            "  a raw send succeeds",
            lambda one: one.raw_s,
            "p50 ≤ RocketMQ's" if is_kill else f"worst ≤ {_SILENT_S:g} s",
            _is_no_slower if is_kill else lambda mine, _: mine[-1] <= _SILENT_S,
        ),
        row(
            "  Tanist's producer goes on",
            lambda one: one.tanist_s,
            f"worst ≤ {_PRODUCER_S:g} s" if is_kill else "",
            (lambda mine, _: mine[-1] <= _PRODUCER_S) if is_kill else None,
        ),
        row(
            "  Java's producer goes on",
            lambda one: one.java_s,
            f"worst ≤ RocketMQ's, or {_ROUTE_S:g} s" if is_kill else "",
            (lambda mine, theirs: mine[-1] <= max(theirs[-1], _ROUTE_S)) if is_kill else None,
        ),
        row("  Tanist's consumer goes on", lambda one: one.tanist_reads_s, "", None),
        row("  Java's consumer goes on", lambda one: one.java_reads_s, "", None),
    ]


_IsMet = Callable[[list[float], list[float]], bool]
"""Whether our times, sorted, are good enough beside the peer's."""


def _is_no_slower(mine: list[float], theirs: list[float]) -> bool:
    return statistics.median(mine) <= statistics.median(theirs)
