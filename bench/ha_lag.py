"""How far a slave is behind its master that waits for nobody: at low load, and after a burst.

A message is visible on a slave when the slave counts it as the last of its queue, which both brokers can be
asked. It is asked again and again, because a pull that waits is not woken by what RocketMQ's slaves receive.
"""

import random
import statistics
import time
from dataclasses import dataclass

from bench.lean_client import send_request
from bench.lean_sends import BODY_BYTES, LeanClient
from bench.replica_groups import Node, ReplicaGroup, wait_in_step, wait_until
from bench.table import Row
from tanist.protocol.codes import ResponseCode

_PUSHES = 100
_WARM_PUSHES = 10
_PAUSE_S = 0.1
"""As long as RocketMQ's master waits between two looks at its log, so that sends fall anywhere between."""
_LOOK_S = 0.0002
_PUSH_P50_MS = 2.0
_PUSH_TOPIC = "Push"

_BURST = 200_000
_BURST_BATCH = 32
_BURST_CONNECTIONS = 4
_BURST_ROUNDS = 3
_BURST_TOPIC = "Burst"
_BURST_MS = 1_000.0


@dataclass(frozen=True)
class _Burst:
    """What a burst left behind, and how long that lasted."""

    rate: float
    lag_bytes: int
    in_step_ms: float
    readable_ms: float


def lag_rows(client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup) -> list[Row]:
    pairs: dict[ReplicaGroup, tuple[Node, Node]] = {}
    for group in (ours, peer):
        master = group.start_master("ASYNC_MASTER")
        pairs[group] = master, group.start_slave(1)
        wait_in_step(master)
    rows = _push_rows(*(_pushes(*pairs[group]) for group in (ours, peer)))
    bursts: dict[ReplicaGroup, list[_Burst]] = {ours: [], peer: []}
    for _ in range(_BURST_ROUNDS):
        for group, seen in bursts.items():
            seen.append(_burst(client, *pairs[group]))
    for pair in pairs.values():
        for node in pair:
            node.destroy()
    return rows + _burst_rows(bursts[ours], bursts[peer])


def _pushes(master: Node, slave: Node) -> list[float]:
    """Seconds from a send to the message's being visible on the slave."""
    request = send_request(_PUSH_TOPIC, 0, bytes(BODY_BYTES))
    taken: list[float] = []
    pause = random.Random(1)
    for number in range(_WARM_PUSHES + _PUSHES):
        time.sleep(pause.uniform(0, _PAUSE_S))
        wanted = number + 1
        began_s = time.perf_counter()
        answer = master.ask(request)
        if answer.code != ResponseCode.SUCCESS:
            raise RuntimeError(f"{master.address} refused a message: {answer.remark}")
        seen_s = wait_until(
            lambda wanted=wanted: slave.queue_end(_PUSH_TOPIC, 0) >= wanted,
            what="a message is on the slave",
            poll_s=_LOOK_S,
        )
        taken.append(seen_s - began_s)
    return taken[_WARM_PUSHES:]


def _push_rows(ours: list[float], peer: list[float]) -> list[Row]:
    p50, peer_p50 = (statistics.median(taken) * 1e3 for taken in (ours, peer))
    p99, peer_p99 = (statistics.quantiles(taken, n=100)[98] * 1e3 for taken in (ours, peer))
    return [
        Row(
            "async push at low load, send to visible on the slave: p50",
            f"{p50:.2f} ms",
            f"RocketMQ {peer_p50:.1f} ms",
            p50 / peer_p50,
            f"≤ {_PUSH_P50_MS:g} ms",
            p50 <= _PUSH_P50_MS,
        ),
        Row("  p99", f"{p99:.2f} ms", f"RocketMQ {peer_p99:.1f} ms", p99 / peer_p99, "", None),
    ]


def _burst(client: LeanClient, master: Node, slave: Node) -> _Burst:
    there = slave.readable(_BURST_TOPIC)
    load = client.send(
        master.address,
        connections=_BURST_CONNECTIONS,
        most=_BURST,
        batch=_BURST_BATCH,
        topic=_BURST_TOPIC,
    )
    status = master.status()
    lag_bytes = status.log_end - min(one.acked_to for one in status.slaves)
    in_step_s = wait_in_step(master)
    wanted = there + load.count
    readable_s = wait_until(lambda: slave.readable(_BURST_TOPIC) >= wanted, what="the burst is readable")
    return _Burst(load.rate, lag_bytes, (in_step_s - load.ended_s) * 1e3, (readable_s - load.ended_s) * 1e3)


def _burst_rows(ours: list[_Burst], peer: list[_Burst]) -> list[Row]:
    rate, peer_rate = (statistics.median(one.rate for one in seen) for seen in (ours, peer))
    taken, peer_taken = (statistics.median(one.in_step_ms for one in seen) for seen in (ours, peer))
    lag, peer_lag = (statistics.median(one.lag_bytes for one in seen) / 1e6 for seen in (ours, peer))
    readable, peer_readable = (statistics.median(one.readable_ms for one in seen) for seen in (ours, peer))
    return [
        Row(
            f"lag after {_BURST // 1000}k messages is 0 again within",
            f"{taken:.0f} ms",
            f"RocketMQ {peer_taken:.0f} ms",
            taken / peer_taken,
            f"≤ {_BURST_MS:g} ms",
            taken <= _BURST_MS,
        ),
        Row(
            "  the lag at the end of the burst",
            f"{lag:.1f} MB",
            f"RocketMQ {peer_lag:.1f} MB",
            None,
            "",
            None,
        ),
        Row(
            "  all of it is readable within",
            f"{readable:.0f} ms",
            f"RocketMQ {peer_readable:.0f} ms",
            readable / peer_readable,
            "",
            None,
        ),
        Row(
            "  the burst, batches of 32",
            f"{rate / 1e3:.0f}k/s",
            f"RocketMQ {peer_rate / 1e3:.0f}k/s",
            rate / peer_rate,
            "",
            None,
        ),
    ]
