"""Whether the process stood still. Pure: whoever looks often says what time it is.

A process that is stopped, or starved of its processor, hears nobody. Its peers were not silent meanwhile, so
the time in which it stood still must not count against them.
"""

from dataclasses import dataclass

LOOK_S = 0.25
"""Who wants to know looks at least so often."""

_NOTICED_S = 2 * LOOK_S


@dataclass(slots=True)
class Standstill:
    """What the time was at the last look."""

    looked_s: float

    def on_look(self, now_s: float) -> float:
        """For how long the process has stood still since the last look; 0 if it has not."""
        passed_s, self.looked_s = now_s - self.looked_s, now_s
        return passed_s if passed_s >= _NOTICED_S else 0.0
