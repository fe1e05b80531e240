"""The same question to many, at once but never too many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from tanist.errors import MQError

_AT_ONCE = 32

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_I = TypeVar("_I")


async def in_parallel(
    items: Iterable[_I], do: Callable[[_I], Awaitable[_T]], *, at_once: int = _AT_ONCE
) -> list[_T]:
    """The same for each item, so many at once. The first error ends the others."""
    slots = asyncio.Semaphore(at_once)

    async def do_one(item: _I) -> _T:
        async with slots:
            return await do(item)

    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(do_one(item)) for item in items]
    except BaseExceptionGroup as group:
        # Several may fail at the same moment, mostly for the same reason: one speaks for them.
        raise group.exceptions[0] from None
    return [task.result() for task in running]


class Told(NamedTuple, Generic[_T_co]):
    """What one of several brokers answered, or why it did not."""

    address: str
    value: _T_co | None
    failure: MQError | None = None


async def ask_each(addresses: Sequence[str], ask: Callable[[str], Awaitable[_T]]) -> list[Told[_T]]:
    """Ask all of them; that one does not answer keeps nobody from hearing the others."""

    async def ask_one(address: str) -> Told[_T]:
        try:
            return Told(address, await ask(address))
        except MQError as error:
            return Told(address, None, error)

    return await in_parallel(addresses, ask_one)
