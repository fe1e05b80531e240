"""The records as the leader keeps them in the registry."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tanist.controller.decisions import Answer, Decision
from tanist.controller.group_record import GroupRecord, encode_group, group_path
from tanist.controller.keeping import GroupKeeper
from tanist.controller.leading import LEADER_PATH, TERM_PATH, Leading, NotLeading
from tanist.coord import Check, Create, Delete, Put, Registry
from tanist.coord.sqlite_registry import SqliteHome
from tanist.errors import MQError, ResponseError
from tanist.protocol.codes import ResponseCode
from tests.support.faulty_registry import FaultyRegistry
from tests.support.reigning import NAME, group


class FixedLeading:
    """We lead, whatever happens, in the first term."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.fence = (Check(LEADER_PATH, 0), Check(TERM_PATH, 0))

    def require(self) -> None:
        pass


@asynccontextmanager
async def leading(directory: Path) -> AsyncGenerator[tuple[GroupKeeper, FaultyRegistry, Registry]]:
    """A leader's keeper, its session, and a session of somebody else."""
    async with SqliteHome(directory / "registry.db") as home:
        registry = FaultyRegistry(await home.open_session(10))
        other = await home.open_session(10)
        await registry.commit(Create(LEADER_PATH, b"", is_ephemeral=True), Create(TERM_PATH, b""))
        yield GroupKeeper(cast("Leading", FixedLeading(registry))), registry, other


def becomes(record: GroupRecord) -> Callable[[GroupRecord | None], Decision]:
    return lambda _: Decision(Answer(), record)


def with_set_epoch(record: GroupRecord | None) -> Decision:
    assert record is not None
    return Decision(Answer(), msgspec.structs.replace(record, set_epoch=record.set_epoch + 1))


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_what_was_decided_is_in_the_registry_and_found_by_the_next_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, registry, _):
            await keeper.change(NAME, becomes(group()))
            await keeper.change(NAME, with_set_epoch)
            found = await registry.read(group_path(NAME))
            assert found is not None
            assert found.version == 1
            next_keeper = GroupKeeper(cast("Leading", FixedLeading(registry)))
            await next_keeper.load(registry)
            assert next_keeper.records == keeper.records
            assert next_keeper.known(NAME) == msgspec.structs.replace(group(), set_epoch=8)

    run(scenario())


@pytest.mark.parametrize("what", ["term", "leader"])
def test_a_leader_that_was_deposed_changes_nothing(tmp_path: Path, what: str) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, _, other):
            await keeper.change(NAME, becomes(group()))
            if what == "term":
                # The next one has made its own record of who leads, which has the same version.
                await other.commit(Put(TERM_PATH, b"", 0))
            else:
                await other.commit(Delete(LEADER_PATH, 0))
            with pytest.raises(NotLeading):
                await keeper.change(NAME, with_set_epoch)
            found = await other.read(group_path(NAME))
            assert found is not None
            assert found.value == encode_group(group())

    run(scenario())


def test_a_record_that_somebody_else_changed_is_read_and_decided_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, _, other):
            await keeper.change(NAME, becomes(group()))
            mended = msgspec.structs.replace(group(), set_epoch=50)
            await other.commit(Put(group_path(NAME), encode_group(mended), 0))
            await keeper.change(NAME, with_set_epoch)
            assert keeper.known(NAME) == msgspec.structs.replace(group(), set_epoch=51)

    run(scenario())


def test_whether_a_change_was_made_is_found_out_when_the_registry_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, registry, _):
            await keeper.change(NAME, becomes(group()))
            for fault in ("is_away", "loses_answers"):
                before = keeper.known(NAME)
                setattr(registry, fault, True)
                with pytest.raises(ResponseError, match="the registry does not answer"):
                    await keeper.change(NAME, with_set_epoch)
                assert keeper.known(NAME) is None
                assert not keeper.is_sure(NAME)
                setattr(registry, fault, False)
                assert before is not None
                made = before.set_epoch + (fault == "loses_answers")
                found = await keeper.get(NAME)
                assert found == msgspec.structs.replace(before, set_epoch=made)
                assert keeper.is_sure(NAME)

    run(scenario())


def test_a_record_that_can_not_be_read_stops_its_own_group_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, registry, _):
            await registry.commit(
                Create(group_path("broken"), b"{"), Create(group_path(NAME), encode_group(group()))
            )
            await keeper.load(registry)
            assert keeper.records == [group()]
            for _ in range(2):
                with pytest.raises(MQError, match="/groups/broken in the registry"):
                    await keeper.change("broken", with_set_epoch)
            assert await keeper.get("never heard of") is None

    run(scenario())


def test_who_only_looks_does_not_wait_for_the_changes_of_other_groups(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, _, _):
            await keeper.change(NAME, becomes(group()))
            other = msgspec.structs.replace(group(), broker_name="other")
            changing = asyncio.ensure_future(keeper.change("other", becomes(other)))
            await asyncio.sleep(0)
            assert await keeper.get(NAME) == group()
            assert not changing.done()
            assert await keeper.get("other") == other
            await changing

    run(scenario())


def test_strangers_do_not_fill_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, registry, _):
            await keeper.change(NAME, becomes(group()))
            with pytest.raises(ResponseError) as refusal:
                await keeper.change("more", becomes(msgspec.structs.replace(group(), broker_name="more")))
            assert refusal.value.code == ResponseCode.SYSTEM_BUSY
            assert await registry.children("/groups") == [NAME]

    monkeypatch.setattr("tanist.controller.keeping.MAX_GROUPS", 1)
    run(scenario())


def test_nobody_has_a_lease_while_it_is_open_who_is_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with leading(tmp_path) as (keeper, _, _):
            await keeper.change(NAME, becomes(group()))
            seen: list[GroupRecord | None] = []
            for change in (with_set_epoch, becomes(group(master=2, epoch=5))):
                task = asyncio.ensure_future(keeper.change(NAME, change))
                await asyncio.sleep(0)
                seen.append(keeper.known(NAME))
                await task
            assert seen == [group(), None]

    run(scenario())
