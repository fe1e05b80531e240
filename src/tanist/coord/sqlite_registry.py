"""The registry inside one process, in an SQLite file: for one controller on one machine.

The controller is then a single point. Brokers go on in their roles without it, but nobody is elected.

    async with SqliteHome(Path("registry.db")) as home:
        registry = await home.open_session(timeout_s=4)
        await registry.commit(Create("/groups/broker-a", b"{}"))

A session is renewed by its own timer and ends, as one with ZooKeeper would, when the process stood still for
longer than its timeout: whoever built on ``held_until_s`` has stopped by then. What is decided about sessions
is decided on the event loop, in the order in which the thread of the file is given its work.

The owner of a kept session is elsewhere, and has it held again and again. It ends when that was not done for
its timeout while we could have heard it: time in which this process stood still does not count, and when the
file is opened anew each gets a full timeout.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tanist.clock import Clock, SystemClock
from tanist.coord.record_file import Done, KeptSession, RecordFile
from tanist.coord.registry import RegistryUnavailable
from tanist.coord.sqlite_session import SqliteRegistry
from tanist.coord.standstill import LOOK_S, Standstill

_T = TypeVar("_T")

__all__ = ["SqliteHome", "SqliteRegistry"]

_log = logging.getLogger(__name__)


class SqliteHome:
    """One registry file, open in this process from ``async with`` to the end of its block."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._sessions: dict[int, SqliteRegistry] = {}
        self._kept: dict[bytes, SqliteRegistry] = {}
        self._session_ids = itertools.count(1)
        self._standstill = Standstill(self._clock.monotonic_s())
        self._next_look: asyncio.TimerHandle | None = None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="registry")
        # What follows belongs to that thread.
        self._file: RecordFile | None = None
        self._ended: set[int] = set()

    async def __aenter__(self) -> Self:
        """Open the file, remove the ephemeral records that an earlier process left, and hold what it kept.

        Raises StoreLocked if another process has it open, and ForeignFile if it is damaged or no registry.
        """
        try:
            kept = await asyncio.get_running_loop().run_in_executor(self._executor, self._open_file)
        except BaseException:
            # The thread may be about to open it for somebody who gave up.
            self._executor.submit(self._close_file)
            self._executor.shutdown(wait=False)
            raise
        for session in kept:
            self._begin(session.session_id, session.timeout_ms / 1000, session.key)
            self._session_ids = itertools.count(session.session_id + 1)
        _log.info("registry opened path=%s kept_sessions=%d", self._path, len(kept))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for session in list(self._kept.values()):
                session.leave()
                del self._sessions[session.session_id]
            self._kept.clear()
            for session in list(self._sessions.values()):
                await session.close()
        finally:
            if self._next_look is not None:
                self._next_look.cancel()
            closing = self._executor.submit(self._close_file)
            self._executor.shutdown(wait=False)
        await asyncio.wrap_future(closing)
        _log.info("registry closed path=%s", self._path)

    async def open_session(self, timeout_s: float) -> SqliteRegistry:
        """Begin a session that outlives a standstill of the process for less than ``timeout_s``."""
        if timeout_s <= 0:
            raise ValueError(f"timeout_s={timeout_s!r} is not allowed; use a time above 0")
        session = self._begin(next(self._session_ids), timeout_s)
        session.renew()
        return session

    @asynccontextmanager
    async def session(self, timeout_s: float) -> AsyncGenerator[SqliteRegistry]:
        """A session that ends with the block."""
        session = await self.open_session(timeout_s)
        try:
            yield session
        finally:
            await session.close()

    async def open_kept_session(self, timeout_s: float, key: bytes) -> SqliteRegistry:
        """Begin a session that ends when nobody called its ``hold`` for ``timeout_s``; ``key`` finds it.

        It outlives this home, and is found in the next one of the same file.
        """
        assert key not in self._kept
        session = self._begin(next(self._session_ids), timeout_s, key)
        kept = KeptSession(session.session_id, key, round(timeout_s * 1000))
        await self.work(lambda file: file.keep(kept))
        return session

    def kept_session(self, key: bytes) -> SqliteRegistry | None:
        """The kept session with this key, if it is not over."""
        self.expire_overdue()
        return self._kept.get(key)

    @property
    def kept_count(self) -> int:
        """How many sessions are kept."""
        return len(self._kept)

    def expire_overdue(self) -> None:
        """End every session whose time is over."""
        now_s = self._clock.monotonic_s()
        if still_s := self._standstill.on_look(now_s):
            for session in self._kept.values():
                session.hold_longer(still_s)
        for session in list(self._sessions.values()):
            if now_s >= session.held_until_s:
                _log.warning("registry session expired path=%s timeout_s=%g", self._path, session.timeout_s)
                self.end(session.session_id)
                session.lose()

    def end(self, session_id: int) -> Future[None]:
        """Remove the ephemeral records of a session, after all that it has asked for so far."""
        session = self._sessions.pop(session_id)
        if session.key is not None:
            del self._kept[session.key]
        return self._executor.submit(self._end_in_file, session_id, asyncio.get_running_loop())

    async def work(self, do: Callable[[RecordFile], _T]) -> _T:
        """Have the thread do something with the file.

        Whoever asked may be cancelled meanwhile: then what is under way is finished.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._work, do, loop)

    def _begin(self, session_id: int, timeout_s: float, key: bytes | None = None) -> SqliteRegistry:
        self.expire_overdue()
        session = SqliteRegistry(self, session_id, timeout_s, self._clock, key)
        self._sessions[session_id] = session
        if key is not None:
            self._kept[key] = session
            if self._next_look is None:
                self._look()
        return session

    def _look(self) -> None:
        """End kept sessions in time, and see whether the process stands still, while there are any."""
        self.expire_overdue()
        self._next_look = None
        if self._kept:
            first_s = min(session.held_until_s for session in self._kept.values())
            pause_s = min(LOOK_S, max(0.0, first_s - self._clock.monotonic_s()))
            self._next_look = asyncio.get_running_loop().call_later(pause_s, self._look)

    def _open_file(self) -> list[KeptSession]:
        self._file = RecordFile.open(self._path)
        return self._file.sessions()

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
