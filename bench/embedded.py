"""How long a test waits for its embedded broker: name server, store, ports, topics and their routes.

There is no peer: nothing else brings a broker of this protocol up inside the process that asks for it.
"""

import asyncio
import statistics
import time
from collections.abc import Callable

from bench.table import Row
from tanist.testing import EmbeddedBroker

_STARTS = 20
_TOPICS = ["Orders", "Payments", "Refunds"]
_SOON_MS = 300.0


def run() -> list[Row]:
    return [
        row
        for name, measure in (("async with", _in_this_loop), ("with", _in_a_thread))
        for row in _rows(name, measure)
    ]


def _rows(name: str, measure: Callable[[], tuple[float, float]]) -> list[Row]:
    starts, stops = zip(*(measure() for _ in range(_STARTS)), strict=True)
    start_ms, worst_ms, stop_ms = (
        seconds * 1e3 for seconds in (statistics.median(starts), max(starts), statistics.median(stops))
    )
    return [
        Row(
            f"embedded broker, {name}: start, median of {_STARTS}",
            f"{start_ms:.0f} ms",
            "",
            None,
            f"< {_SOON_MS:.0f} ms",
            start_ms < _SOON_MS,
        ),
        Row("  the slowest", f"{worst_ms:.0f} ms", "", None, "", None),
        Row("  stop", f"{stop_ms:.0f} ms", "", None, "", None),
    ]


def _in_this_loop() -> tuple[float, float]:
    async def measure() -> tuple[float, float]:
        asked_s = time.perf_counter()
        async with EmbeddedBroker(topics=_TOPICS):
            started_s = time.perf_counter()
        return started_s - asked_s, time.perf_counter() - started_s

    return asyncio.run(measure())


def _in_a_thread() -> tuple[float, float]:
    asked_s = time.perf_counter()
    with EmbeddedBroker(topics=_TOPICS):
        started_s = time.perf_counter()
    return started_s - asked_s, time.perf_counter() - started_s
