"""Clocks that a test sets by hand."""


class FakeClock:
    """Stands still until it is told to move. Wall-clock and monotonic time are set apart."""

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_s: float = 1_000.0) -> None:
        self._now_ms = now_ms
        self._monotonic_s = monotonic_s

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def set_now_ms(self, now_ms: int) -> None:
        """Step the wall clock, backwards too."""
        self._now_ms = now_ms

    def set_monotonic_s(self, monotonic_s: float) -> None:
        """Move the monotonic clock, which never goes back."""
        assert monotonic_s >= self._monotonic_s
        self._monotonic_s = monotonic_s

    def advance_ms(self, elapsed_ms: int) -> None:
        """Let time pass on both clocks."""
        self._now_ms += elapsed_ms
        self._monotonic_s += elapsed_ms / 1000


class HastyClock(FakeClock):
    """Lets ten milliseconds pass whenever somebody looks."""

    def monotonic_s(self) -> float:
        self.advance_ms(10)
        return super().monotonic_s()
