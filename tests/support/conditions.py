"""Waiting on a condition instead of for a time."""

import asyncio
from collections.abc import Awaitable, Callable

_LOOK_S = 0.05


async def until(is_so: Callable[[], bool], *, timeout_s: float = 60) -> None:
    """Give way to other tasks and threads until something is so; it must be so in time."""
    async with asyncio.timeout(timeout_s):
        while True:
            if is_so():
                return
            await asyncio.sleep(0)


async def until_found(
    look: Callable[[], Awaitable[object]], wanted: object, *, timeout_s: float = 60
) -> None:
    """Look again and again until that finds what is wanted; it must in time."""
    found: object = None
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                found = await look()
                if found == wanted:
                    return
                # A moment for other processes: looking is work for them.
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise AssertionError(f"found {found!r} after {timeout_s:g} s, and wanted {wanted!r}") from None


async def turns(count: int = 20) -> None:
    """Let the event loop turn: whatever was going to happen without waiting has happened then."""
    for _ in range(count):
        await asyncio.sleep(0)
