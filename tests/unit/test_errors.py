import asyncio

import pytest

from tanist.errors import StoreLocked, lone_error


async def fail(error: Exception) -> None:
    raise error


def test_a_single_error_leaves_its_group() -> None:
    async def scenario() -> None:
        with lone_error():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail(StoreLocked("in use")))

    with pytest.raises(StoreLocked, match="in use") as raised:
        asyncio.run(scenario())
    assert raised.value.__cause__ is None


def test_several_errors_stay_together() -> None:
    group = ExceptionGroup("two", [ValueError(), KeyError()])
    with pytest.raises(ExceptionGroup) as raised, lone_error():
        raise group
    assert raised.value is group
