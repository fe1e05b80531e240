"""How fast an empty slave gets what its master has.

The log is one file, for an empty slave of Apache RocketMQ is given the newest file alone: so both copy the
same bytes. The bare machine copies our log, too.
"""

import statistics
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from bench.bare_copy import copy_rate
from bench.lean_sends import LeanClient
from bench.replica_groups import Node, ReplicaGroup, acked_to, wait_until
from bench.table import Row

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


@dataclass(frozen=True)
class CatchUp:
    """One slave's way from nothing to the end of its master's log."""

    began_s: float
    in_step_s: float
    copied_bytes: int
    master_cpu_s: float
    readable_s: float = 0.0
    """Not looked at if only to be near was asked for."""

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


def catch_up(group: ReplicaGroup, master: Node, *, near_bytes: int = 0) -> CatchUp:
    """Start an empty slave, and see when it is in step, or nearly; it is thrown away then.

    Its start does not count: time begins when it first asks for something.
    """
    wait_until(lambda: not master.status().slaves, what="the last slave is gone")
    with ThreadPoolExecutor(1) as other:
        starting = other.submit(group.start_slave, 1)
        run = _watch(master, starting, near_bytes)
        slave = starting.result()
    try:
        if near_bytes:
            return run
        wanted = master.readable(TOPIC)
        readable_s = wait_until(lambda: slave.readable(TOPIC) >= wanted, what="all messages are readable")
        return replace(run, readable_s=readable_s)
    finally:
        slave.destroy()


def _watch(master: Node, starting: Future[Node], near_bytes: int) -> CatchUp:
    """From when the slave had nothing yet until it is in step."""
    deadline_s = time.perf_counter() + _LIMIT_S
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
            raise TimeoutError(f"the slave is at {acked} of {status.log_end} after {_LIMIT_S:g} s")
        time.sleep(_NEAR_POLL_S if near_bytes else _POLL_S)


def catch_up_rows(client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup, home: Path) -> list[Row]:
    masters = {group: group.start_master("ASYNC_MASTER") for group in (ours, peer)}
    for master in masters.values():
        fill(client, master)
    seen: dict[ReplicaGroup, list[CatchUp]] = {ours: [], peer: []}
    bare: list[float] = []
    log = masters[ours]
    # A second file may be there already, for what comes.
    log_file = min((log.store / "commitlog").iterdir())
    for _ in range(ROUNDS):
        bare.append(copy_rate(log_file, home / "copy", log.status().log_end))
        for group, runs in seen.items():
            runs.append(catch_up(group, masters[group]))
    for master in masters.values():
        master.destroy()
    return _rows(seen[ours], seen[peer], statistics.median(bare))


def _rows(ours: list[CatchUp], peer: list[CatchUp], bare: float) -> list[Row]:
    rate, peer_rate = (statistics.median(run.rate for run in runs) for runs in (ours, peer))
    readable_s, peer_readable_s = (
        statistics.median(run.readable_s - run.began_s for run in runs) for runs in (ours, peer)
    )
    cost, peer_cost = (
        statistics.median(run.master_cpu_s / run.copied_bytes for run in runs) * 1e9 for runs in (ours, peer)
    )
    size = f"{ours[0].copied_bytes / (1 << 30):.2f} GiB"
    return [
        Row(
            f"catch-up of an empty slave over {size}",
            _mb(rate),
            f"RocketMQ {_mb(peer_rate)}",
            rate / peer_rate,
            f"≥ {_FAST_RATE:g}",
            rate >= _FAST_RATE * peer_rate,
        ),
        Row(
            "  beside a bare copy",
            _mb(rate),
            f"sendfile, recv_into {_mb(bare)}",
            rate / bare,
            f"≥ {_BARE_RATE:g}",
            rate >= _BARE_RATE * bare,
        ),
        Row(
            "  until all is readable",
            f"{readable_s:.2f} s",
            f"RocketMQ {peer_readable_s:.2f} s",
            readable_s / peer_readable_s,
            "",
            None,
        ),
        Row(
            "  the master's CPU a GB",
            f"{cost:.2f} s",
            f"RocketMQ {peer_cost:.2f} s",
            cost / peer_cost,
            "",
            None,
        ),
    ]


def _mb(bytes_a_second: float) -> str:
    return f"{bytes_a_second / 1e6:.0f} MB/s"
