"""A network that misbehaves when it is told to."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager

from tanist.chaos.proxy import FAIR, SILENT, Proxy, Weather


@asynccontextmanager
async def echo() -> AsyncGenerator[Proxy]:
    """A proxy in front of a server that says what it hears."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, Proxy("127.0.0.1", seed=7) as proxy:
        proxy.target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy


async def connect(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = proxy.address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ask(proxy: Proxy, data: bytes) -> bytes:
    reader, writer = await connect(proxy)
    try:
        writer.write(data)
        return await heard(reader.read(len(data)))
    finally:
        writer.transport.abort()


async def heard(answer: Awaitable[bytes]) -> bytes:
    """What came, or nothing if the connection was cut."""
    try:
        return await answer
    except ConnectionError:
        return b""


def test_in_fair_weather_everything_passes() -> None:
    async def play() -> None:
        async with echo() as proxy:
            assert await ask(proxy, b"hello") == b"hello"

    asyncio.run(play())


def test_silence_keeps_connections_and_passes_nothing_until_it_ends() -> None:
    async def play() -> None:
        async with echo() as proxy:
            proxy.become(SILENT)
            reader, writer = await connect(proxy)
            writer.write(b"hello")
            answer = asyncio.ensure_future(reader.read(5))
            await asyncio.wait([answer], timeout=0.1)
            assert not answer.done()
            proxy.become(FAIR)
            # What was silent may have lost bytes, so it is cut when it could speak again.
            assert await heard(answer) == b""
            writer.transport.abort()
            assert await ask(proxy, b"again") == b"again"

    asyncio.run(play())


def test_bits_are_flipped_one_at_a_time() -> None:
    async def play() -> None:
        async with echo() as proxy:
            proxy.become(Weather(flip_chance=1.0))
            heard = await ask(proxy, b"\x00" * 64)
            # Once on the way there and once on the way back.
            assert 0 < sum(byte.bit_count() for byte in heard) <= 2

    asyncio.run(play())


def test_connections_are_reset() -> None:
    async def play() -> None:
        async with echo() as proxy:
            proxy.become(Weather(reset_chance=1.0))
            assert await ask(proxy, b"hello") == b""

    asyncio.run(play())
