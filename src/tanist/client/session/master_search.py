"""When to ask who a broker's master is, after the one that a route names was lost or refused. Pure.

    SEARCHING --the route names another master, or names one again--> over
    SEARCHING --the old one can be reached again, or the steps are used up--> over

A switch takes a fraction of a second, so for the first second the steps are short, some 100 ms; then they are
half a second at most. That bounds what a name server is asked by all the clients that a broker had, and each
asks about a single topic.
"""

from dataclasses import dataclass, field

from tanist.backoff import Backoff

_SHORT_STEP_S = 0.15
_SHORT_STEPS = 10
_MOST_STEP_S = 0.5
_STEPS = 34
"""For ten seconds; whoever needs the master by then begins anew."""


@dataclass(slots=True)
class MasterSearch:
    """One search. ``lost`` is the address that the master had; None if the route named none."""

    lost: str | None
    is_over: bool = field(default=False, init=False)
    _steps_left: int = field(default=_STEPS, init=False)
    _backoff: Backoff = field(default_factory=lambda: Backoff(most_s=_SHORT_STEP_S), init=False)

    def on_route(self, master: str | None) -> None:
        """A name server names this master now, or none."""
        if master is None:
            self.lost = None  # Whoever comes next is new, also at the same address.
        elif master != self.lost:
            self.is_over = True

    def on_reached(self, address: str) -> None:
        """There is a connection to this address again."""
        if address == self.lost:
            self.is_over = True

    def next_s(self, chance: float) -> float | None:
        """How long to wait before the next question, None if there is none; ``chance`` is in [0, 1)."""
        if self.is_over or not self._steps_left:
            return None
        self._steps_left -= 1
        if self._steps_left < _STEPS - _SHORT_STEPS:
            self._backoff.most_s = _MOST_STEP_S
        return self._backoff.next_s(chance)
