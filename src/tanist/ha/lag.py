"""How old the oldest byte is that a slave does not hold yet. Pure.

The log's end is marked now and then with the time. A byte is at least as old as the mark that first lies
behind it, so a lag is told to within the distance of two marks.
"""

from bisect import bisect_right
from collections import deque

MARK_EVERY_MS = 10
MAX_MARKS = 6_000
"""A minute under load; who is further behind is told the age of the oldest mark, which is less."""


class EndMarks:
    """When the log ended where."""

    def __init__(self, log_end: int, now_ms: int) -> None:
        self._ends: deque[int] = deque([log_end], MAX_MARKS)
        self._times_ms: deque[int] = deque([now_ms], MAX_MARKS)

    def note(self, log_end: int, now_ms: int) -> None:
        """The log ends here now."""
        if log_end <= self._ends[-1]:
            return
        if len(self._ends) > 1 and now_ms - self._times_ms[-1] < MARK_EVERY_MS:
            # The mark keeps its time: it is that of its oldest byte.
            self._ends[-1] = log_end
            return
        self._ends.append(log_end)
        self._times_ms.append(now_ms)

    def lag_ms(self, acked_to: int, *, log_end: int, now_ms: int) -> int:
        """How long the slave has lacked its next byte; 0 if it lacks none."""
        if acked_to >= log_end:
            return 0
        number = bisect_right(self._ends, acked_to)
        if number == len(self._ends):
            # Its next byte was written in this turn of the event loop, and is not marked yet.
            return 0
        return max(0, now_ms - self._times_ms[number])
