"""A broker's session with the registry, on a registry in a file."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tanist.broker.slave_consume.group_registry import GroupRegistry, Seen
from tanist.coord import Check, Conflict, Create, Delete, Put, Record, Registry, RegistryUnavailable
from tanist.model.reading import (
    NONE,
    Assigned,
    Assignment,
    GroupRole,
    Presence,
    ReadRecord,
    alive_path,
    assignment_path,
    encode_record,
    read_record_path,
)
from tests.support.clocks import FakeClock
from tests.support.registries import PATIENCE_S, SqliteSite

MASTER = Assigned(address="a:1", role=GroupRole.MASTER, broker_id=0)
SLAVE = Assigned(address="b:1", role=GroupRole.SLAVE, broker_id=1)
RECORD = read_record_path("g")
CLAIMED = ReadRecord(group="g", term=1, second="b:1", reader="b:1")


class Away:
    """A session whose next read is refused once that is set, and no other."""

    def __init__(self, session: Registry, away: asyncio.Event) -> None:
        self._session, self._away = session, away

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def read(self, path: str) -> Record | None:
        if self._away.is_set():
            self._away.clear()
            raise RegistryUnavailable("it is busy")
        return await self._session.read(path)


@asynccontextmanager
async def _present(
    session: Registry,
    own: Assigned,
    seen: asyncio.Queue[Seen] | None = None,
    lost: asyncio.Event | None = None,
) -> AsyncGenerator[tuple[GroupRegistry, Seen]]:
    """A broker that has read what the registry holds."""
    seen = seen or asyncio.Queue()

    @asynccontextmanager
    async def open_session() -> AsyncGenerator[Registry]:
        yield session

    registry = GroupRegistry(
        open_session,
        "g",
        own,
        presence=Presence(token="now"),
        clock=FakeClock(),
        on_seen=seen.put_nowait,
        on_lost=(lost or asyncio.Event()).set,
    )
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(registry.run())
        yield registry, await seen.get()
        running.cancel()


def test_what_was_sent_before_a_start_is_refused_after_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteSite(tmp_path).sessions(2) as (earlier, ours):
            await earlier.commit(Create(RECORD, encode_record(ReadRecord(group="g"))))
            async with _present(ours, SLAVE):
                # The master is absent, and nobody has changed what the record says.
                late = (Check(alive_path("g", "a:1"), None), Put(RECORD, encode_record(CLAIMED), 0))
                with pytest.raises(Conflict):
                    await earlier.commit(*late)

    asyncio.run(scenario())


def test_the_presence_of_an_earlier_start_is_replaced_and_its_end_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteSite(tmp_path).sessions(2) as (earlier, ours):
            path = alive_path("g", "a:1")
            await earlier.commit(Create(path, b"{}", is_ephemeral=True))
            async with _present(ours, MASTER) as (_, seen):
                await earlier.close()
                found = await ours.read(path)
                assert found is not None
                assert msgspec.json.decode(found.value)["token"] == "now"
                assert seen.master == Presence(token="now")

    asyncio.run(scenario())


@pytest.mark.behaviour("S3-29")
def test_a_claim_is_written_only_while_the_master_is_absent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteSite(tmp_path).sessions(2) as (theirs, ours), _present(ours, SLAVE) as (registry, _):
            await theirs.commit(Create(alive_path("g", "a:1"), b"{}", is_ephemeral=True))
            with pytest.raises(Conflict):
                await registry.claim(CLAIMED, registry.record_version, "a:1")
            await theirs.close()
            written = await registry.claim(CLAIMED, registry.record_version, "a:1")
            assert (written.reader, written.term) == ("b:1", 1)

    asyncio.run(scenario())


def test_what_others_write_badly_is_passed_over_until_it_is_put_right(tmp_path: Path) -> None:
    async def scenario() -> None:
        seen: asyncio.Queue[Seen] = asyncio.Queue()
        async with SqliteSite(tmp_path).sessions(2) as (theirs, ours), _present(ours, SLAVE, seen):
            path = assignment_path("g")
            found = await theirs.read(path)
            assert found is not None
            (bad,) = await theirs.commit(Put(path, b"no assignment", found.version))
            await theirs.commit(Create(alive_path("g", "a:1"), b"no presence", is_ephemeral=True))
            both = Assignment(group="g", brokers=(MASTER, SLAVE))
            await theirs.commit(Put(path, encode_record(both), bad))
            while (await seen.get()).master != Presence(token=""):
                pass

    asyncio.run(scenario())


def test_a_broker_that_finds_a_bad_assignment_enters_when_it_is_put_right(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteSite(tmp_path).sessions(2) as (theirs, ours):
            path = assignment_path("g")
            (bad,) = await theirs.commit(Create(path, b"{}"))

            async def put_right() -> None:
                # The broker has been there, and could not use it.
                while await theirs.read(alive_path("g", "b:1")) is None:
                    pass
                await theirs.commit(Put(path, encode_record(Assignment(group="g")), bad))

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(put_right())
                async with _present(ours, SLAVE) as (_, seen):
                    assert seen.assignment.find("b:1") is not None

    asyncio.run(scenario())


def test_a_broker_whose_presence_somebody_removed_is_told_and_enters_it_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        seen: asyncio.Queue[Seen] = asyncio.Queue()
        lost = asyncio.Event()
        async with SqliteSite(tmp_path).sessions(2) as (theirs, ours), _present(ours, MASTER, seen, lost):
            path = alive_path("g", "a:1")
            found = await theirs.read(path)
            assert found is not None
            await theirs.commit(Delete(path, found.version))
            await lost.wait()
            while await theirs.read(path) is None:
                pass

    asyncio.run(scenario())


def test_what_was_made_from_a_record_does_not_replace_one_that_was_seen_since(tmp_path: Path) -> None:
    async def scenario() -> None:
        seen: asyncio.Queue[Seen] = asyncio.Queue()
        async with (
            SqliteSite(tmp_path).sessions(2) as (theirs, ours),
            _present(ours, MASTER, seen) as (registry, first),
        ):
            version = registry.record_version
            assert version is not None
            await theirs.commit(Put(RECORD, encode_record(CLAIMED), version))
            while (await seen.get()).record != CLAIMED:
                pass
            with pytest.raises(Conflict):
                await registry.put(msgspec.structs.replace(first.record, second="b:1"), version)

    asyncio.run(scenario())


def test_a_permission_that_was_changed_while_the_registry_was_away_is_published_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        seen: asyncio.Queue[Seen] = asyncio.Queue()
        away = asyncio.Event()
        async with (
            SqliteSite(tmp_path).sessions(1) as (ours,),
            _present(cast("Registry", Away(ours, away)), SLAVE, seen) as (registry, _),
        ):
            away.set()
            registry.assign(NONE)
            while (own := (await seen.get()).assignment.find("b:1")) is None or own.permission != NONE:
                pass

    asyncio.run(scenario())
