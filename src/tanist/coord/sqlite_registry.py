"""The registry inside one process, in an SQLite file: for one controller on one machine.

The controller is then a single point. Brokers go on in their roles without it, but nobody is elected.

    async with SqliteHome(Path("registry.db")) as home:
        registry = await home.open_session(timeout_s=4)
        await registry.commit(Create("/groups/broker-a", b"{}"))

A session is renewed by its own timer and ends, as one with ZooKeeper would, when the process stood still for
longer than its timeout: whoever built on ``held_until_s`` has stopped by then. What is decided about sessions
is decided on the event loop, in the order in which the thread of the file is given its work.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tanist.clock import Clock, SystemClock
from tanist.coord.changes import check_changes, check_path
from tanist.coord.record_file import Done, RecordFile
from tanist.coord.registry import Change, Record, RegistryUnavailable, SessionState
from tanist.coord.watching import PathWatch, WatchTable

_T = TypeVar("_T")

# A session is renewed this many times in its timeout.
_RENEWALS = 6

_log = logging.getLogger(__name__)


class SqliteHome:
    """One registry file, open in this process from ``async with`` to the end of its block."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._sessions: dict[int, SqliteRegistry] = {}
        self._session_ids = itertools.count(1)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="registry")
        # What follows belongs to that thread.
        self._file: RecordFile | None = None
        self._ended: set[int] = set()

    async def __aenter__(self) -> Self:
        """Open the file, and remove the ephemeral records that an earlier process left.

        Raises StoreLocked if another process has it open, and ForeignFile if it is damaged or no registry.
        """
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._open_file)
        except BaseException:
            # The thread may be about to open it for somebody who gave up.
            self._executor.submit(self._close_file)
            self._executor.shutdown(wait=False)
            raise
        _log.info("registry opened path=%s", self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for session in list(self._sessions.values()):
                await session.close()
        finally:
            closing = self._executor.submit(self._close_file)
            self._executor.shutdown(wait=False)
        await asyncio.wrap_future(closing)
        _log.info("registry closed path=%s", self._path)

    async def open_session(self, timeout_s: float) -> "SqliteRegistry":
        """Begin a session that outlives a standstill of the process for less than ``timeout_s``."""
        if timeout_s <= 0:
            raise ValueError(f"timeout_s={timeout_s!r} is not allowed; use a time above 0")
        session = SqliteRegistry(self, next(self._session_ids), timeout_s, self._clock)
        self._sessions[session.session_id] = session
        session.renew()
        return session

    def expire_overdue(self) -> None:
        """End every session whose time is over."""
        now_s = self._clock.monotonic_s()
        for session in list(self._sessions.values()):
            if now_s >= session.held_until_s:
                _log.warning("registry session expired path=%s timeout_s=%g", self._path, session.timeout_s)
                self.end(session.session_id)
                session.lose()

    def end(self, session_id: int) -> Future[None]:
        """Remove the ephemeral records of a session, after all that it has asked for so far."""
        del self._sessions[session_id]
        return self._executor.submit(self._end_in_file, session_id, asyncio.get_running_loop())

    async def work(self, do: Callable[[RecordFile], _T]) -> _T:
        """Have the thread do something with the file.

        Whoever asked may be cancelled meanwhile: then what is under way is finished.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._work, do, loop)

    def _open_file(self) -> None:
        self._file = RecordFile.open(self._path)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _work(self, do: Callable[[RecordFile], _T], loop: asyncio.AbstractEventLoop) -> _T:
        assert self._file is not None, "sessions end before the file is closed"
        if self._ended:
            self._remove_ended(self._file, loop)
        result = do(self._file)
        if isinstance(result, Done):
            self._tell(result, loop)
        return result

    def _end_in_file(self, session_id: int, loop: asyncio.AbstractEventLoop) -> None:
        assert self._file is not None, "sessions end before the file is closed"
        self._ended.add(session_id)
        try:
            self._remove_ended(self._file, loop)
        except RegistryUnavailable as error:
            # It is tried again before the next look at the file, so nobody sees what was to go.
            _log.error("ephemeral records are still there error=%s", error)

    def _remove_ended(self, file: RecordFile, loop: asyncio.AbstractEventLoop) -> None:
        for session_id in sorted(self._ended):
            self._tell(file.end_owner(session_id), loop)
            self._ended.discard(session_id)

    def _tell(self, done: Done, loop: asyncio.AbstractEventLoop) -> None:
        if done.touched:
            loop.call_soon_threadsafe(self._touch, done.touched)

    def _touch(self, paths: set[str]) -> None:
        for session in self._sessions.values():
            session.watches.touch(paths)


class SqliteRegistry:
    """One session with the registry of this process; see ``Registry``."""

    def __init__(self, home: SqliteHome, session_id: int, timeout_s: float, clock: Clock) -> None:
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
        self._home.expire_overdue()
        if self._state is SessionState.CONNECTED:
            self._held_until_s = self._clock.monotonic_s() + self.timeout_s
            if self._renewal is not None:
                self._renewal.cancel()
            pause_s = self.timeout_s / _RENEWALS
            self._renewal = asyncio.get_running_loop().call_later(pause_s, self.renew)

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
