"""Several controllers inside the test that share a registry."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tanist.controller import Controller
from tanist.coord import Registry, SessionState
from tanist.coord.sqlite_registry import SqliteHome, SqliteRegistry
from tests.support.faulty_registry import FaultyRegistry
from tests.support.played_replicas import PlayedReplica, controlling

_SESSION_S = 2.0


@dataclass
class Sessions:
    """The sessions of one controller with a registry that several share."""

    home: SqliteHome
    real: list[SqliteRegistry] = field(default_factory=list[SqliteRegistry])
    seen: list[FaultyRegistry] = field(default_factory=list[FaultyRegistry])

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Registry]:
        real = await self.home.open_session(_SESSION_S)
        self.real.append(real)
        self.seen.append(FaultyRegistry(real))
        try:
            yield self.seen[-1]
        finally:
            await real.close()

    def expire(self) -> None:
        """Have the registry end the session that it holds."""
        real = self.real[-1]
        self.home.end(real.session_id)
        real.lose()
        assert real.session is SessionState.LOST


@dataclass
class Site:
    """Controllers that share a registry, and their sessions with it."""

    controllers: list[Controller]
    sessions: list[Sessions]
    stacks: list[AsyncExitStack]

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self.controllers]

    async def leader(self, asker: PlayedReplica, *, among: list[int] | None = None) -> int:
        """Which of them leads; it is waited for until all agree."""
        indexes = among or list(range(len(self.controllers)))
        async with asyncio.timeout(10):
            while True:
                told = [await asker.leader(self.addresses[index]) for index in indexes]
                leading = [index for index, each in zip(indexes, told, strict=True) if each.is_leader]
                named = {each.controller_leader_address for each in told}
                if len(leading) == 1 and named == {self.addresses[leading[0]]}:
                    return leading[0]
                await asyncio.sleep(0.005)


@asynccontextmanager
async def site(directory: Path, count: int) -> AsyncGenerator[Site]:
    """So many controllers, each with sessions of its own."""
    async with SqliteHome(directory / "shared.db") as home, AsyncExitStack() as all_of_them:
        made = Site([], [], [])
        for number in range(count):
            sessions = Sessions(home)
            stack = await all_of_them.enter_async_context(AsyncExitStack())
            controller = await stack.enter_async_context(
                controlling(directory / str(number), open_session=sessions.open)
            )
            made.controllers.append(controller)
            made.sessions.append(sessions)
            made.stacks.append(stack)
        yield made
