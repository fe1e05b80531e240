"""Connections on a virtual clock on which a test holds single frames back.

wire = DelayedWire()
wire.hold(Said(RequestCode.PULL_MESSAGE, is_answer=True), delay_s=4.0)
run_virtually(scenario(), wire)

As on a connection of TCP, what is said after a frame that is held arrives after it.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tanist.protocol import Command, FrameDecoder
from tests.support.virtual_time import VirtualLoop

_LENGTH_BYTES = 4
_BEHIND_S = 1e-6
"""What is due at the same time on one line is due one after the other."""


@dataclass(frozen=True, slots=True)
class Said:
    """A kind of frame: a request, or the answer to one."""

    code: int
    is_answer: bool = False
    by_server: bool = False
    """Whether the request is a server's, to a client of its."""


class DelayedWire:
    """Makes event loops whose connections it holds frames back on."""

    def __init__(self) -> None:
        self._delays_s: dict[Said, float] = {}
        self.held: list[Said] = []
        """What was held back so far."""

    def hold(self, said: Said, delay_s: float) -> None:
        """Hold back the next frame of this kind, on whichever connection it comes."""
        self._delays_s[said] = delay_s

    def take_delay(self, said: Said) -> float:
        """How long this frame is held back."""
        delay_s = self._delays_s.pop(said, 0.0)
        if delay_s:
            self.held.append(said)
        return delay_s

    def __call__(self) -> asyncio.AbstractEventLoop:
        return _WiredLoop(self)


class _WiredLoop(VirtualLoop):
    def __init__(self, wire: DelayedWire) -> None:
        super().__init__()
        self._wire = wire

    async def create_connection(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, protocol_factory: Callable[[], asyncio.Protocol], *args: Any, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        def make() -> _Between:
            return _Between(protocol_factory(), self._wire, self)

        transport, between = await super().create_connection(make, *args, **options)
        return transport, between.inner


class _Line:
    """One way of one connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._free_s = 0.0
        self._partial = b""
        self._decoder = FrameDecoder()

    def frames(self, data: bytes) -> Iterator[tuple[bytes, Command]]:
        """The frames that are whole now, as bytes and as what they mean."""
        self._partial += data
        while len(self._partial) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(self._partial[:_LENGTH_BYTES], "big")
            if len(self._partial) < end:
                return
            frame, self._partial = self._partial[:end], self._partial[end:]
            (command,) = self._decoder.feed(frame)
            yield frame, command

    def say(self, delay_s: float, arrive: Callable[..., None], *what: object) -> None:
        now_s = self._loop.time()
        if not delay_s and self._free_s <= now_s:
            arrive(*what)
            return
        self._free_s = max(self._free_s + _BEHIND_S, now_s + delay_s)
        self._loop.call_at(self._free_s, arrive, *what)


class _Between(asyncio.Protocol):
    """Stands between a client's connection and its socket."""

    def __init__(self, inner: asyncio.Protocol, wire: DelayedWire, loop: asyncio.AbstractEventLoop) -> None:
        self.inner = inner
        self._wire = wire
        self._in, self._out = _Line(loop), _Line(loop)
        self._asked: dict[tuple[bool, int], int] = {}
        """The codes of requests that wait for their answers, ours and the server's."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.inner.connection_made(_SlowTransport(transport, self.write, self._out))

    def connection_lost(self, exc: Exception | None) -> None:
        self._in.say(0.0, self.inner.connection_lost, exc)

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def data_received(self, data: bytes) -> None:
        for frame, command in self._in.frames(data):
            self._in.say(self._delay_s(command, by_server=True), self.inner.data_received, frame)

    def write(self, data: bytes) -> None:
        for frame, command in self._out.frames(data):
            self._out.say(self._delay_s(command, by_server=False), self._transport.write, frame)

    def _delay_s(self, command: Command, *, by_server: bool) -> float:
        if command.is_response:
            code = self._asked.pop((not by_server, command.opaque), -1)
            return self._wire.take_delay(Said(code, is_answer=True, by_server=not by_server))
        if not command.is_one_way:
            self._asked[by_server, command.opaque] = command.code
        return self._wire.take_delay(Said(command.code, by_server=by_server))


class _SlowTransport(asyncio.Transport):
    """A client's transport, without its socket: all that is written goes through ``write``."""

    def __init__(self, inner: asyncio.Transport, write: Callable[[bytes], None], line: _Line) -> None:
        super().__init__()
        self._inner = inner
        self._write = write
        self._line = line

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default if name == "socket" else self._inner.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._write(bytes(data))

    def close(self) -> None:
        self._line.say(0.0, self._inner.close)

    def abort(self) -> None:
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._inner.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._inner.set_write_buffer_limits(high, low)
