"""What to do when a member ends that nobody told to. Pure.

It is started again after a second; but one that ends again and again within a minute is left alone, because
what is wrong with it does not go away by itself. One that was killed on purpose stays dead: whoever did
that wants to see what the others do.
"""

from collections import deque

PAUSE_S = 1.0
MAX_RESTARTS, WINDOW_S = 5, 60.0


class Upkeep:
    """The restarts of one member."""

    def __init__(self) -> None:
        self.is_killed = False
        self._restarts: deque[float] = deque(maxlen=MAX_RESTARTS)

    def on_end(self, *, now_s: float) -> float | None:
        """After how long to start it again; None to leave it."""
        if self.is_killed:
            return None
        if len(self._restarts) == MAX_RESTARTS and now_s - self._restarts[0] < WINDOW_S:
            return None
        self._restarts.append(now_s)
        return PAUSE_S

    def on_start(self) -> None:
        """Note that it was started, by whomever."""
        self.is_killed = False
