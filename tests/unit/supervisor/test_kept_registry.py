import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tanist.coord import Create, Put, Registry
from tanist.errors import ConfigError
from tanist.supervisor.kept_registry import KeptRegistry
from tests.support.conditions import until
from tests.support.kept_registries import KeptSite, kept_site


def run(directory: Path, scenario: Callable[[KeptSite], Awaitable[None]]) -> None:
    async def play() -> None:
        async with kept_site(directory) as site:
            await scenario(site)

    asyncio.run(play())


def test_a_session_that_is_lost_is_opened_anew(tmp_path: Path) -> None:
    async def scenario(site: KeptSite) -> None:
        site.lose()
        await until(lambda: len(site.held) > 1)
        assert await site.kept.opened() is site.held[1]

    run(tmp_path, scenario)


def test_a_registry_that_is_away_is_tried_until_it_is_back_and_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: KeptSite) -> None:
        site.is_away = True
        site.lose()
        await until(lambda: site.refusals > 2)
        site.is_away = False
        assert await site.kept.opened() is site.held[1]
        assert caplog.text.count("registry not reached error=it is away") == 1

    run(tmp_path, scenario)


def test_a_setting_that_names_no_registry_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def refuse() -> AsyncGenerator[Registry]:
        raise ConfigError("coordinator", "zk://", "something else")
        yield

    asyncio.run(KeptRegistry(refuse).keep())
    assert "registry can not be used" in caplog.text


def test_a_path_is_followed_through_changes_failures_and_sessions(tmp_path: Path) -> None:
    async def scenario(site: KeptSite) -> None:
        seen: list[bytes | None] = []
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(
                site.kept.follow("/a", lambda found: seen.append(found.value if found is not None else None))
            )
            await until(lambda: seen == [None])
            await site.registry.commit(Create("/a", b"0"))
            await until(lambda: seen[-1] == b"0")

            site.held[-1].is_away = True
            await site.registry.commit(Put("/a", b"1", 0))
            site.held[-1].is_away = False
            await until(lambda: seen[-1] == b"1")

            site.lose()
            await site.registry.commit(Put("/a", b"2", 1))
            await until(lambda: seen[-1] == b"2")
            following.cancel()

    run(tmp_path, scenario)
