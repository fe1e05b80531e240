"""When a broker that says nothing is taken for hung. Pure: the shell looks, and says when and what it saw.

    STARTING --first beat--> WATCHED --silent for the limit--> HUNG
    any state but HUNG --end of the pulse--> OFF

A broker that starts may read its log for minutes, and one that stops may write for seconds: both say nothing
meanwhile, and nobody counts. Silence is counted in looks, and a look that comes late counts as one: if the
machine stood still the broker stood still with it, and gets its time anew.
"""

from dataclasses import dataclass, field
from enum import Enum

LOOK_S = 0.1
"""How often the shell looks."""
_MOST_A_LOOK_S = 2 * LOOK_S


class Pulse(Enum):
    """What a look at the broker's pipe found."""

    BEAT = "beat"
    SILENT = "silent"
    ENDED = "ended"


class WatchState(Enum):
    STARTING = "starting"
    WATCHED = "watched"
    HUNG = "hung"
    OFF = "off"


@dataclass(slots=True)
class Watchdog:
    """The watch over one broker. ``limit_s`` is how long it may be silent."""

    limit_s: float
    state: WatchState = field(default=WatchState.STARTING, init=False)
    _silent_s: float = field(default=0.0, init=False)
    _looked_at_s: float = field(default=0.0, init=False)

    def on_look(self, seen: Pulse, *, now_s: float) -> WatchState:
        """Take in what a look found; HUNG means that the broker is to be killed."""
        since_s = now_s - self._looked_at_s
        self._looked_at_s = now_s
        if self.state in (WatchState.HUNG, WatchState.OFF):
            return self.state
        match seen:
            case Pulse.ENDED:
                self.state = WatchState.OFF
            case Pulse.BEAT:
                self.state = WatchState.WATCHED
                self._silent_s = 0.0
            case Pulse.SILENT:
                if self.state is WatchState.WATCHED:
                    self._silent_s += min(since_s, _MOST_A_LOOK_S)
                    if self._silent_s >= self.limit_s:
                        self.state = WatchState.HUNG
        return self.state
