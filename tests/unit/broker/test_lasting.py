import asyncio

import pytest

from tanist.broker import lasting as lasting_module
from tanist.broker.lasting import lasting
from tanist.errors import DiskFull, FlushFailed
from tests.support.conditions import until


def test_a_task_that_fails_is_told_of_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lasting_module, "_AFTER_FAILURE_S", 0)
    errors = [DiskFull("config", 5), DiskFull("config", 5), OSError(24, "too many files")]
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        if errors:
            raise errors.pop(0)
        await asyncio.sleep(60)

    async def scenario() -> None:
        task = asyncio.create_task(lasting("offsets", run))
        await until(lambda: runs == 4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert ["task=offsets" in record.getMessage() for record in caplog.records] == [True, True]


def test_a_task_that_fails_while_it_ends_does_end() -> None:
    async def run() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise FlushFailed("the last flush")

    async def scenario() -> None:
        task = asyncio.create_task(lasting("flush", run))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(FlushFailed):
            await asyncio.wait_for(task, 5)

    asyncio.run(scenario())


def test_a_mistake_of_ours_is_not_hidden() -> None:
    async def run() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(lasting("clients", run))
