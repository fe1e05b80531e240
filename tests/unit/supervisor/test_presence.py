import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tanist.coord import Create, Delete, Record
from tanist.model.reading import alive_path
from tanist.supervisor.presence import end_presence
from tests.support.kept_registries import KeptSite, kept_site

PATH = alive_path("a", "127.0.0.1:10911")


def run(directory: Path, scenario: Callable[[KeptSite], Awaitable[None]]) -> None:
    async def play() -> None:
        async with kept_site(directory) as site:
            await scenario(site)

    asyncio.run(play())


def test_the_record_of_the_start_that_ended_is_removed_though_its_session_lives(tmp_path: Path) -> None:
    async def scenario(site: KeptSite) -> None:
        await site.registry.commit(Create(PATH, b'{"token":"mine"}', is_ephemeral=True))
        await end_presence(site.kept, PATH, "mine")
        assert await site.registry.read(PATH) is None

    run(tmp_path, scenario)


@pytest.mark.parametrize("value", [b'{"token":"another"}', b"{}", b"no JSON"])
def test_the_record_of_another_start_stays(tmp_path: Path, value: bytes) -> None:
    async def scenario(site: KeptSite) -> None:
        await site.registry.commit(Create(PATH, value, is_ephemeral=True))
        await end_presence(site.kept, PATH, "mine")
        assert await site.registry.read(PATH) == Record(value, 0)

    run(tmp_path, scenario)


def test_a_broker_that_left_by_itself_leaves_nothing_to_do(tmp_path: Path) -> None:
    async def scenario(site: KeptSite) -> None:
        await end_presence(site.kept, PATH, "mine")

    run(tmp_path, scenario)


def test_a_record_that_changes_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    async def scenario(site: KeptSite) -> None:
        await site.registry.commit(Create(PATH, b'{"token":"mine"}'))
        held, read = site.held[-1], site.held[-1].read

        async def read_too_early(path: str) -> Record | None:
            found = await read(path)
            if found is not None:
                await site.registry.commit(Delete(PATH, 0))
            return found

        held.read = read_too_early
        await end_presence(site.kept, PATH, "mine")
        assert await site.registry.read(PATH) is None

    run(tmp_path, scenario)


def test_a_registry_that_is_away_is_asked_for_a_second_at_most(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: KeptSite) -> None:
        await site.registry.commit(Create(PATH, b'{"token":"mine"}'))
        site.held[-1].is_away = True
        async with asyncio.timeout(20):
            await end_presence(site.kept, PATH, "mine")
        assert f"presence not ended path={PATH}" in caplog.text

    run(tmp_path, scenario)
