"""How long it takes until a name server, a master and a slave are of use, from nothing."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, Goal
from bench.lean_client import send_request
from bench.replica_groups import ReplicaGroup, RocketMQGroup, TanistGroup, wait_in_step, wait_until
from bench.turns import Allowance, take_turns
from tanist.protocol import ResponseCode

_ROW = "start-up"
_ROUNDS = 3


@dataclass(frozen=True)
class _StartUp:
    """Seconds of each step, from its own beginning."""

    name_server_s: float
    master_s: float
    first_send_s: float
    """From the start of the master until it has taken a message."""
    slave_s: float
    """Until it is in step."""


def start_up_figures(home: Path, allowance: Allowance) -> list[Figure]:
    homes = iter(range(1 << 30))
    kinds: dict[str, Callable[[Path], ReplicaGroup]] = {
        TanistGroup.name: TanistGroup,
        RocketMQGroup.name: RocketMQGroup,
    }
    turns = take_turns(
        "start-up",
        {name: lambda kind=kind: _start(kind, home / str(next(homes))) for name, kind in kinds.items()},
        allowance,
        rounds=_ROUNDS,
    )
    steps: tuple[tuple[str, Callable[[_StartUp], float]], ...] = (
        ("a name server serves", lambda one: one.name_server_s),
        ("a master serves", lambda one: one.master_s),
        ("a master has taken its first message", lambda one: one.first_send_s),
        ("an empty slave is in step", lambda one: one.slave_s),
    )
    goals = (Goal(1.0, RocketMQGroup.name),)
    return [Figure(_ROW, what, "s", turns.series(read), goals=goals) for what, read in steps]


def _start(kind: Callable[[Path], ReplicaGroup], home: Path) -> _StartUp:
    began_s = time.perf_counter()
    with kind(home) as group:
        name_server_s = time.perf_counter() - began_s
        began_s = time.perf_counter()
        master = group.start_master("ASYNC_MASTER")
        master_s = time.perf_counter() - began_s
        request = send_request("Bench", 0, b"first")
        sent_s = wait_until(
            lambda: master.ask(request).code == ResponseCode.SUCCESS, what="a first message is taken"
        )
        first_send_s = sent_s - began_s
        began_s = time.perf_counter()
        slave = group.start_slave(1)
        slave_s = wait_in_step(master) - began_s
        for node in (slave, master):
            node.destroy()
        return _StartUp(name_server_s, master_s, first_send_s, slave_s)
