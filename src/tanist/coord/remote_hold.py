"""How we stand to a controller that keeps our session: what may be built on it. Pure.

    CONNECTED --cut or silent--> SUSPENDED --kept--> CONNECTED
        any state --the controller does not know it, or we closed it--> LOST

The controller counts the session's time from when it hears from us, we from when we spoke: so ours is over
first, however long the way is. A part of it is left for clocks that differ in speed.
"""

from dataclasses import dataclass, field

from tanist.coord.registry import SessionState

_HELD_PART = 0.95
_NEVER = float("-inf")


@dataclass(slots=True)
class RemoteHold:
    """Our side of one session, from when the controller opened it."""

    timeout_s: float
    opened_s: float
    """When we asked for it."""
    state: SessionState = field(default=SessionState.CONNECTED, init=False)
    held_until_s: float = field(default=_NEVER, init=False)

    def __post_init__(self) -> None:
        self.on_kept(self.opened_s)

    def on_kept(self, asked_s: float) -> bool:
        """The controller kept the session as we asked at this time; whether the state changed."""
        if self.state is SessionState.LOST:
            return False
        self.held_until_s = max(self.held_until_s, asked_s + _HELD_PART * self.timeout_s)
        return self._become(SessionState.CONNECTED)

    def on_cut(self) -> bool:
        """The connection is gone, or nothing was heard on it for too long; whether the state changed.

        What was promised still holds: the controller does not end a session for that.
        """
        return self.state is not SessionState.LOST and self._become(SessionState.SUSPENDED)

    def on_over(self) -> bool:
        """The session has ended, for good; whether the state changed."""
        self.held_until_s = _NEVER
        return self._become(SessionState.LOST)

    def _become(self, state: SessionState) -> bool:
        before, self.state = self.state, state
        return before is not state
