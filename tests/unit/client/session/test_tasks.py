import asyncio
import logging

import pytest

from tanist.client.session.tasks import OwnedTasks


def test_closing_ends_all_tasks_also_those_that_begin_meanwhile() -> None:
    ended: list[str] = []

    async def scenario() -> None:
        tasks = OwnedTasks()

        async def child() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("child")

        async def parent() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                tasks.start(child(), "child")
                await asyncio.sleep(0)
                ended.append("parent")

        tasks.start(parent(), "parent")
        await asyncio.sleep(0)
        await tasks.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    assert sorted(ended) == ["child", "parent"]


def test_a_task_that_fails_is_told_in_the_log_and_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        tasks = OwnedTasks()

        async def fail() -> None:
            raise RuntimeError("broken")

        lasting = tasks.start(asyncio.Event().wait(), "lasting")
        failing = tasks.start(fail(), "failing")
        await asyncio.wait([failing])
        await asyncio.sleep(0)
        assert not lasting.done()
        await tasks.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "client task failed task=failing" in caplog.text


def test_nothing_begins_any_more_once_all_is_closed() -> None:
    begun: list[str] = []

    async def work() -> None:
        begun.append("late")

    async def scenario() -> None:
        tasks = OwnedTasks()
        await tasks.close()
        late = tasks.start(work(), "late")
        await asyncio.wait([late])
        assert late.cancelled()

    asyncio.run(scenario())
    assert begun == []
