"""Tasks that last as long as what they are for: told and tried again when the disk or the like fails them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from tanist.errors import MQError

_log = logging.getLogger(__name__)

_AFTER_FAILURE_S = 1.0

StartSave = Callable[[], Callable[[], None] | None]
"""Begins to save something; the disk's part of it, for another thread, or None if nothing has changed."""
_T = TypeVar("_T")


@asynccontextmanager
async def running(
    tasks: asyncio.TaskGroup, chores: Mapping[str, Callable[[], Awaitable[None]]]
) -> AsyncGenerator[None]:
    """Have all of these run, by name, while the block lasts. At its end none of them runs any more."""
    started = [tasks.create_task(lasting(name, run)) for name, run in chores.items()]
    try:
        yield
    finally:
        for task in started:
            task.cancel()
        if started:
            await asyncio.wait(started)


async def lasting(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run what runs until it is cancelled, and run it again when the disk or the like made it fail."""
    task = asyncio.current_task()
    assert task is not None
    told = ""
    while True:
        try:
            await run()
        except (MQError, OSError) as error:
            if task.cancelling():
                raise
            # A disk that failed once fails every second: told once, it is known.
            if str(error) != told:
                told = str(error)
                _log.error("task failed and is tried again task=%s reason=%s", name, told)
        await asyncio.sleep(_AFTER_FAILURE_S)


async def saving(start_save: StartSave, interval_ms: Callable[[], int]) -> None:
    """Save what has changed every so often, the disk's part off the event loop."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="saving") as executor:
        while True:
            await asyncio.sleep(interval_ms() / 1000)
            if finish := start_save():
                await loop.run_in_executor(executor, finish)


@contextmanager
def listed(listeners: list[_T], listener: _T) -> Generator[None]:
    """Have it among the listeners while the block lasts."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)
