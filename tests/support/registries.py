"""Registries for tests: all homes behind one face, and what was heard from a session or a watch.

async with site.sessions(2) as (ours, theirs):
    calls = Calls()
    ours.watch("/record", calls)
    await theirs.commit(Create("/record", b""))
    await calls.more()
"""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from kazoo.client import KazooClient

from tanist.coord import Registry, SessionState
from tanist.coord.kazoo_client import Kazoo
from tanist.coord.remote_registry import RemoteRegistry
from tanist.coord.sqlite_registry import SqliteHome, SqliteRegistry
from tanist.coord.zookeeper_registry import ZooKeeperRegistry
from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.coord import SessionRequest
from tanist.remoting import RemotingClient
from tests.support.clocks import FakeClock
from tests.support.played_replicas import controlling

PATIENCE_S = 60.0
"""How long a test waits for what has to come."""

_SQLITE_TIMEOUT_S = 0.6
_REMOTE_TIMEOUT_S = 3.0
# Long enough for a busy machine: a session that ends or seems cut off by itself is another test's story.
_ZOOKEEPER_TIMEOUT_S = 12.0


class Calls:
    """Counts its calls, and lets others wait for the next."""

    def __init__(self) -> None:
        self.count = 0
        self._seen = 0
        self._called = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._called.set()

    async def more(self) -> None:
        """Wait for a call since the last time that somebody waited."""
        async with asyncio.timeout(PATIENCE_S):
            while self.count == self._seen:
                self._called.clear()
                await self._called.wait()
        self._seen = self.count


class States:
    """The states of a session as they were told."""

    def __init__(self, registry: Registry) -> None:
        self.told: list[SessionState] = []
        self._called = asyncio.Event()
        registry.on_session(self._hear)

    async def until(self, state: SessionState) -> None:
        """Wait until this state was told, after all that was waited for before."""
        async with asyncio.timeout(PATIENCE_S):
            while state not in self.told:
                self._called.clear()
                await self._called.wait()
        del self.told[: self.told.index(state) + 1]

    def _hear(self, state: SessionState) -> None:
        self.told.append(state)
        self._called.set()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Ask a registry again and again until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not await is_so():
            pass


class RegistrySite(Protocol):
    """One registry that a test has for itself."""

    @property
    def timeout_s(self) -> float:
        """How long a session outlives the silence of its owner."""
        ...

    def sessions(self, count: int) -> AbstractAsyncContextManager[tuple[Registry, ...]]: ...

    async def expire(self, registry: Registry) -> None:
        """Have a session end, not by its owner."""
        ...

    def pass_time(self) -> None:
        """Let a part of a session timeout pass, where time does not pass by itself."""
        ...

    def now_s(self) -> float:
        """The time on the monotonic clock of the registry."""
        ...


class SqliteSite:
    """A registry in a file."""

    timeout_s = _SQLITE_TIMEOUT_S

    def __init__(self, directory: Path) -> None:
        self._path = directory / "registry.db"
        self._clock = FakeClock()
        self._sessions: list[SqliteRegistry] = []

    @asynccontextmanager
    async def sessions(self, count: int) -> AsyncGenerator[tuple[Registry, ...]]:
        async with SqliteHome(self._path, self._clock) as home:
            self._sessions = [await home.open_session(_SQLITE_TIMEOUT_S) for _ in range(count)]
            yield tuple(self._sessions)

    async def expire(self, registry: Registry) -> None:
        """Let the timeout pass while this session stands still and the others do not."""
        others = [session for session in self._sessions if session is not registry]
        for _ in range(4):
            self._clock.advance_ms(round(_SQLITE_TIMEOUT_S * 1000 / 3))
            for session in others:
                session.renew()

    def pass_time(self) -> None:
        self._clock.advance_ms(10)

    def now_s(self) -> float:
        return self._clock.monotonic_s()


class RemoteSite:
    """The registry of a controller, over its port."""

    timeout_s = _REMOTE_TIMEOUT_S

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._address = ""

    @asynccontextmanager
    async def sessions(self, count: int) -> AsyncGenerator[tuple[Registry, ...]]:
        async with controlling(self._directory) as controller, AsyncExitStack() as stack:
            self._address = controller.address
            opening = (RemoteRegistry(self._address, timeout_s=self.timeout_s) for _ in range(count))
            yield tuple([await stack.enter_async_context(session) for session in opening])

    async def expire(self, registry: Registry) -> None:
        """End the session as somebody can who has its token."""
        assert isinstance(registry, RemoteRegistry)
        request = Command.request(RequestCode.REGISTRY_CLOSE_SESSION, SessionRequest(session=registry._token))
        thief = RemotingClient()
        try:
            assert (await thief.request(self._address, request, timeout_s=PATIENCE_S)).code == 0
        finally:
            await thief.close()

    def pass_time(self) -> None:
        """Time passes."""

    def now_s(self) -> float:
        return time.monotonic()


class ZooKeeperSite:
    """A registry in a part of ZooKeeper that nobody else uses."""

    timeout_s = _ZOOKEEPER_TIMEOUT_S
    _numbers = itertools.count()

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._root = f"/tests/{next(self._numbers)}"

    @asynccontextmanager
    async def sessions(
        self, count: int, timeout_s: float = _ZOOKEEPER_TIMEOUT_S
    ) -> AsyncGenerator[tuple[Registry, ...]]:
        async with AsyncExitStack() as stack:
            opening = (self.session(timeout_s=timeout_s) for _ in range(count))
            yield tuple([await stack.enter_async_context(session) for session in opening])

    def session(self, hosts: str = "", timeout_s: float = _ZOOKEEPER_TIMEOUT_S) -> ZooKeeperRegistry:
        """One more session, perhaps by another way than the others."""
        return ZooKeeperRegistry(hosts or self._hosts, self._root, timeout_s=timeout_s)

    async def expire(self, registry: Registry) -> None:
        """End the session as somebody can who has its id and its password."""
        assert isinstance(registry, ZooKeeperRegistry)
        kazoo = registry._session._kazoo
        assert isinstance(kazoo, Kazoo)
        client_id = kazoo._client.client_id
        await asyncio.to_thread(self._close_session, client_id)

    def pass_time(self) -> None:
        """Time passes."""

    def now_s(self) -> float:
        return time.monotonic()

    def _close_session(self, client_id: tuple[int, bytes]) -> None:
        thief = KazooClient(self._hosts, timeout=_ZOOKEEPER_TIMEOUT_S, client_id=client_id)
        thief.start()
        thief.stop()
        thief.close()
