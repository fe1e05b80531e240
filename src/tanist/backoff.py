"""How long to wait before the next try. Pure: the chance comes in as an argument."""

from dataclasses import dataclass, field

FIRST_S = 0.05
MOST_S = 5.0


@dataclass(slots=True)
class Backoff:
    """Waits that double from try to try, each somewhere in the upper half of its step.

    The jitter keeps a thousand clients of a broker that came back from asking it all at once.
    """

    first_s: float = FIRST_S
    most_s: float = MOST_S
    _step_s: float = field(default=0.0, init=False)

    def next_s(self, chance: float) -> float:
        """The next wait; ``chance`` is a number in [0, 1)."""
        self._step_s = min(self.most_s, self._step_s * 2 or self.first_s)
        return self._step_s * (1 + chance) / 2

    def reset(self) -> None:
        """It worked: begin anew."""
        self._step_s = 0.0
