"""Sessions whose owners are elsewhere: how long they are held, and what a restart leaves of them."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tanist.coord import Create, Record, SessionState
from tanist.coord.sqlite_registry import SqliteHome
from tests.support.clocks import FakeClock
from tests.support.conditions import until
from tests.support.registries import States

_KEY = b"key of the session"
_STEP_MS = 200
"""So little time that nobody takes it for a standstill."""


def _pass(clock: FakeClock, home: SqliteHome, elapsed_ms: int) -> None:
    """Let time pass as it does in a process that is never late."""
    for _ in range(elapsed_ms // _STEP_MS):
        clock.advance_ms(_STEP_MS)
        home.expire_overdue()


def test_a_session_that_is_held_in_time_lives_on_and_one_that_is_not_goes_with_its_records(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        clock = FakeClock()
        async with SqliteHome(tmp_path / "registry.db", clock) as home:
            session = await home.open_kept_session(4, _KEY)
            await session.commit(Create("/here", b"", is_ephemeral=True))
            states = States(session)
            for _ in range(3):
                _pass(clock, home, 3_800)
                session.hold()
            assert session.held_until_s == clock.monotonic_s() + 4
            _pass(clock, home, 3_800)
            assert home.kept_session(_KEY) is session
            _pass(clock, home, 400)
            assert home.kept_session(_KEY) is None
            assert (session.session, states.told) == (SessionState.LOST, [SessionState.LOST])
            session.hold()
            assert session.session is SessionState.LOST
            async with home.session(4) as other:
                assert await other.read("/here") is None

    asyncio.run(run())


def test_a_silent_session_ends_by_the_clock_though_nobody_asks_for_anything(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteHome(tmp_path / "registry.db") as home:
            session = await home.open_kept_session(0.5, _KEY)
            began_s = asyncio.get_running_loop().time()
            await until(lambda: session.session is SessionState.LOST)
            assert asyncio.get_running_loop().time() - began_s >= 0.4

    asyncio.run(run())


def test_time_in_which_the_process_stood_still_does_not_count(tmp_path: Path) -> None:
    async def run() -> None:
        clock = FakeClock()
        async with SqliteHome(tmp_path / "registry.db", clock) as home:
            session = await home.open_kept_session(4, _KEY)
            _pass(clock, home, 3_000)
            clock.advance_ms(60_000)
            assert home.kept_session(_KEY) is session
            _pass(clock, home, 800)
            assert home.kept_session(_KEY) is session
            _pass(clock, home, 400)
            assert home.kept_session(_KEY) is None

    asyncio.run(run())


def test_after_a_restart_a_session_has_one_full_timeout_to_be_held_again(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"

    async def run() -> None:
        clock = FakeClock()
        async with SqliteHome(path, clock) as home:
            session = await home.open_kept_session(4, _KEY)
            await session.commit(Create("/here", b"me", is_ephemeral=True))
            inside = await home.open_session(4)
            await inside.commit(Create("/inside", b"", is_ephemeral=True))
            _pass(clock, home, 3_000)
        clock.advance_ms(3_600_000)
        async with SqliteHome(path, clock) as home, home.session(100) as looking:
            assert await looking.children("/") == ["here"]
            _pass(clock, home, 3_800)
            assert await looking.read("/here") == Record(b"me", 0)
            _pass(clock, home, 400)
            assert await looking.read("/here") is None
        async with SqliteHome(path, clock) as home:
            assert home.kept_session(_KEY) is None, "what is over does not come back"

    asyncio.run(run())


def test_a_session_that_is_held_after_a_restart_goes_on_with_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"

    async def run() -> None:
        async with SqliteHome(path) as home:
            session = await home.open_kept_session(4, _KEY)
            await session.commit(Create("/here", b"me", is_ephemeral=True))
        async with SqliteHome(path) as home:
            session = home.kept_session(_KEY)
            assert session is not None
            assert (session.session, session.timeout_s) == (SessionState.CONNECTED, 4)
            async with home.session(4) as inside:
                await inside.commit(Create("/inside", b"", is_ephemeral=True))
            assert await session.children("/") == ["here"], "nobody else has its number"
            await session.close()
        async with SqliteHome(path) as home, home.session(4) as looking:
            assert home.kept_count == 0
            assert await looking.children("/") == []

    asyncio.run(run())


def test_a_session_outlives_a_kill_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteHome(tmp_path / "registry.db") as home:
            session = await home.open_kept_session(4, _KEY)
            await session.commit(Create("/here", b"me", is_ephemeral=True))
            # What the system holds of the files now is what a kill would leave.
            left = tmp_path / "left"
            left.mkdir()
            for name in ("registry.db", "registry.db-wal"):
                shutil.copy(tmp_path / name, left)
        async with SqliteHome(left / "registry.db") as home:
            session = home.kept_session(_KEY)
            assert session is not None
            assert await session.read("/here") == Record(b"me", 0)

    asyncio.run(run())


def test_a_file_of_the_layout_before_is_taken_over_with_its_records(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"

    async def run() -> None:
        async with SqliteHome(path) as home, home.session(4) as registry:
            await registry.commit(Create("/group", b"kept"))
        with closing(sqlite3.connect(path)) as database:
            database.executescript("DROP TABLE sessions; PRAGMA user_version = 1;")
        for _ in range(2):
            async with SqliteHome(path) as home, home.session(4) as registry:
                assert await registry.read("/group") == Record(b"kept", 0)
                session = await home.open_kept_session(4, _KEY)
                await session.close()

    asyncio.run(run())
