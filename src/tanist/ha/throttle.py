"""How fast a slave is sent to, all bytes counted. Pure."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Throttle:
    """A bucket that fills by ``bytes_per_second`` and holds a tenth of a second of it."""

    bytes_per_second: int
    _room: float = field(default=0.0, init=False)
    _filled_s: float = field(default=0.0, init=False)

    def wait_s(self, now_s: float) -> float:
        """How long to wait before the next byte; 0 if it may go now."""
        most = self.bytes_per_second / 10
        self._room = min(most, self._room + (now_s - self._filled_s) * self.bytes_per_second)
        self._filled_s = now_s
        # What lacks less than a byte lacks nothing: it may be a time too short for any clock.
        return -self._room / self.bytes_per_second if self._room <= -1 else 0.0

    def sent(self, size_bytes: int) -> None:
        """So much went out. The room may go below zero by one frame, which is then waited for."""
        self._room -= size_bytes


@dataclass(slots=True)
class Rate:
    """Bytes of the last whole second."""

    _since_s: float = field(default=0.0, init=False)
    _now_bytes: int = field(default=0, init=False)
    _last_bytes: int = field(default=0, init=False)

    def add(self, size_bytes: int, now_s: float) -> None:
        if now_s - self._since_s >= 1:
            self._turn(now_s)
        self._now_bytes += size_bytes

    def bytes_per_second(self, now_s: float) -> int:
        self._turn(now_s)
        return self._last_bytes

    def _turn(self, now_s: float) -> None:
        passed_s = now_s - self._since_s
        if passed_s >= 1:
            self._last_bytes = self._now_bytes if passed_s < 2 else 0
            self._since_s, self._now_bytes = now_s, 0
