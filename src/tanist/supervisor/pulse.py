"""The pulse of a supervised broker: a byte down a pipe, as long as its event loop turns."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tanist.supervisor.forked import WATCHDOG_FD

_BEAT_S = 0.1


@asynccontextmanager
async def pulse() -> AsyncGenerator[None]:
    """Let the supervisor see within this block that the event loop turns; without one, do nothing.

    The end of the block ends the watch: a broker that stops may be busy for longer than one that serves.
    """
    number = os.environ.pop(WATCHDOG_FD, None)
    if number is None:
        yield
        return
    pipe = int(number)
    try:
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(_beat(pipe))
            try:
                yield
            finally:
                beating.cancel()
    finally:
        os.close(pipe)


async def _beat(pipe: int) -> None:
    while True:
        # It is full, or closed, only if the supervisor is stopped or gone: nobody looks then.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(pipe, b".")
        await asyncio.sleep(_BEAT_S)
