"""How far a job is: rows, bytes, rate and the time that is left. Pure; whoever shows it knows the clock."""

from collections.abc import Callable
from dataclasses import dataclass

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@dataclass(slots=True)
class Progress:
    """What a job has done since it began. ``left`` is what it knows to be waiting, of rows or of bytes."""

    started_s: float
    rows: int = 0
    bytes: int = 0
    left_rows: int | None = None
    left_bytes: int | None = None

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
        return None

    def line(self, now_s: float) -> str:
        """All of it in one line."""
        text = f"{self.rows} messages, {shown_bytes(self.bytes)}, {shown_bytes(self.rate(now_s))}/s"
        left_s = self.left_s(now_s)
        if left_s is None:
            return text
        left = shown_bytes(self.left_bytes) if self.left_bytes is not None else f"{self.left_rows} messages"
        return f"{text}; {left} left, about {shown_seconds(left_s)}"


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
