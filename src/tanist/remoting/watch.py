"""How long a connection may keep us waiting.

Pure. The shell looks at each connection every now and then and tells what it has counted since; the
watch says whether to give up. Reading a byte thus costs no clock and no timer.

Three kinds of waiting, each with its limit: nothing at all in either direction (idle); a frame that
was begun and is not finished, whatever trickles in (half a frame); answers that the peer does not
take (not reading).
"""

from dataclasses import dataclass, field
from enum import Enum

from tanist.remoting.settings import ConnectionLimits


class CloseCause(Enum):
    """Why a connection ended."""

    PEER = "closed by the peer"
    OURS = "closed by us"
    REFUSED = "too many connections"
    BAD_FRAME = "bad frame"
    BAD_TLS = "bad TLS"
    IDLE = "idle"
    HALF_FRAME = "half a frame"
    NOT_READING = "not reading"


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Close this connection, at once and without waiting for it to take its answers."""

    cause: CloseCause
    reason: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a connection has counted since it was opened, and how it stands."""

    read_count: int
    frame_count: int
    taken_bytes: int
    """What we wrote and the peer took."""
    waiting_bytes: int
    """What we wrote and the peer has not taken."""
    is_mid_frame: bool


_NOTHING = Seen(read_count=0, frame_count=0, taken_bytes=0, waiting_bytes=0, is_mid_frame=False)


@dataclass(slots=True)
class Watch:
    """One connection's patience."""

    _active_at_s: float
    _seen: Seen = field(default=_NOTHING, init=False)
    _frame_since_s: float | None = field(default=None, init=False)
    _stalled_since_s: float | None = field(default=None, init=False)

    def on_look(self, seen: Seen, limits: ConnectionLimits, *, now_s: float) -> GiveUp | None:
        """Compare with the last look."""
        before, self._seen = self._seen, seen
        has_read = seen.read_count != before.read_count
        has_taken = seen.taken_bytes > before.taken_bytes
        if has_read or has_taken:
            self._active_at_s = now_s
        self._frame_since_s = _since(
            self._frame_since_s, now_s, holds=seen.is_mid_frame, anew=seen.frame_count != before.frame_count
        )
        self._stalled_since_s = _since(
            self._stalled_since_s, now_s, holds=seen.waiting_bytes > 0, anew=has_taken
        )
        return self._verdict(seen, limits, now_s)

    def _verdict(self, seen: Seen, limits: ConnectionLimits, now_s: float) -> GiveUp | None:
        if self._stalled_since_s is not None and now_s - self._stalled_since_s >= limits.write_s:
            return GiveUp(
                CloseCause.NOT_READING,
                f"it took none of {seen.waiting_bytes} bytes that wait for it in {limits.write_s:g} s",
            )
        if self._frame_since_s is not None and now_s - self._frame_since_s >= limits.frame_s:
            return GiveUp(CloseCause.HALF_FRAME, f"a frame is not whole after {limits.frame_s:g} s")
        if limits.idle_s is not None and now_s - self._active_at_s >= limits.idle_s:
            return GiveUp(CloseCause.IDLE, f"neither read nor write for {limits.idle_s:g} s")
        return None


def look_interval_s(limits: ConnectionLimits) -> float:
    """How often to look: often enough to be right within a quarter, seldom enough to cost nothing."""
    shortest_s = min(limits.frame_s, limits.write_s, limits.idle_s or limits.frame_s)
    return min(max(shortest_s / 4, 0.01), 5.0)


def _since(since_s: float | None, now_s: float, *, holds: bool, anew: bool) -> float | None:
    """From when on a condition has held without a break."""
    if not holds:
        return None
    return now_s if since_s is None or anew else since_s
