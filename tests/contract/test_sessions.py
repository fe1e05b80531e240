"""Sessions of the registry: what goes with them, who wins, and up to when one is held."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.coord import (
    Check,
    Conflict,
    Create,
    Delete,
    Put,
    Record,
    Registry,
    RegistryUnavailable,
    SessionState,
)
from tests.support.conditions import turns
from tests.support.registries import PATIENCE_S, RegistrySite, States, until


def _run(site: RegistrySite, story: Callable[[Registry, Registry], Awaitable[None]]) -> None:
    async def run() -> None:
        async with site.sessions(2) as (ours, theirs):
            await story(ours, theirs)

    asyncio.run(run())


async def _is_gone(registry: Registry, path: str) -> bool:
    return await registry.read(path) is None


def test_sessions_see_what_the_others_commit(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        assert ours.session is theirs.session is SessionState.CONNECTED
        await ours.commit(Create("/record", b"ours"))
        await theirs.commit(Put("/record", b"theirs", 0))
        assert await ours.read("/record") == Record(b"theirs", 1)

    _run(site, story)


def test_an_ephemeral_record_goes_when_its_session_is_closed_and_others_stay(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        await ours.commit(Create("/here/ours", b"me", is_ephemeral=True), Create("/kept", b""))
        await theirs.commit(Create("/here/theirs", b"", is_ephemeral=True))
        assert await theirs.read("/here/ours") == Record(b"me", 0)
        await ours.close()
        assert await theirs.children("/here") == ["theirs"]
        assert await theirs.read("/kept") == Record(b"", 0)

    _run(site, story)


def test_an_ephemeral_record_can_be_put_and_deleted_as_any_other(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        await ours.commit(Create("/here", b"", is_ephemeral=True))
        assert await theirs.commit(Put("/here", b"new", 0)) == [1]
        assert await theirs.commit(Delete("/here", 1), Create("/here", b"stays")) == [1, 0]
        await ours.close()
        assert await theirs.read("/here") == Record(b"stays", 0)

    _run(site, story)


@pytest.mark.parametrize("path", ["/here/child", "/here/child/grandchild"])
def test_an_ephemeral_record_has_no_children(site: RegistrySite, path: str) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        await ours.commit(Create("/here", b"", is_ephemeral=True))
        for registry in (ours, theirs):
            with pytest.raises(Conflict) as raised:
                await registry.commit(Create(path, b""))
            assert raised.value.change == Create(path, b"")
        assert await ours.children("/here") == []

    _run(site, story)


def test_a_session_that_somebody_ended_is_lost_with_all_that_was_ephemeral(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        states = States(ours)
        await ours.commit(Create("/here", b"", is_ephemeral=True), Create("/kept", b""))
        await site.expire(ours)
        await until(lambda: _is_gone(theirs, "/here"))
        await states.until(SessionState.LOST)
        assert ours.held_until_s <= site.now_s()
        assert ours.session is SessionState.LOST
        assert await theirs.read("/kept") == Record(b"", 0)
        assert theirs.session is SessionState.CONNECTED

    _run(site, story)


def test_a_lost_session_can_do_nothing_any_more(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        states = States(ours)
        await ours.commit(Create("/leader", b"ours", is_ephemeral=True), Create("/group", b""))
        await site.expire(ours)
        await until(lambda: _is_gone(theirs, "/leader"))
        # The new leader's record has the version that the old one's had.
        await theirs.commit(Create("/leader", b"theirs", is_ephemeral=True))
        with pytest.raises(RegistryUnavailable):
            await ours.commit(Check("/leader", 0), Put("/group", b"old leader", 0))
        await states.until(SessionState.LOST)
        for look in (ours.read, ours.children):
            with pytest.raises(RegistryUnavailable, match="is over; open another"):
                await look("/group")
        assert await theirs.read("/group") == Record(b"", 0)
        assert states.told == []

    _run(site, story)


def test_a_closed_session_is_over_and_its_owner_is_not_told_what_it_did(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        states = States(ours)
        await ours.close()
        await ours.close()
        assert ours.session is SessionState.LOST
        assert ours.held_until_s < site.now_s()
        with pytest.raises(RegistryUnavailable, match="is over; open another"):
            await ours.commit(Create("/record", b""))
        assert await theirs.read("/record") is None
        assert states.told == []

    _run(site, story)


def test_of_two_sessions_that_create_the_same_record_one_wins(site: RegistrySite) -> None:
    async def attempt(registry: Registry, path: str, name: bytes) -> bytes | None:
        try:
            await registry.commit(Check("/", 0), Create(path, name, is_ephemeral=True))
        except Conflict:
            return None
        return name

    async def story(ours: Registry, theirs: Registry) -> None:
        for number in range(10):
            path = f"/leader-{number}"
            named = await asyncio.gather(attempt(ours, path, b"ours"), attempt(theirs, path, b"theirs"))
            (winner,) = filter(None, named)
            assert await ours.read(path) == Record(winner, 0)

    _run(site, story)


def test_no_put_of_two_sessions_is_lost(site: RegistrySite) -> None:
    async def count(registry: Registry, times: int) -> None:
        while times:
            record = await registry.read("/count")
            assert record is not None
            try:
                await registry.commit(Put("/count", b"%d" % (int(record.value) + 1), record.version))
            except Conflict:
                continue
            times -= 1

    async def story(ours: Registry, theirs: Registry) -> None:
        await ours.commit(Create("/count", b"0"))
        await asyncio.gather(*(count(registry, 5) for registry in (ours, theirs) for _ in range(2)))
        assert await ours.read("/count") == Record(b"20", 20)

    _run(site, story)


def test_commits_of_one_session_are_made_in_the_order_in_which_they_were_asked_for(
    site: RegistrySite,
) -> None:
    async def story(ours: Registry, _theirs: Registry) -> None:
        await ours.commit(Create("/record", b""))
        puts = [ours.commit(Put("/record", b"%d" % version, version)) for version in range(20)]
        assert await asyncio.gather(*puts) == [[version + 1] for version in range(20)]

    _run(site, story)


def test_a_commit_that_nobody_waits_for_any_more_leaves_the_session_in_order(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        commit = asyncio.ensure_future(ours.commit(Create("/first", b""), Create("/second", b"")))
        await turns(1)
        commit.cancel()
        await asyncio.gather(commit, return_exceptions=True)
        await ours.commit(Create("/third", b""))
        # Both or none of them.
        assert len(await theirs.children("/")) in {1, 3}

    _run(site, story)


def test_a_session_is_held_from_the_beginning_for_less_than_its_timeout_and_held_anew(
    site: RegistrySite,
) -> None:
    async def story(ours: Registry, _theirs: Registry) -> None:
        before_s = ours.held_until_s
        assert site.now_s() < before_s <= site.now_s() + site.timeout_s
        site.pass_time()
        async with asyncio.timeout(PATIENCE_S):
            while ours.held_until_s == before_s:
                await ours.read("/")
        assert site.now_s() < ours.held_until_s <= site.now_s() + site.timeout_s
        assert ours.held_until_s > before_s

    _run(site, story)
