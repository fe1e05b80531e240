"""One session with a registry in an SQLite file of this process."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from tanist.clock import Clock
from tanist.coord.changes import check_changes, check_path
from tanist.coord.record_file import RecordFile
from tanist.coord.registry import Change, Record, RegistryUnavailable, SessionState
from tanist.coord.watching import PathWatch, WatchTable

_T = TypeVar("_T")

# A session is renewed this many times in its timeout.
_RENEWALS = 6


class Home(Protocol):
    """Who has the file open."""

    def expire_overdue(self) -> None: ...
    def end(self, session_id: int) -> Future[None]: ...
    async def work(self, do: Callable[[RecordFile], _T]) -> _T: ...


class SqliteRegistry:
    """One session with the registry of this process; see ``Registry``."""

    def __init__(
        self, home: Home, session_id: int, timeout_s: float, clock: Clock, key: bytes | None = None
    ) -> None:
        self.key = key
        """What finds a kept session; None for one of this process."""
        self.session_id = session_id
        self.timeout_s = timeout_s
        self.watches = WatchTable()
        self._home = home
        self._clock = clock
        self._state = SessionState.CONNECTED
        self._held_until_s = clock.monotonic_s() + timeout_s
        self._renewal: asyncio.TimerHandle | None = None
        self._listeners: list[Callable[[SessionState], None]] = []

    @property
    def session(self) -> SessionState:
        """CONNECTED until the session is over, then LOST for good."""
        return self._state

    @property
    def held_until_s(self) -> float:
        """When the session ends unless it is renewed; nothing can end it before."""
        return self._held_until_s

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Have ``listener`` called when the session was lost."""
        self._listeners.append(listener)

    async def read(self, path: str) -> Record | None:
        """A record as it is; None if it is not there."""
        check_path(path)
        self._be_live()
        return await self._home.work(lambda file: file.read(path))

    async def children(self, path: str) -> list[str]:
        """The names right below a path, sorted."""
        check_path(path)
        self._be_live()
        return await self._home.work(lambda file: file.children(path))

    async def commit(self, *changes: Change) -> list[int]:
        """Make all changes in one step, durable when this returns."""
        check_changes(changes)
        self._be_live()
        done = await self._home.work(lambda file: file.commit(self.session_id, changes))
        return done.versions

    def watch(self, path: str, listener: Callable[[], None]) -> PathWatch:
        """Have ``listener`` called after changes by any session."""
        watch = self.watches.add(check_path(path), listener)
        if self._state is SessionState.LOST:
            watch.close()
        return watch

    async def close(self) -> None:
        """End the session: what is ephemeral goes at once."""
        if self._state is not SessionState.LOST:
            self._stop()
            await asyncio.wrap_future(self._home.end(self.session_id))

    def renew(self) -> None:
        """Hold the session for another timeout, unless it is over, and do so again in time."""
        self.hold()
        if self._state is SessionState.CONNECTED:
            if self._renewal is not None:
                self._renewal.cancel()
            pause_s = self.timeout_s / _RENEWALS
            self._renewal = asyncio.get_running_loop().call_later(pause_s, self.renew)

    def hold(self) -> None:
        """Hold the session for another timeout, unless it is over."""
        self._home.expire_overdue()
        if self._state is SessionState.CONNECTED:
            self._held_until_s = self._clock.monotonic_s() + self.timeout_s

    def hold_longer(self, passed_s: float) -> None:
        """This time did not count."""
        self._held_until_s += passed_s

    def leave(self) -> None:
        """Do nothing more in the session here, and leave it and what is ephemeral as they are."""
        self._stop()

    def lose(self) -> None:
        """The session is over, and not because we closed it."""
        self._stop()
        for listener in self._listeners:
            listener(SessionState.LOST)

    def _stop(self) -> None:
        self._state = SessionState.LOST
        self._held_until_s = float("-inf")
        self.watches.close()
        if self._renewal is not None:
            self._renewal.cancel()

    def _be_live(self) -> None:
        self._home.expire_overdue()
        if self._state is SessionState.LOST:
            raise RegistryUnavailable("our session with the registry is over; open another")
