"""The sessions that brokers have with the registry of this controller, and what they watch.

A session belongs to whoever knows its token, of which only the hash is kept. It acts on one connection at a
time, the last on which it was opened or kept: what was asked on an earlier one and comes late is not done. A
connection that is lost takes the watches of its session along, and nothing else.

All records of such sessions lie below ``ROOT``, so that no broker reaches what the controller keeps for
itself.
"""

import hashlib
import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass, field

from tanist.coord import Conflict, Create, SessionState, Watch
from tanist.coord.remote_messages import MAX_WATCHES, path_below
from tanist.coord.sqlite_registry import SqliteHome, SqliteRegistry
from tanist.errors import ResponseError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.coord import ChangedRequest
from tanist.remoting import Connection

ROOT = "/fixed"
"""Where the records of brokers with fixed roles begin."""

MAX_SESSIONS = 1024
"""What may be kept at once."""

_TOKEN_BYTES = 24

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Attached:
    """Where a session acts now, and what it watches there."""

    connection: Connection | None = None
    watches: dict[str, Watch] = field(default_factory=dict[str, Watch])

    def move(self, connection: Connection | None) -> None:
        if connection is not self.connection:
            for watch in self.watches.values():
                watch.close()
            self.watches.clear()
            self.connection = connection


class RemoteSessions:
    """Who has a session, and on which connection."""

    def __init__(self, home: SqliteHome) -> None:
        self._home = home
        self._attached: dict[int, _Attached] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return self._home.kept_count

    async def open(self, timeout_s: float, connection: Connection) -> str:
        """Begin a session on this connection; its token."""
        if self.count >= MAX_SESSIONS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY, f"{MAX_SESSIONS} sessions with the registry are open already"
            )
        token = secrets.token_hex(_TOKEN_BYTES)
        session = await self._home.open_kept_session(timeout_s, _key(token))
        with suppress(Conflict):
            await session.commit(Create(ROOT, b""))
        self._attach(session, connection)
        _log.info("registry session opened peer=%s timeout_s=%g", connection.peer, timeout_s)
        return token

    def keep(self, token: str, connection: Connection) -> None:
        """Hold a session for another timeout, and have it act on this connection."""
        session = self._find(token)
        session.hold()
        self._attach(session, connection)

    async def close(self, token: str) -> None:
        """End a session; whoever knows its token may, wherever it acts."""
        session = self._find(token)
        self._detach(session)
        await session.close()

    def acting(self, token: str, connection: Connection) -> SqliteRegistry:
        """The session with this token, which must act on this connection."""
        session = self._find(token)
        self._attachment(session, connection)
        return session

    def watch(self, token: str, path: str, connection: Connection) -> None:
        """Tell of this path on this connection, now and after each change."""
        session = self._find(token)
        watches = self._attachment(session, connection).watches
        if path not in watches and len(watches) >= MAX_WATCHES:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, f"a session may watch {MAX_WATCHES} paths, no more")

        def tell() -> None:
            header = ChangedRequest(path=path)
            connection.send(Command.request(RequestCode.REGISTRY_CHANGED, header, is_one_way=True))

        if path in watches:
            watches[path].close()
        watches[path] = session.watch(path_below(ROOT, path), tell)

    def unwatch(self, token: str, path: str, connection: Connection) -> None:
        """Tell of this path no more."""
        watch = self._attachment(self._find(token), connection).watches.pop(path, None)
        if watch is not None:
            watch.close()

    def on_connection_lost(self, connection: Connection) -> None:
        """The sessions that acted there go on without it, for as long as they are held."""
        for attached in self._attached.values():
            if attached.connection is connection:
                attached.move(None)

    def _find(self, token: str) -> SqliteRegistry:
        session = self._home.kept_session(_key(token))
        if session is None:
            raise ResponseError(
                ResponseCode.REGISTRY_SESSION_OVER,
                "this session with the registry is not known, or it is over; open another",
            )
        return session

    def _attach(self, session: SqliteRegistry, connection: Connection) -> None:
        attached = self._attached.get(session.session_id)
        if attached is None:
            if session.session is SessionState.LOST:
                return
            attached = self._attached[session.session_id] = _Attached()
            session.on_session(lambda _: self._detach(session))
        # One that was closed while we were busy for it is not told again.
        attached.move(connection if connection.is_open else None)

    def _attachment(self, session: SqliteRegistry, connection: Connection) -> _Attached:
        attached = self._attached.get(session.session_id)
        if attached is None or attached.connection is not connection:
            raise ResponseError(
                ResponseCode.CONTROLLER_INVALID_REQUEST,
                "this session acts on another connection; keep it on this one first",
            )
        return attached

    def _detach(self, session: SqliteRegistry) -> None:
        attached = self._attached.pop(session.session_id, None)
        if attached is not None:
            attached.move(None)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
