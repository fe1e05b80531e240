"""A network between two processes that misbehaves when it is told to: silent, slow, cut, with flipped bits.

What is silent keeps its connections: whoever waits hears nothing, as on a network that drops packets.
"""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

_READ_BYTES = 1 << 16
_SIP_S = 0.1
"""Who drinks by the trickle takes as much at a time as comes in this time."""


@dataclass(frozen=True, slots=True)
class Weather:
    """How the network behaves."""

    is_caller_lost: bool = False
    """Whether nothing passes of what callers say."""
    is_answer_lost: bool = False
    """Whether nothing passes of what is said to them."""
    delay_s: float = 0.0
    """At most; how much of it is chance."""
    flip_chance: float = 0.0
    """That a read has one bit flipped."""
    reset_chance: float = 0.0
    """That a read ends its connection."""
    bytes_per_s: float = 0.0
    """How much passes; without it all that comes."""

    @property
    def is_whole(self) -> bool:
        """Whether both sides are heard."""
        return not (self.is_caller_lost or self.is_answer_lost)


FAIR = Weather()
SILENT = Weather(is_caller_lost=True, is_answer_lost=True)
DEAF_TARGET = Weather(is_caller_lost=True)
MUTE_TARGET = Weather(is_answer_lost=True)
FLAKY = Weather(delay_s=0.05, flip_chance=0.02, reset_chance=0.02)
TRICKLE = Weather(bytes_per_s=2000.0)


class Proxy:
    """Passes on to ``target`` what comes to ``address``. The same seed gives the same chances."""

    def __init__(self, host: str, port: int = 0, *, seed: int) -> None:
        """Without a port it is at any that is free."""
        self._host = host
        self._port = port
        self._chance = random.Random(seed)  # noqa: S311
        self._connections: set[asyncio.Task[None]] = set()
        self._callers_pass, self._answers_pass = _passing(), _passing()
        self._weather = FAIR
        self.target = ""
        """Where it leads; whoever has to know the proxy's address first may set it later."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, self._port)
        self.address = f"{self._host}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def become(self, weather: Weather) -> None:
        """Behave like this from now on. What was silent for a while may have lost bytes: it is cut then."""
        is_over = weather.is_whole and not self._weather.is_whole
        self._weather = weather
        if is_over:
            # Those who waited for the old ones wait until they are cut, and let nothing through before.
            self._callers_pass, self._answers_pass = _passing(), _passing()
            for connection in tuple(self._connections):
                connection.cancel()
        if weather.is_caller_lost:
            self._callers_pass.clear()
        if weather.is_answer_lost:
            self._answers_pass.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # To connect each side has to hear the other.
        await self._callers_pass.wait()
        await self._answers_pass.wait()
        host, _, port = self.target.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        try:
            ways = [
                asyncio.ensure_future(self._pass(reader, far_writer, self._callers_pass)),
                asyncio.ensure_future(self._pass(far_reader, writer, self._answers_pass)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            far_writer.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passing: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(self._sip_bytes):
                await passing.wait()
                weather = self._weather
                if weather.bytes_per_s:
                    await asyncio.sleep(len(data) / weather.bytes_per_s)
                if weather.delay_s:
                    await asyncio.sleep(self._chance.random() * weather.delay_s)
                if self._chance.random() < weather.reset_chance:
                    return
                if self._chance.random() < weather.flip_chance:
                    data = self._flip(data)
                writer.write(data)
                await writer.drain()

    @property
    def _sip_bytes(self) -> int:
        return int(self._weather.bytes_per_s * _SIP_S) or _READ_BYTES

    def _flip(self, data: bytes) -> bytes:
        flipped = bytearray(data)
        flipped[self._chance.randrange(len(flipped))] ^= 1 << self._chance.randrange(8)
        return bytes(flipped)


def _passing() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
