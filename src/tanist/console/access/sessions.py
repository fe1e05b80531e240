"""Who is logged in: tokens that browsers hold in a cookie. Pure; time and chance come in as arguments.

The store keeps what SHA-256 makes of a token, so whoever can read this memory can not log in with it. A
session ends when it was not used for a while, when it is old, when its user logs out, and when there are
too many: then the one that was not used for longest.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from tanist.console.access.users import User

IDLE_S = 30 * 60.0
MAX_AGE_S = 12 * 3600.0
MAX_SESSIONS = 1_000
_TOKEN_BYTES = 32


@dataclass(slots=True)
class Session:
    """One login. ``csrf`` is in every form that changes something, and nobody else's page knows it."""

    user: User
    csrf: str = field(repr=False)
    began_s: float
    used_s: float
    told: list[str] = field(default_factory=list[str])
    """What the next page is to say: that something was done, or why not."""

    def take_told(self) -> list[str]:
        told, self.told = self.told, []
        return told

    def is_csrf(self, text: str | None) -> bool:
        return text is not None and hmac.compare_digest(text.encode(), self.csrf.encode())


class SessionStore:
    """All sessions. ``make_token`` makes texts that nobody can guess, from so many bytes of chance."""

    def __init__(
        self, make_token: Callable[[int], str], *, idle_s: float = IDLE_S, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._make_token = make_token
        self._idle_s = idle_s
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        """The one that was not used for longest first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, user: User, *, now_s: float) -> str:
        """Log somebody in; the token that his browser is to hold."""
        self._drop_old(now_s)
        while len(self._sessions) >= self._max_sessions:
            self._sessions.popitem(last=False)
        token = self._make_token(_TOKEN_BYTES)
        self._sessions[_key(token)] = Session(user, self._make_token(_TOKEN_BYTES), now_s, now_s)
        return token

    def find(self, token: str | None, *, now_s: float, is_use: bool = True) -> Session | None:
        """The session of a token, which is used so; not if only a page that lies open asks."""
        if token is None:
            return None
        self._drop_old(now_s)
        key = _key(token)
        session = self._sessions.get(key)
        if session is not None and is_use:
            session.used_s = now_s
            self._sessions.move_to_end(key)
        return session

    def end(self, token: str) -> None:
        """Log out."""
        self._sessions.pop(_key(token), None)

    def _drop_old(self, now_s: float) -> None:
        for key, session in list(self._sessions.items()):
            if now_s - session.used_s > self._idle_s or now_s - session.began_s > MAX_AGE_S:
                del self._sessions[key]


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
