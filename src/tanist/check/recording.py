"""Writes what clients do and see into a history while they do it."""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.check.history import Event, encode_event


def now_us() -> int:
    """The time of this machine's steady clock, which all of its processes share."""
    return time.monotonic_ns() // 1000


class Recorder:
    """One history file. Each event is with the system before ``write`` returns, so a kill loses none."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def write(self, event: Event) -> None:
        """Append one event."""
        os.write(self._file, encode_event(event))
