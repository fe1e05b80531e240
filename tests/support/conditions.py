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


async def turns(count: int = 20) -> None:
    """Let the event loop turn: whatever was going to happen without waiting has happened then."""
    for _ in range(count):
        await asyncio.sleep(0)
