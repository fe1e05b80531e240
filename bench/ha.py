"""Replication: a master and its slaves, ours beside Apache RocketMQ's pair of fixed roles.

Each part runs both sides in turns, on stores of their own, and can be run alone: ``ha-catch-up``, ``ha-lag``,
``ha-java``, ``ha-lean``, ``ha-producers``, ``ha-ten``.
"""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.ha_catch_up import catch_up_rows
from bench.ha_lag import lag_rows
from bench.ha_producers import BIG_FILE, producer_rows
from bench.ha_ten import ten_rows
from bench.ha_writes import java_rows, lean_rows
from bench.lean_sends import LeanClient
from bench.replica_groups import RocketMQGroup, TanistGroup
from bench.table import Row
from tests.support.partners import PartnerMissing


def _catch_up(client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours") as ours, RocketMQGroup(home / "peer") as peer:
        return catch_up_rows(client, ours, peer, home)


def _lag(client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours") as ours, RocketMQGroup(home / "peer") as peer:
        return lag_rows(client, ours, peer)


def _java(_client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours") as ours, RocketMQGroup(home / "peer") as peer:
        return java_rows(ours, peer, home)


def _lean(client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours") as ours, RocketMQGroup(home / "peer") as peer:
        return lean_rows(client, ours, peer, home)


def _producers(client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours", **BIG_FILE) as ours, RocketMQGroup(home / "peer", **BIG_FILE) as peer:
        return producer_rows(client, ours, peer)


def _ten(client: LeanClient, home: Path) -> list[Row]:
    with TanistGroup(home / "ours") as ours, RocketMQGroup(home / "peer") as peer:
        return ten_rows(client, ours, peer)


_PARTS: dict[str, Callable[[LeanClient, Path], list[Row]]] = {
    "catch-up": _catch_up,
    "lag": _lag,
    "java": _java,
    "lean": _lean,
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
            client = running.enter_context(LeanClient(home / "lean"))
            return _PARTS[name](client, home)
    except PartnerMissing as lack:
        raise SystemExit(f"ha: {lack}") from lack
