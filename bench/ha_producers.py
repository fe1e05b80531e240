"""What a slave that catches up costs the producers of its master, who send at full speed meanwhile."""

import statistics
import sys
import threading
import time
from types import TracebackType
from typing import Self

from bench.ha_catch_up import ROUNDS, catch_up, fill
from bench.lean_client import BUCKET_S, Load
from bench.lean_sends import LeanClient
from bench.replica_groups import Node, ReplicaGroup
from bench.table import Row

BIG_FILE: dict[str, object] = {"mappedFileSizeCommitLog": (2 << 30) - 4096}
"""Producers add to the log while it is copied, and it has to stay one file."""
_LOG_BYTES = 600 << 20
_NEAR_BYTES = 4 << 20
_CONNECTIONS = 16
_ALONE_S = 2.0
_STEP_MS = 500
_LEAST_SHARE = 0.8


class _Stream:
    """Producers that send at full speed, until the block ends; how fast they were can be asked then."""

    def __init__(self, client: LeanClient, address: str) -> None:
        self._client = client
        self._address = address
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
                self._client.send(self._address, connections=_CONNECTIONS, duration_ms=_STEP_MS)
            )

    def rate(self, from_s: float, to_s: float) -> float:
        """Messages a second in this time, by the spans that lie in it."""
        counts = [
            count
            for load in self._loads
            # The last span is not whole.
            for number, count in enumerate(load.buckets[:-1])
            if from_s <= load.began_s + number * BUCKET_S and load.began_s + (number + 1) * BUCKET_S <= to_s
        ]
        if not counts:
            raise ValueError(f"the slave was in step within {to_s - from_s:.3f} s, too soon to measure")
        return sum(counts) / len(counts) / BUCKET_S


def producer_rows(client: LeanClient, ours: ReplicaGroup, peer: ReplicaGroup) -> list[Row]:
    """How fast producers are while an empty slave catches up, beside the same without a slave."""
    masters = {group: group.start_master("ASYNC_MASTER") for group in (ours, peer)}
    for master in masters.values():
        fill(client, master, until=_LOG_BYTES)
    seen: dict[ReplicaGroup, list[tuple[float, float]]] = {ours: [], peer: []}
    for _ in range(ROUNDS):
        for group, rates in seen.items():
            rates.append(_with_and_without(client, group, masters[group]))
    for master in masters.values():
        master.destroy()
    return [_producer_row(group.name, seen[group], is_ours=group is ours) for group in seen]


def _with_and_without(client: LeanClient, group: ReplicaGroup, master: Node) -> tuple[float, float]:
    with _Stream(client, master.address) as stream:
        began_s = time.perf_counter()
        time.sleep(_ALONE_S)
        alone_s = time.perf_counter()
        run = catch_up(group, master, near_bytes=_NEAR_BYTES)
    rates = stream.rate(run.began_s, run.in_step_s), stream.rate(began_s, alone_s)
    print(
        f"{group.name}: {run.rate / 1e6:.0f} MB/s to the slave beside {rates[0]:.0f} sends/s", file=sys.stderr
    )
    return rates


def _producer_row(name: str, rates: list[tuple[float, float]], *, is_ours: bool) -> Row:
    busy, alone = (statistics.median(part) for part in zip(*rates, strict=True))
    share = statistics.median(with_slave / without for with_slave, without in rates)
    return Row(
        f"sends, 16 connections, while a slave of {name} catches up",
        f"{busy / 1e3:.1f}k/s",
        f"without {alone / 1e3:.1f}k/s",
        share,
        f"≥ {_LEAST_SHARE:g}" if is_ours else "",
        share >= _LEAST_SHARE if is_ours else None,
    )
