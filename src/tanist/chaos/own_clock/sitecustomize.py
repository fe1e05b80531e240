"""Sets the wall clock of the process that finds this module when it starts, as a file says.

Python imports a module of this name before all that is not its own. Only what reads the time by ``time``
is told another one: that is all of Tanist. The steady clock stays what it is.
"""

import os
import time
from pathlib import Path

_LOOK_S = 0.05


class _WallClock:
    """The true time and what the file adds to it, looked up now and then."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._true_ns = time.time_ns
        self._looked_s = 0.0
        self._ahead_ns = 0

    def time_ns(self) -> int:
        now_s = time.monotonic()
        if now_s >= self._looked_s + _LOOK_S:
            self._looked_s = now_s
            self._ahead_ns = int(self._file.read_text(encoding="ascii")) * 1_000_000_000
        return self._true_ns() + self._ahead_ns

    def time(self) -> float:
        return self.time_ns() / 1e9


_clock = _WallClock(Path(os.environ["TANIST_WALL_CLOCK"]))
time.time_ns, time.time = _clock.time_ns, _clock.time
