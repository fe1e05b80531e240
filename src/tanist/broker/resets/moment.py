"""A time of both clocks: one for people to read, one that nobody sets."""

from typing import NamedTuple

from tanist.clock import Clock, steady_ms

LONG_AGO_MS = -1_000_000_000
"""On the steady clock: before anything for which somebody could still be waited."""


class Moment(NamedTuple):
    """Waits are measured in ``steady_ms``, which means nothing on another machine or after a restart."""

    wall_ms: int
    steady_ms: int


def moment_of(clock: Clock) -> Moment:
    return Moment(clock.now_ms(), steady_ms(clock))
