"""Time, injected: production reads the machine's clocks, tests and the simulator bring their own."""

import time
from typing import Protocol


class Clock(Protocol):
    """What Tanist needs to know of time."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970, as written into records."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only grow, for deadlines."""
        ...


def steady_ms(clock: Clock) -> int:
    """Milliseconds on the clock that nobody sets, for ages and for what ends after a while."""
    return int(clock.monotonic_s() * 1000)


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()
