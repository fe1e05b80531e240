"""How many log lines strangers may make us write."""

from dataclasses import dataclass, field

_LINES_A_PERIOD = 20
_PERIOD_S = 10.0


@dataclass(slots=True)
class LineBudget:
    """Lets a few lines through in each period and counts the rest. Pure: the time is an argument.

    Whoever can connect can provoke a line, so without a bound a peer could fill the disk with them.
    """

    lines_a_period: int = _LINES_A_PERIOD
    period_s: float = _PERIOD_S
    _period_ends_s: float = field(default=float("-inf"), init=False)
    _left: int = field(default=0, init=False)
    _unwritten: int = field(default=0, init=False)

    def spend(self, now_s: float) -> int | None:
        """None: write nothing. Else write, and say how many lines were not written since the last one."""
        if now_s >= self._period_ends_s:
            self._period_ends_s = now_s + self.period_s
            self._left = self.lines_a_period
        if self._left == 0:
            self._unwritten += 1
            return None
        self._left -= 1
        unwritten, self._unwritten = self._unwritten, 0
        return unwritten
