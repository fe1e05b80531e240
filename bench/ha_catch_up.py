"""How fast an empty slave gets what its master has.

The log is one file, for an empty slave of Apache RocketMQ is given the newest file alone: so both copy the
same bytes. The bare machine copies our log, too.
"""

import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench.bare_copy import copy_rate
from bench.figures import Figure, Goal, Series
from bench.lean_sends import LeanClient
from bench.replica_groups import Node, ReplicaGroup, acked_to, wait_until
from bench.turns import Allowance, take_turns

TOPIC = "Bench"
FILL_BYTES = 1000 << 20
ROUNDS = 3
_BATCH = 64
_MOST_BYTES = 1_300
"""A record of 1 KiB takes less than this in the log, so that a file is not filled beyond its end."""
_FILL_CONNECTIONS = 4
_POLL_S = 0.005
_NEAR_POLL_S = 0.025
"""Who only wants to be near measures others meanwhile, and is not to disturb them."""
_LIMIT_S = 120.0
_FAST_RATE = 3.0
_BARE_RATE = 0.5
_LOW_CPU = 0.5
_ROW = "catch-up"
_BARE = "sendfile, recv_into"


@dataclass(frozen=True)
class CatchUp:
    """One slave's way from nothing to the end of its master's log."""

    began_s: float
    in_step_s: float
    copied_bytes: int
    master_cpu_s: float
    readable_s: float = 0.0
    """Where it was looked at."""

    @property
    def rate(self) -> float:
        return self.copied_bytes / (self.in_step_s - self.began_s)


def fill(client: LeanClient, master: Node, *, until: int = FILL_BYTES) -> None:
    """Have the log grow to about this size, by messages of 1 KiB."""
    while (left := until - master.status().log_end) > 0:
        client.send(
            master.address,
            connections=_FILL_CONNECTIONS,
            batch=_BATCH,
            most=max(left // _MOST_BYTES, _FILL_CONNECTIONS * _BATCH),
        )


class StartsSlaves(Protocol):
    def start_slave(self, number: int) -> Node:
        """Start an empty slave."""
        ...


def catch_up(group: StartsSlaves, master: Node, *, limit_s: float = _LIMIT_S) -> CatchUp:
    """Start an empty slave, and see when it is in step, and when all can be read from it; it is thrown away
    then."""
    with caught_up(group, master, limit_s=limit_s) as (run, slave):
        wanted = master.readable(TOPIC)
        readable_s = wait_until(lambda: slave.readable(TOPIC) >= wanted, what="all messages are readable")
        return replace(run, readable_s=readable_s)


@contextmanager
def caught_up(
    group: StartsSlaves, master: Node, *, near_bytes: int = 0, limit_s: float = _LIMIT_S
) -> Generator[tuple[CatchUp, Node]]:
    """Start an empty slave and see when it is in step, or nearly; it is there while the block lasts.

    Its start does not count: time begins when it first asks for something.
    """
    wait_until(lambda: not master.status().slaves, what="the last slave is gone")
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(group.start_slave, 1)
        run = _watch(master, starting, near_bytes, limit_s)
        slave = starting.result()
    try:
        yield run, slave
    finally:
        slave.destroy()


def _watch(master: Node, starting: Future[Node], near_bytes: int, limit_s: float) -> CatchUp:
    """From when the slave had nothing yet until it is in step."""
    deadline_s = time.perf_counter() + limit_s
    began_s = used_s = 0.0
    while True:
        asked_s = time.perf_counter()
        status = master.status()
        acked = acked_to(status)
        if not acked:
            began_s, used_s = asked_s, master.cpu_s()
        elif acked >= status.log_end - near_bytes:
            return CatchUp(began_s, time.perf_counter(), acked, master.cpu_s() - used_s)
        if starting.done():
            starting.result()
        if asked_s > deadline_s:
            raise TimeoutError(f"the slave is at {acked} of {status.log_end} after {limit_s:g} s")
        time.sleep(_NEAR_POLL_S if near_bytes else _POLL_S)


def catch_up_figures(
    client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup, home: Path, allowance: Allowance
) -> list[Figure]:
    masters = {group.name: (group, group.start_master("ASYNC_MASTER")) for group in (ours, peer)}
    for _, master in masters.values():
        fill(client, master, until=allowance.amount(FILL_BYTES))
    log = masters[ours.name][1]
    # A second file may be there already, for what comes.
    log_file = min((log.store / "commitlog").iterdir())
    bare: list[float] = []

    def measure(group: ReplicaGroup, master: Node) -> CatchUp:
        if group is ours:
            bare.append(copy_rate([log_file], home / "copy", log.status().log_end))
        return catch_up(group, master)

    turns = take_turns(
        "catch-up",
        {name: lambda pair=pair: measure(*pair) for name, pair in masters.items()},
        allowance,
        rounds=ROUNDS,
    )
    for _, master in masters.values():
        master.destroy()
    size = f"{turns.seen[ours.name][0].copied_bytes / (1 << 30):.2f} GiB"
    what = f"an empty slave gets {size}"
    return [
        Figure(
            _ROW,
            what,
            "B/s",
            (*turns.series(lambda run: run.rate), Series(_BARE, tuple(bare))),
            is_more_better=True,
            goals=(Goal(_FAST_RATE, peer.name), Goal(_BARE_RATE, _BARE)),
        ),
        Figure(_ROW, f"{what}: until all is readable", "s", turns.series(_readable_s)),
        Figure(
            _ROW,
            f"{what}: the master's CPU a GB",
            "s",
            turns.series(lambda run: run.master_cpu_s / run.copied_bytes * 1e9),
            goals=(Goal(_LOW_CPU, peer.name),),
        ),
    ]


def _readable_s(run: CatchUp) -> float:
    return run.readable_s - run.began_s
