"""When a slave makes itself the reader of its group: its conditions, looked at once a second. Pure.

All have to hold in so many looks in a row; one look in which one does not hold begins the count anew.
"""

from dataclasses import dataclass, field

from tanist.protocol.bodies.slave_consume import Condition

CHECK_PERIOD_S = 1.0


@dataclass(slots=True)
class Trigger:
    """The count. ``checks`` in a row are needed."""

    checks: int
    count: int = field(default=0, init=False)
    conditions: tuple[Condition, ...] = field(default=(), init=False)
    """As they were found last."""
    _first_s: float = field(default=0.0, init=False)

    def on_check(self, conditions: tuple[Condition, ...], now_s: float) -> bool:
        """Take one look in; whether all have held often enough, and long enough for so many looks.

        Looks that come late come in a bunch: a process that stood still is not to count them as several.
        """
        self.conditions = conditions
        if not all(condition.holds for condition in conditions):
            self.count = 0
            return False
        if not self.count:
            self._first_s = now_s
        self.count += 1
        return self.count >= self.checks and now_s - self._first_s >= self.least_s

    @property
    def least_s(self) -> float:
        """How long the conditions have held at least when they have held in all looks."""
        return (self.checks - 1) * CHECK_PERIOD_S

    def begin_anew(self) -> None:
        self.count = 0
