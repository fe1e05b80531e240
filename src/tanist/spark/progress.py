"""How far a job is: rows, bytes, rate and the time that is left. Pure; whoever shows it knows the clock."""

from collections.abc import Callable
from dataclasses import dataclass

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@dataclass(slots=True)
class Progress:
    """What a job has done since it began. ``left`` is what it knows to be waiting, of rows or of bytes.

    Who knows neither tells by parts how far he is: so many are done, and so many are left.
    """

    started_s: float
    rows: int = 0
    bytes: int = 0
    left_rows: int | None = None
    left_bytes: int | None = None
    done_parts: int = 0
    left_parts: int | None = None

    def add(self, rows: int, size_bytes: int) -> None:
        self.rows += rows
        self.bytes += size_bytes

    def rate(self, now_s: float) -> float:
        """Bytes a second."""
        return self.bytes / max(now_s - self.started_s, 1e-3)

    def left_s(self, now_s: float) -> float | None:
        """How long the rest will take, at the rate up to now; None if that can not be told."""
        spent = max(now_s - self.started_s, 1e-3)
        if self.left_bytes is not None and self.bytes:
            return self.left_bytes * spent / self.bytes
        if self.left_rows is not None and self.rows:
            return self.left_rows * spent / self.rows
        if self.left_parts is not None and self.done_parts:
            return self.left_parts * spent / self.done_parts
        return None

    def line(self, now_s: float) -> str:
        """All of it in one line."""
        text = self._done(now_s)
        left_s = self.left_s(now_s)
        return text if left_s is None else f"{text}; {self._left()} left, about {shown_seconds(left_s)}"

    def _done(self, now_s: float) -> str:
        """Nobody counts rows when bytes are compared, nor bytes when brokers are read: 0 would be a lie."""
        rate = f"{shown_bytes(self.rate(now_s))}/s"
        if self.bytes and not self.rows:
            return f"{shown_bytes(self.bytes)}, {rate}"
        if self.rows and not self.bytes:
            return f"{self.rows} messages, {self.rows / max(now_s - self.started_s, 1e-3):.0f}/s"
        if self.done_parts and not self.rows:
            return f"{self.done_parts} parts"
        return f"{self.rows} messages, {shown_bytes(self.bytes)}, {rate}"

    def _left(self) -> str:
        if self.left_bytes is not None:
            return shown_bytes(self.left_bytes)
        return f"{self.left_rows} messages" if self.left_rows is not None else f"{self.left_parts} parts"


Tell = Callable[[Progress], None]
"""Shows how far a job is."""


def tell_nobody(_progress: Progress) -> None:
    """Show nothing."""


def shown_bytes(size: float) -> str:
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} B"


def shown_seconds(seconds: float) -> str:
    """A time as one says it: 40 s, 12 min, 3 h 5 min, 2 d 4 h."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = minutes // 60
    return f"{hours // 24} d {hours % 24} h"
