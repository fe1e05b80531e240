"""Viewers of a console: one who loads pages, many of them, and what a sender at the broker notices."""

import http.client
import json
import statistics
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench.lean_sends import LeanClient
from bench.table import Row
from tests.support.console_process import ConsoleProcess

VIEWERS = 20
_SENDS_MS = 3_000
_ROUNDS = 3
_VIEWS = "overview resets"
"""What is told to each, and asked of brokers at every look while somebody has it open."""
_PAUSE_S = 1.0
"""Between two pages of a viewer beside whom there is a sender: what he notices shall be the broker's doing,
and not that a console which makes pages without end leaves a machine of two cores no time."""
_MOST_RATIO = 2.0


class Viewer:
    """One who is logged in, on a connection of his own."""

    def __init__(self, console: ConsoleProcess) -> None:
        self._console = console
        self._connection = self._connect()
        form = urlencode({"name": console.user, "password": console.password})
        self._connection.request("POST", "/login", form)
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]

    def load(self, path: str) -> float:
        """How many milliseconds a page takes."""
        started = time.perf_counter()
        self._get(path)
        return (time.perf_counter() - started) * 1000

    def json(self, path: str) -> dict[str, Any]:
        return json.loads(self._get(f"/api/v1{path}"))

    @contextmanager
    def listening(self, views: str) -> Generator[None]:
        """The stream of events is open, as it is for a page that lies open."""
        connection = self._connect()
        connection.request("GET", f"/events?{urlencode({'views': views})}", headers={"Cookie": self._cookie})
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        try:
            yield
        finally:
            answer.close()
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self._console.address).netloc, timeout=30)

    def _get(self, path: str) -> bytes:
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status)
        return body


@contextmanager
def busy_viewers(
    console: ConsoleProcess, pages: Sequence[str], *, pause_s: float = 0.0
) -> Generator[Callable[[], int]]:
    """Viewers who listen to events and load one page after the other; how many they have loaded.

    They are logged in before: what passwords cost is not to be seen in the figures.
    """
    viewers = [Viewer(console) for _ in range(VIEWERS)]
    is_over = threading.Event()
    counts = [0] * VIEWERS

    def load(number: int) -> None:
        viewer = viewers[number]
        with viewer.listening(_VIEWS):
            while not is_over.is_set():
                viewer.load(pages[counts[number] % len(pages)])
                counts[number] += 1
                is_over.wait(pause_s)

    threads = [threading.Thread(target=load, args=(number,)) for number in range(VIEWERS)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: sum(counts)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def sender_rows(home: Path, console: ConsoleProcess, broker: str, pages: Sequence[str]) -> list[Row]:
    """How long one send takes, with and without viewers: in turns, so that both have the same machine."""
    alone: list[tuple[float, float]] = []
    beside: list[tuple[float, float]] = []
    with LeanClient(home) as client:
        # The first sends make the topic, and are no measure.
        _sent(client, broker)
        for _ in range(_ROUNDS):
            alone.append(_sent(client, broker))
            with busy_viewers(console, pages, pause_s=_PAUSE_S):
                beside.append(_sent(client, broker))
    rows: list[Row] = []
    for number, name in enumerate(("p50", "p99")):
        with_us, without_us = (statistics.median(one[number] for one in side) for side in (beside, alone))
        ratio = with_us / without_us
        rows.append(
            Row(
                f"{name} of sends beside {VIEWERS} viewers and their event streams",
                f"{with_us:.0f} µs",
                f"{without_us:.0f} µs without",
                ratio,
                f"≤ {_MOST_RATIO:g} x",
                ratio <= _MOST_RATIO,
            )
        )
    return rows


def _sent(client: LeanClient, broker: str) -> tuple[float, float]:
    load = client.send(broker, connections=1, duration_ms=_SENDS_MS)
    return load.p50_micros, load.p99_micros
