"""A network that misbehaves when it is told to."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager

import pytest

from tanist.chaos.proxy import DEAF_TARGET, FAIR, MUTE_TARGET, SILENT, Proxy, Weather
from tests.support.conditions import until


@asynccontextmanager
async def echo() -> AsyncGenerator[tuple[Proxy, list[bytes]]]:
    """A proxy in front of a server that says what it hears, and what that was."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            heard.append(data)
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, Proxy("127.0.0.1", seed=7) as proxy:
        proxy.target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy, heard


async def connect(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = proxy.address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ask(proxy: Proxy, data: bytes) -> bytes:
    reader, writer = await connect(proxy)
    try:
        writer.write(data)
        return await hear(reader.read(len(data)))
    finally:
        writer.transport.abort()


async def hear(answer: Awaitable[bytes]) -> bytes:
    """What came, or nothing if the connection was cut."""
    try:
        return await answer
    except ConnectionError:
        return b""


def test_in_fair_weather_everything_passes() -> None:
    async def play() -> None:
        async with echo() as (proxy, _):
            assert await ask(proxy, b"hello") == b"hello"

    asyncio.run(play())


def test_silence_keeps_connections_and_passes_nothing_until_it_ends() -> None:
    async def play() -> None:
        async with echo() as (proxy, _):
            proxy.become(SILENT)
            reader, writer = await connect(proxy)
            writer.write(b"hello")
            answer = asyncio.ensure_future(reader.read(5))
            await asyncio.wait([answer], timeout=0.1)
            assert not answer.done()
            proxy.become(FAIR)
            # What was silent may have lost bytes, so it is cut when it could speak again.
            assert await hear(answer) == b""
            writer.transport.abort()
            assert await ask(proxy, b"again") == b"again"

    asyncio.run(play())


@pytest.mark.parametrize(("weather", "heard"), [(MUTE_TARGET, [b"1", b"2"]), (DEAF_TARGET, [b"1"])])
def test_one_way_may_be_lost(weather: Weather, heard: list[bytes]) -> None:
    async def play() -> None:
        async with echo() as (proxy, said):
            reader, writer = await connect(proxy)
            writer.write(b"1")
            assert await reader.read(1) == b"1"
            proxy.become(weather)
            writer.write(b"2")
            answer = asyncio.ensure_future(reader.read(1))
            await until(lambda: said == heard)
            await asyncio.wait([answer], timeout=0.1)
            assert not answer.done()
            proxy.become(FAIR)
            assert await hear(answer) == b""
            writer.transport.abort()
            assert said == heard

    asyncio.run(play())


def test_bits_are_flipped_one_at_a_time() -> None:
    async def play() -> None:
        async with echo() as (proxy, _):
            proxy.become(Weather(flip_chance=1.0))
            heard = await ask(proxy, b"\x00" * 64)
            # Once on the way there and once on the way back.
            assert 0 < sum(byte.bit_count() for byte in heard) <= 2

    asyncio.run(play())


def test_connections_are_reset() -> None:
    async def play() -> None:
        async with echo() as (proxy, _):
            proxy.become(Weather(reset_chance=1.0))
            assert await ask(proxy, b"hello") == b""

    asyncio.run(play())
