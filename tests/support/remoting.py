"""What tests of remoting share: both event loops, and a peer that writes and reads bytes by hand."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import pytest
import uvloop

from tanist.protocol import Command, FrameDecoder, encode_command
from tanist.remoting import Connection, Handler, RemotingServer, ServerLimits, TlsSettings

T = TypeVar("T")
Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]

ECHO, FAIL, PARK = 1, 2, 3
DEADLINE_S = 10.0


def _run_on_asyncio(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner() as runner:
        runner.run(scenario)


def _run_on_uvloop(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario)


on_both_loops = pytest.mark.parametrize("run", [_run_on_asyncio, _run_on_uvloop], ids=["asyncio", "uvloop"])


async def in_time(work: Awaitable[T]) -> T:
    """Await what has to happen: a test that hangs says where."""
    async with asyncio.timeout(DEADLINE_S):
        return await work


def echo(request: Command, _connection: Connection) -> Command:
    return request.reply(body=bytes(request.body))


def fail(request: Command, _connection: Connection) -> Command:
    raise RuntimeError(f"cannot do {request.code}")


HANDLERS: dict[int, Handler] = {ECHO: echo, FAIL: fail}


@asynccontextmanager
async def serving(
    handlers: Mapping[int, Handler] = HANDLERS,
    *,
    limits: ServerLimits | None = None,
    tls: TlsSettings | None = None,
    on_open: Callable[[Connection], None] | None = None,
    on_close: Callable[[Connection], None] | None = None,
) -> AsyncGenerator[RemotingServer]:
    server = RemotingServer(handlers, limits=limits, tls=tls, on_open=on_open, on_close=on_close)
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await in_time(server.close(grace_s=1))


class Peer:
    """The other end of a connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = FrameDecoder()
        self._commands: list[Command] = []

    @classmethod
    async def connect(cls, port: int, *, tls: ssl.SSLContext | None = None) -> "Peer":
        return cls(*await in_time(asyncio.open_connection("127.0.0.1", port, ssl=tls)))

    @property
    def address(self) -> str:
        host, port = self._writer.get_extra_info("sockname")
        return f"{host}:{port}"

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def send(self, *commands: Command) -> None:
        self._writer.write(b"".join(map(encode_command, commands)))

    async def receive(self) -> Command:
        """The next Command; fails if the connection ends instead."""
        while not self._commands:
            data = await in_time(self._reader.read(1 << 16))
            assert data, "the connection was closed"
            self._commands += self._decoder.feed(data)
        return self._commands.pop(0)

    async def is_closed(self) -> bool:
        """Wait for the end of the connection; True if nothing came before it."""
        try:
            return await in_time(self._reader.read()) == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await in_time(self._writer.wait_closed())


@asynccontextmanager
async def peer_of(server: RemotingServer, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Peer]:
    peer = await Peer.connect(server.port, tls=tls)
    try:
        yield peer
    finally:
        await peer.close()


@asynccontextmanager
async def fake_server(answer: Callable[[Peer], Awaitable[None]]) -> AsyncGenerator[str]:
    """A server that does by hand what ``answer`` says, for each connection; yields its address."""

    async def on_peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        try:
            await answer(peer)
        finally:
            await peer.close()

    server = await asyncio.start_server(on_peer, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@contextmanager
def silent_address() -> Generator[str]:
    """An address at which connections neither open nor fail: its queue of new ones is full."""
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"
