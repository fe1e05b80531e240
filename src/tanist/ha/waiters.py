"""Sends that wait until enough replicas hold them, in the order in which they are released. Pure.

Log ends only grow, so who came first is released first: an ack releases from the front and stops at the
first send that it does not reach. All wait equally long, so the front is also the first to run out. Each
has a deadline of its own, in time: neither an ack that does not reach it nor a slow one before it costs it
any of that.

A send that comes to wait late, when some wait already whose ends lie behind its own, is released with
them: later than it could be, never too early.
"""

from collections import deque
from collections.abc import Callable

from tanist.protocol.codes import ResponseCode

Done = Callable[[ResponseCode], None]
"""Told once what became of a send: SUCCESS if it is replicated, else why a producer can not rely on that."""

_REPLICATED, _TOO_LATE = ResponseCode.SUCCESS, ResponseCode.FLUSH_SLAVE_TIMEOUT


class Waiters:
    """The waiting sends of one master."""

    def __init__(self) -> None:
        # The end of each, its deadline, and whom to tell: plain tuples, for there are many a second.
        self._waiting: deque[tuple[int, float, Done]] = deque()
        self._confirmed_to = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def next_deadline_s(self) -> float | None:
        """When the first of them has waited long enough; None if nobody waits."""
        return self._waiting[0][1] if self._waiting else None

    @property
    def first_end(self) -> int | None:
        """The end of the first of them; None if nobody waits."""
        return self._waiting[0][0] if self._waiting else None

    def wait(self, end: int, *, deadline_s: float, done: Done) -> None:
        """Have ``done`` called when the log is replicated up to ``end``, or at the deadline."""
        if end <= self._confirmed_to:
            done(_REPLICATED)
        else:
            self._waiting.append((end, deadline_s, done))

    def on_confirmed(self, confirmed_to: int) -> None:
        """Enough replicas hold the log up to here. It goes back when one of them is lost."""
        self._confirmed_to = confirmed_to
        waiting = self._waiting
        while waiting and waiting[0][0] <= confirmed_to:
            waiting.popleft()[2](_REPLICATED)

    def on_tick(self, now_s: float) -> None:
        """Give up on those whose time is over."""
        waiting = self._waiting
        while waiting and waiting[0][1] <= now_s:
            waiting.popleft()[2](_TOO_LATE)

    def give_up(self) -> None:
        """Nobody will be released any more."""
        while self._waiting:
            self._waiting.popleft()[2](_TOO_LATE)
