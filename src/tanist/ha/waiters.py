"""Sends that wait until enough replicas hold them, in the order in which they are released. Pure.

Log ends only grow, so who came first is released first: an ack releases from the front and stops at the
first send that it does not reach. Each send has its own deadline, and all wait equally long, so the front
is also the first to run out.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

Done = Callable[[bool], None]
"""Told once whether the send was replicated in time."""


class _Waiter(NamedTuple):
    end: int
    deadline_s: float
    done: Done


class Waiters:
    """The waiting sends of one master."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiter] = deque()
        self._confirmed_to = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def next_deadline_s(self) -> float | None:
        """When the first of them has waited long enough; None if nobody waits."""
        return self._waiting[0].deadline_s if self._waiting else None

    def wait(self, end: int, *, deadline_s: float, done: Done) -> None:
        """Have ``done`` called when the log is replicated up to ``end``, or at the deadline."""
        if end <= self._confirmed_to:
            done(True)
            return
        assert not self._waiting or self._waiting[-1].end <= end
        self._waiting.append(_Waiter(end, deadline_s, done))

    def on_confirmed(self, confirmed_to: int) -> None:
        """Enough replicas hold the log up to here. It goes back when one of them is lost."""
        self._confirmed_to = confirmed_to
        waiting = self._waiting
        while waiting and waiting[0].end <= confirmed_to:
            waiting.popleft().done(True)

    def on_tick(self, now_s: float) -> None:
        """Give up on those whose time is over."""
        while self._waiting and self._waiting[0].deadline_s <= now_s:
            self._waiting.popleft().done(False)

    def give_up(self) -> None:
        """The master stops: nobody will be released any more."""
        while self._waiting:
            self._waiting.popleft().done(False)
