"""Watches of the registry: when a listener is called, and when not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.coord import Change, Create, Delete, Put, Record, Registry
from tests.support.conditions import turns
from tests.support.registries import Calls, RegistrySite


def _run(site: RegistrySite, story: Callable[[Registry, Registry], Awaitable[None]]) -> None:
    async def run() -> None:
        async with site.sessions(2) as (ours, theirs):
            await story(ours, theirs)

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/", "/there", "/absent/below/absent"])
def test_a_listener_is_called_soon_after_the_beginning(site: RegistrySite, path: str) -> None:
    async def story(ours: Registry, _theirs: Registry) -> None:
        await ours.commit(Create("/there", b""))
        calls = Calls()
        ours.watch(path, calls)
        assert calls.count == 0, "nobody is called before watch has returned"
        await calls.more()

    _run(site, story)


@pytest.mark.parametrize("by_us", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        Put("/there", b"new", 0),
        Create("/there/child/grandchild", b""),
        Create("/there/child", b"", is_ephemeral=True),
        Delete("/there/old", 0),
    ],
)
def test_a_listener_is_called_when_the_value_or_the_children_change(
    site: RegistrySite, change: Change, by_us: bool
) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        await ours.commit(Create("/there", b""), Create("/there/old", b""))
        calls = Calls()
        ours.watch("/there", calls)
        await calls.more()
        await (ours if by_us else theirs).commit(change)
        await calls.more()

    _run(site, story)


def test_a_listener_is_called_for_every_coming_and_going_of_its_record(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        calls = Calls()
        ours.watch("/parent/record", calls)
        await calls.more()
        for number in range(3):
            await theirs.commit(Create("/parent/record", b"%d" % number))
            await calls.more()
            assert await ours.read("/parent/record") == Record(b"%d" % number, 0)
            await theirs.commit(Delete("/parent/record", 0))
            await calls.more()
            assert await ours.read("/parent/record") is None

    _run(site, story)


def test_a_listener_is_called_when_the_session_behind_an_ephemeral_record_ends(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        await theirs.commit(Create("/here/theirs", b"", is_ephemeral=True))
        record, children = Calls(), Calls()
        ours.watch("/here/theirs", record)
        ours.watch("/here", children)
        await record.more()
        await children.more()
        await theirs.close()
        await record.more()
        await children.more()
        assert await ours.children("/here") == []

    _run(site, story)


def test_what_is_read_after_the_last_call_is_the_last_change(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        await ours.commit(Create("/record", b""))
        calls = Calls()
        ours.watch("/record", calls)

        async def look() -> None:
            while True:
                await calls.more()
                record = await ours.read("/record")
                if record is not None and record.version == 30:
                    return

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(look())
            for version in range(30):
                await theirs.commit(Put("/record", b"", version))

    _run(site, story)


def test_all_listeners_of_a_path_are_called_and_those_of_other_paths_are_not(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        await ours.commit(Create("/a/b/c", b""))
        first, second, above, below, beside = calls = [Calls() for _ in range(5)]
        for listener, path in zip(calls, ("/a/b", "/a/b", "/a", "/a/b/c", "/a/bb"), strict=True):
            ours.watch(path, listener)
        for listener in calls:
            await listener.more()
        await theirs.commit(Put("/a/b", b"new", 0))
        await first.more()
        await second.more()
        await ours.read("/")
        assert [above.count, below.count, beside.count] == [1, 1, 1]

    _run(site, story)


def test_a_closed_watch_calls_nobody(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        closed_at_once, closed, open_ = Calls(), Calls(), Calls()
        ours.watch("/record", closed_at_once).close()
        watch = ours.watch("/record", closed)
        ours.watch("/record", open_)
        await closed.more()
        await open_.more()
        watch.close()
        watch.close()
        await theirs.commit(Create("/record", b""))
        await open_.more()
        await turns()
        assert [closed_at_once.count, closed.count] == [0, 1]

    _run(site, story)


def test_a_closed_session_calls_nobody(site: RegistrySite) -> None:
    async def story(ours: Registry, theirs: Registry) -> None:
        calls, late, other = Calls(), Calls(), Calls()
        ours.watch("/record", calls)
        theirs.watch("/record", other)
        await calls.more()
        await other.more()
        await ours.close()
        ours.watch("/record", late)
        await theirs.commit(Create("/record", b""))
        await other.more()
        assert [calls.count, late.count] == [1, 0]

    _run(site, story)
