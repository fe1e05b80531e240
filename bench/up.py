"""``tanist up``: how long it takes from the command until its whole cluster serves, in both modes."""

import statistics
import tempfile
import time
from pathlib import Path

from bench.table import Row
from tanist.up.plan import Mode
from tests.support.up_process import UpProcess

_ROUNDS = 3
_MAX_S = 5.0


def run() -> list[Row]:
    return [_row(mode) for mode in Mode]


def _row(mode: Mode) -> Row:
    took_s = [_start(mode) for _ in range(_ROUNDS)]
    median_s = statistics.median(took_s)
    return Row(
        f"tanist up --mode {mode.value}, from nothing",
        f"{median_s:.1f} s, at most {max(took_s):.1f} s",
        "",
        None,
        f"< {_MAX_S:g} s",
        median_s < _MAX_S,
    )


def _start(mode: Mode) -> float:
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
        began_s = time.perf_counter()
        with UpProcess(Path(folder), mode=mode):
            return time.perf_counter() - began_s
