"""Waiting on a condition instead of for a time."""

import asyncio
from collections.abc import Callable


async def until(is_so: Callable[[], bool], *, timeout_s: float = 10) -> None:
    """Give way to other tasks and threads until something is so; it must be so in time."""
    async with asyncio.timeout(timeout_s):
        while True:
            if is_so():
                return
            await asyncio.sleep(0)
