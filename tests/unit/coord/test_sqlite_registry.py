"""The registry in a file: what survives a restart, who may open it, and when a session ends."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tanist.coord import Create, Put, Record, RegistryUnavailable, SessionState
from tanist.coord.sqlite_registry import SqliteHome
from tanist.errors import ForeignFile, StoreLocked
from tests.support.clocks import FakeClock
from tests.support.conditions import turns
from tests.support.registries import Calls, States


def test_records_and_versions_survive_a_restart_and_what_was_ephemeral_does_not(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteHome(tmp_path / "registry.db") as home:
            registry = await home.open_session(timeout_s=4)
            await registry.commit(Create("/group", b"old"), Create("/here", b"", is_ephemeral=True))
            await registry.commit(Put("/group", b"new", 0))
        async with SqliteHome(tmp_path / "registry.db") as home:
            registry = await home.open_session(timeout_s=4)
            assert await registry.read("/group") == Record(b"new", 1)
            assert await registry.children("/") == ["group"]

    asyncio.run(run())


def test_what_a_killed_process_left_is_opened_at_once_without_what_was_ephemeral(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteHome(tmp_path / "registry.db") as home:
            registry = await home.open_session(timeout_s=4)
            await registry.commit(Create("/group", b"kept"), Create("/here", b"", is_ephemeral=True))
            # What the system holds of the files now is what a kill would leave.
            left = tmp_path / "left"
            left.mkdir()
            for name in ("registry.db", "registry.db-wal"):
                shutil.copy(tmp_path / name, left)
        async with SqliteHome(left / "registry.db") as home:
            registry = await home.open_session(timeout_s=4)
            assert await registry.read("/group") == Record(b"kept", 0)
            assert await registry.children("/") == ["group"]

    asyncio.run(run())


def test_a_file_that_is_open_can_not_be_opened_again_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"

    async def run() -> None:
        async with SqliteHome(path):
            with pytest.raises(StoreLocked, match="is open in another process; stop the controller"):
                await SqliteHome(path).__aenter__()
        async with SqliteHome(path):
            pass

    asyncio.run(run())


def _write_text(path: Path) -> None:
    path.write_text("coordinator=zk://zk1:2181" * 100)


def _foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE records (name TEXT)")


def _newer_layout(path: Path) -> None:
    asyncio.run(_make_registry(path))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 3")


async def _make_registry(path: Path) -> None:
    async with SqliteHome(path) as home:
        registry = await home.open_session(timeout_s=4)
        await registry.commit(*(Create(f"/groups/{number}", bytes(3000)) for number in range(20)))


def _damage(path: Path) -> None:
    asyncio.run(_make_registry(path))
    data = bytearray(path.read_bytes())
    data[8192:20480] = b"\xff" * 12288
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_write_text, "file is not a database"),
        (_foreign_database, "application 0x0 with layout 0 made it"),
        (_newer_layout, "application 0x546e5267 with layout 3 made it"),
        (_damage, "can not be read"),
    ],
    ids=["text", "foreign", "newer", "damaged"],
)
def test_a_file_that_is_no_sound_registry_is_refused_with_the_reason_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "registry.db"
    spoil(path)
    before = path.read_bytes()

    async def run() -> None:
        for _ in range(2):
            with pytest.raises(ForeignFile, match=reason):
                await SqliteHome(path).__aenter__()

    asyncio.run(run())
    assert path.read_bytes() == before


def test_a_session_ends_at_the_time_up_to_which_it_is_held_and_not_before(tmp_path: Path) -> None:
    async def run() -> None:
        clock = FakeClock()
        async with SqliteHome(tmp_path / "registry.db", clock) as home:
            ours, theirs = [await home.open_session(timeout_s) for timeout_s in (40, 1000)]
            states = States(ours)
            await ours.commit(Create("/here", b"", is_ephemeral=True))
            assert ours.held_until_s == clock.monotonic_s() + 40
            clock.advance_ms(39_999)
            assert await theirs.read("/here") == Record(b"", 0)
            assert ours.session is SessionState.CONNECTED
            clock.advance_ms(1)
            assert await theirs.read("/here") is None
            assert (ours.session, states.told) == (SessionState.LOST, [SessionState.LOST])

    asyncio.run(run())


def test_a_process_that_stood_still_for_too_long_finds_its_session_lost(tmp_path: Path) -> None:
    async def run() -> None:
        clock = FakeClock()
        async with SqliteHome(tmp_path / "registry.db", clock) as home:
            registry = await home.open_session(timeout_s=0.06)
            states, calls = States(registry), Calls()
            registry.watch("/record", calls)
            await calls.more()
            await registry.commit(Create("/here", b"", is_ephemeral=True))
            clock.advance_ms(60)
            # By its own timer: nobody asks for anything.
            await states.until(SessionState.LOST)
            with pytest.raises(RegistryUnavailable, match="is over; open another"):
                await registry.commit(Create("/record", b""))
            other = await home.open_session(timeout_s=4)
            assert await other.children("/") == []
            await other.commit(Create("/record", b""))
            await turns()
            assert calls.count == 1

    asyncio.run(run())


def test_the_event_loop_goes_on_while_the_file_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"

    async def run() -> None:
        async with SqliteHome(path) as home:
            registry = await home.open_session(timeout_s=4)
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                commit = asyncio.ensure_future(registry.commit(Create("/record", b"")))
                await turns(100)
                assert not commit.done()
                other.execute("COMMIT")
            assert await commit == [0]

    asyncio.run(run())


def test_a_disk_that_refuses_a_commit_is_told_as_it_is_and_the_registry_goes_on_after_it(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with SqliteHome(tmp_path / "registry.db") as home:
            ours, theirs = [await home.open_session(timeout_s=4) for _ in range(2)]
            await ours.commit(Create("/here", b"", is_ephemeral=True))

            def set_limit(pages: int) -> None:
                assert home._file is not None
                home._file._database.execute(f"PRAGMA max_page_count = {pages}")

            await home.work(lambda _: set_limit(1))
            with pytest.raises(RegistryUnavailable, match=r"registry\.db: database or disk is full"):
                await ours.commit(Create("/record", bytes(100_000)))
            assert await theirs.read("/record") is None
            await home.work(lambda _: set_limit(1 << 20))
            assert await ours.commit(Create("/record", bytes(100_000))) == [0]
            await ours.close()
            assert await theirs.children("/") == ["record"]

    asyncio.run(run())


def test_an_ephemeral_record_that_could_not_be_removed_is_not_seen_any_more_once_something_is_seen(
    tmp_path: Path,
) -> None:
    path = tmp_path / "registry.db"

    async def run() -> None:
        async with SqliteHome(path) as home:
            ours, theirs = [await home.open_session(timeout_s=4) for _ in range(2)]
            await ours.commit(Create("/here", b"", is_ephemeral=True))
            await home.work(lambda file: file._database.execute("PRAGMA query_only = ON"))
            await ours.close()
            with pytest.raises(RegistryUnavailable, match="readonly"):
                await theirs.read("/here")
            assert home._file is not None
            home._executor.submit(home._file._database.execute, "PRAGMA query_only = OFF").result()
            assert await theirs.read("/here") is None

    asyncio.run(run())


@pytest.mark.parametrize("timeout_s", [0, -1])
def test_a_session_without_a_time_is_refused(tmp_path: Path, timeout_s: float) -> None:
    async def run() -> None:
        async with SqliteHome(tmp_path / "registry.db") as home:
            with pytest.raises(ValueError, match="timeout_s="):
                await home.open_session(timeout_s)

    asyncio.run(run())


def test_an_opening_that_nobody_waits_for_any_more_leaves_the_file_to_others(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"

    async def run() -> None:
        given_up = SqliteHome(path)
        opening = asyncio.ensure_future(given_up.__aenter__())
        await turns(1)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await asyncio.to_thread(given_up._executor.shutdown)
        async with SqliteHome(path):
            pass

    asyncio.run(run())
