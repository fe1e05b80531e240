"""Strangers at many ports at once: what they say, and how slow, silent or deaf they are."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from tanist.protocol import Command, RequestCode, encode_command
from tanist.protocol.headers.nameserver import GetRouteRequest

ROUTE: Final = encode_command(Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic="T")))
"""A good question, where it is one."""
_AT_ONCE = 8
"""So many say something to a port at a time."""
_LISTEN_S = 0.2
_READ_BYTES = 1 << 16
_SLOW_BYTES = 3
_UNREAD_COUNT = 2_000


async def harass(addresses: Iterable[str], sayings: Iterable[bytes]) -> None:
    """Say everything to every port once, and be slow, silent and deaf there meanwhile."""
    async with asyncio.TaskGroup() as strangers:
        for address in addresses:
            places = asyncio.Semaphore(_AT_ONCE)
            for said in sayings:
                strangers.create_task(_say(address, said, places))
            strangers.create_task(_say_slowly(address, ROUTE[:_SLOW_BYTES]))
            strangers.create_task(_fall_silent(address, ROUTE[:-1]))
            strangers.create_task(_fall_silent(address, ROUTE * _UNREAD_COUNT))


async def _say(address: str, said: bytes, places: asyncio.Semaphore) -> None:
    async with places, _calling(address) as (reader, writer):
        writer.write(said)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTEN_S):
                while await reader.read(_READ_BYTES):
                    pass


async def _say_slowly(address: str, said: bytes) -> None:
    """A byte a second."""
    async with _calling(address) as (_, writer):
        for byte in said:
            writer.write(bytes([byte]))
            await asyncio.sleep(1.0)


async def _fall_silent(address: str, said: bytes) -> None:
    """Hang on without reading, for as long as others are slow. What comes waits on the way."""
    async with _calling(address) as (_, writer):
        writer.write(said)
        await asyncio.sleep(_SLOW_BYTES)


@asynccontextmanager
async def _calling(address: str) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that goes without a word. That the other side ends it is what a stranger may expect."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        with suppress(ConnectionError):
            yield reader, writer
    finally:
        writer.transport.abort()
