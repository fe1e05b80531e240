"""Records of the registry: how they come, change and go, one by one and several in one step."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.coord import Change, Check, Conflict, Create, Delete, Put, Record, Registry
from tanist.coord.changes import MAX_COMMIT_BYTES
from tests.support.registries import RegistrySite


def _run(site: RegistrySite, story: Callable[[Registry], Awaitable[None]]) -> None:
    async def run() -> None:
        async with site.sessions(1) as (registry,):
            await story(registry)

    asyncio.run(run())


async def _assert_conflict(registry: Registry, *changes: Change, at: int) -> None:
    with pytest.raises(Conflict) as raised:
        await registry.commit(*changes)
    assert raised.value.change is changes[at]


def test_a_new_record_has_its_value_and_version_0(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        assert await registry.commit(Create("/record", b"value")) == [0]
        assert await registry.read("/record") == Record(b"value", 0)

    _run(site, story)


def test_a_record_that_is_not_there_is_read_as_none_and_has_no_children(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        assert await registry.read("/nothing/at/all") is None
        assert await registry.children("/nothing/at/all") == []

    _run(site, story)


def test_every_put_counts_the_version_up(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/record", b""))
        for version in range(5):
            assert await registry.commit(Put("/record", b"%d" % version, version)) == [version + 1]
        assert await registry.read("/record") == Record(b"4", 5)

    _run(site, story)


@pytest.mark.parametrize("version", [0, 2, 100])
def test_a_put_on_another_version_changes_nothing(site: RegistrySite, version: int) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/record", b"old"), Put("/record", b"new", 0))
        await _assert_conflict(registry, Put("/record", b"newer", version), at=0)
        assert await registry.read("/record") == Record(b"new", 1)

    _run(site, story)


@pytest.mark.parametrize("change", [Put("/record", b"", 0), Delete("/record", 0), Check("/record", 0)])
def test_what_is_not_there_can_not_be_put_deleted_or_found_at_a_version(
    site: RegistrySite, change: Change
) -> None:
    async def story(registry: Registry) -> None:
        await _assert_conflict(registry, change, at=0)
        assert await registry.read("/record") is None

    _run(site, story)


def test_a_record_can_not_be_created_twice(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/record", b"first"))
        await _assert_conflict(registry, Create("/record", b"second"), at=0)
        assert await registry.read("/record") == Record(b"first", 0)

    _run(site, story)


def test_missing_parents_are_made_with_empty_values(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/a/b/c", b"value"), Create("/a/d/e", b""), Create("/a/b/f", b""))
        assert await registry.read("/a") == await registry.read("/a/b") == Record(b"", 0)
        assert await registry.children("/a") == ["b", "d"]
        assert await registry.children("/a/b") == ["c", "f"]

    _run(site, story)


def test_a_deleted_record_is_gone_and_begins_anew_at_version_0(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/record", b""), Put("/record", b"", 0))
        assert await registry.commit(Delete("/record", 1)) == [1]
        assert await registry.read("/record") is None
        assert await registry.commit(Create("/record", b"again")) == [0]
        assert await registry.read("/record") == Record(b"again", 0)

    _run(site, story)


def test_a_record_with_another_version_or_with_children_is_not_deleted(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/parent/child", b""))
        await _assert_conflict(registry, Delete("/parent/child", 1), at=0)
        await _assert_conflict(registry, Delete("/parent", 0), at=0)
        assert await registry.children("/parent") == ["child"]
        assert await registry.commit(Delete("/parent/child", 0), Delete("/parent", 0)) == [0, 0]
        assert await registry.read("/parent") is None

    _run(site, story)


def test_a_check_holds_at_the_right_version_alone_and_leaves_it(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/record", b"value"), Put("/record", b"value", 0))
        assert await registry.commit(Check("/record", 1)) == [1]
        await _assert_conflict(registry, Check("/record", 0), at=0)
        await _assert_conflict(registry, Check("/record", None), at=0)
        assert await registry.read("/record") == Record(b"value", 1)

    _run(site, story)


@pytest.mark.parametrize("path", ["/absent", "/not/even/a/parent"])
def test_a_check_that_nothing_is_there_leaves_nothing_there(site: RegistrySite, path: str) -> None:
    async def story(registry: Registry) -> None:
        assert await registry.commit(Check(path, None), Create("/other", b"")) == [-1, 0]
        assert await registry.read(path) is None

    _run(site, story)


def test_changes_are_made_in_their_order_and_each_has_its_version(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/kept", b""), Create("/going", b""))
        assert await registry.commit(
            Put("/kept", b"1", 0),
            Create("/new", b""),
            Create("/new/child", b""),
            Check("/absent", None),
            Put("/kept", b"2", 1),
            Delete("/going", 0),
            Check("/kept", 2),
            Create("/going", b"back"),
        ) == [1, 0, 0, -1, 2, 0, 2, 0]
        assert await registry.read("/kept") == Record(b"2", 2)
        assert await registry.read("/going") == Record(b"back", 0)
        assert await registry.children("/") == ["going", "kept", "new"]

    _run(site, story)


@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "wrong", [Put("/there", b"", 7), Create("/there", b""), Check("/there", None), Delete("/absent", 0)]
)
def test_one_condition_that_fails_is_named_and_keeps_all_changes_from_being_made(
    site: RegistrySite, wrong: Change, at: int
) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/there", b"old"), Create("/going", b""))
        changes: list[Change] = [Create("/new", b""), Delete("/going", 0), Check("/never", None)]
        changes.insert(at, wrong)
        await _assert_conflict(registry, *changes, Put("/there", b"new", 0), at=at)
        assert await registry.read("/there") == Record(b"old", 0)
        assert await registry.children("/") == ["going", "there"]

    _run(site, story)


@pytest.mark.parametrize("value", [b"", bytes(range(256)), b"x" * (200 << 10)])
def test_values_are_any_bytes(site: RegistrySite, value: bytes) -> None:
    async def story(registry: Registry) -> None:
        await registry.commit(Create("/created", value), Create("/put", b"-"), Put("/put", value, 0))
        assert await registry.read("/created") == Record(value, 0)
        assert await registry.read("/put") == Record(value, 1)

    _run(site, story)


def test_names_may_be_of_any_script_and_are_sorted(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        names = ["b", "a", "ä", "主", "a b", "A", "a-1"]
        await registry.commit(*(Create(f"/names/{name}", b"") for name in names))
        assert await registry.children("/names") == sorted(names)

    _run(site, story)


@pytest.mark.parametrize(
    "path", ["", "record", "/record/", "//record", "/a//b", "/a/./b", "/..", "/a\0b", "/\n"]
)
def test_a_path_that_can_not_be_one_is_refused_everywhere(site: RegistrySite, path: str) -> None:
    async def story(registry: Registry) -> None:
        for change in (Create(path, b""), Put(path, b"", 0), Delete(path, 0), Check(path, None)):
            with pytest.raises(ValueError, match="path="):
                await registry.commit(Create("/fine", b""), change)
        for look in (registry.read, registry.children):
            with pytest.raises(ValueError, match="path="):
                await look(path)
        with pytest.raises(ValueError, match="path="):
            registry.watch(path, lambda: None)
        assert await registry.read("/fine") is None

    _run(site, story)


def test_the_root_is_always_there_and_never_changes(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        assert await registry.children("/") == []
        assert await registry.read("/") == Record(b"", 0)
        await registry.commit(Check("/", 0), Create("/record", b""))
        for change in (Create("/", b""), Put("/", b"", 0), Delete("/", 0), Check("/", None)):
            with pytest.raises(ValueError, match="the root is always there"):
                await registry.commit(change)
        assert await registry.children("/") == ["record"]

    _run(site, story)


def test_a_commit_of_nothing_and_one_of_too_much_are_refused(site: RegistrySite) -> None:
    async def story(registry: Registry) -> None:
        with pytest.raises(ValueError, match="at least one change"):
            await registry.commit()
        half = bytes(MAX_COMMIT_BYTES // 2)
        await registry.commit(Create("/first", half), Create("/second", half))
        with pytest.raises(ValueError, match=f"hold {MAX_COMMIT_BYTES + 1} bytes"):
            await registry.commit(Put("/first", half, 0), Put("/second", half + b"x", 0))
        assert await registry.read("/first") == Record(half, 0)

    _run(site, story)
