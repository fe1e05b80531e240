"""A registry that a supervisor keeps a session with, and another session with it for the test."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tanist.coord import Registry, RegistryUnavailable
from tanist.coord.sqlite_registry import SqliteHome, SqliteRegistry
from tanist.supervisor.kept_registry import KeptRegistry
from tests.support.clocks import FakeClock
from tests.support.faulty_registry import FaultyRegistry

_TIMEOUT_S = 60.0


@dataclass
class KeptSite:
    """``registry`` is the test's own session; ``held`` are those that were kept, one after the other."""

    home: SqliteHome
    registry: Registry
    kept: KeptRegistry = field(init=False)
    held: list[FaultyRegistry] = field(default_factory=list[FaultyRegistry])
    sessions: list[SqliteRegistry] = field(default_factory=list[SqliteRegistry])
    is_away: bool = False
    """Whether nobody can open a session."""
    refusals: int = 0

    def __post_init__(self) -> None:
        self.kept = KeptRegistry(self._open)

    def lose(self) -> None:
        """Have the session that is held end, not by its owner."""
        self.home.end(self.sessions[-1].session_id)
        self.sessions[-1].lose()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Registry]:
        if self.is_away:
            self.refusals += 1
            raise RegistryUnavailable("it is away")
        session = await self.home.open_session(_TIMEOUT_S)
        self.sessions.append(session)
        self.held.append(FaultyRegistry(session))
        try:
            yield self.held[-1]
        finally:
            await session.close()


@asynccontextmanager
async def kept_site(directory: Path) -> AsyncGenerator[KeptSite]:
    """A registry in a file, and a session with it that is kept."""
    async with SqliteHome(directory / "registry.db", FakeClock()) as home:
        site = KeptSite(home, await home.open_session(_TIMEOUT_S))
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(site.kept.keep())
            try:
                await site.kept.opened()
                yield site
            finally:
                keeping.cancel()
