"""Replication: a master and its slaves, ours beside Apache RocketMQ's pair of fixed roles.

Each part runs both sides in turns, on stores of their own, and can be run alone: ``ha-catch-up``, ``ha-lag``,
``ha-java``, ``ha-lean``, ``ha-producers``, ``ha-ten``.
"""

import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.figures import Figure
from bench.ha_catch_up import catch_up_figures
from bench.ha_lag import lag_figures
from bench.ha_producers import BIG_FILE, producer_rows
from bench.ha_ten import ten_rows
from bench.ha_writes import java_figures, lean_figures
from bench.lean_sends import LeanClient
from bench.race_record import figure_rows
from bench.replica_groups import RocketMQGroup, TanistGroup
from bench.table import Row
from bench.turns import Allowance
from tests.support.partners import PartnerMissing

_LIMIT_S = 300.0
"""For each part, when it is run alone."""


def catch_up(home: Path, allowance: Allowance) -> list[Figure]:
    with _stage(home) as (client, ours, peer):
        return catch_up_figures(client, ours, peer, home, allowance)


def lag(home: Path, allowance: Allowance) -> list[Figure]:
    with _stage(home) as (client, ours, peer):
        return lag_figures(client, ours, peer, allowance)


def java_writes(home: Path, allowance: Allowance) -> list[Figure]:
    with _stage(home) as (_client, ours, peer):
        return java_figures(ours, peer, home, allowance)


def lean_writes(home: Path, allowance: Allowance) -> list[Figure]:
    with _stage(home) as (client, ours, peer):
        return lean_figures(client, ours, peer, home, allowance)


@contextmanager
def _stage(home: Path) -> Generator[tuple[LeanClient, TanistGroup, RocketMQGroup]]:
    """The lean client, and a group of each side in which nothing runs yet."""
    with (
        LeanClient(home / "lean") as client,
        TanistGroup(home / "ours") as ours,
        RocketMQGroup(home / "peer") as peer,
    ):
        yield client, ours, peer


def _rows(measure: Callable[[Path, Allowance], list[Figure]], home: Path) -> list[Row]:
    return figure_rows(measure(home, Allowance(_LIMIT_S)))


def _producers(client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours", **BIG_FILE) as ours, RocketMQGroup(home / "peer", **BIG_FILE) as peer:
        return producer_rows(client, ours, peer)


def _ten(client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours") as ours, RocketMQGroup(home / "peer") as peer:
        return ten_rows(client, ours, peer)


_PARTS: dict[str, Callable[[LeanClient, Path], list[Row]]] = {
    "catch-up": lambda _client, home: _rows(catch_up, home),
    "lag": lambda _client, home: _rows(lag, home),
    "java": lambda _client, home: _rows(java_writes, home),
    "lean": lambda _client, home: _rows(lean_writes, home),
    "producers": _producers,
    "ten": _ten,
}


def run() -> list[Row]:
    """Run all parts."""
    return [row for name in _PARTS for row in _run_part(name)]


def parts() -> dict[str, Callable[[], list[Row]]]:
    """Each part by the name of its benchmark."""
    return {f"ha-{name}": lambda name=name: _run_part(name) for name in _PARTS}


def _run_part(name: str) -> list[Row]:
    try:
        with ExitStack() as running:
            home = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="tanist-bench-")))
            client = running.enter_context(LeanClient(home / "lean-of-part"))
            return _PARTS[name](client, home)
    except PartnerMissing as lack:
        raise SystemExit(f"ha: {lack}") from lack
