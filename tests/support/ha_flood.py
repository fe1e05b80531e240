"""Thousands of calls at a replication port, many of them at once."""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from tanist.protocol.ha_hello import GREETING

AT_ONCE: Final = 48
"""Fewer than may be about to prove themselves: none is closed because others come."""
_PATIENCE_S: Final = 30.0
_READ_BYTES: Final = 1 << 16
# What a hello says of its own length, behind its magic, version, kind and authentication.
_HELLO_BYTES = struct.Struct(">7xH")


def turns(session: bytes, end: int) -> list[bytes]:
    """The first ``end`` bytes of what a slave of ours said, in the pieces between which it was answered."""
    (hello_end,) = _HELLO_BYTES.unpack_from(session)
    said = session[:end]
    return [
        piece for piece in (said[: len(GREETING)], said[len(GREETING) : hello_end], said[hello_end:]) if piece
    ]


def call_all(address: str, calls: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Make all calls and wait until each is closed by the other side; what each heard.

    The pieces of a call follow each other when the one before was answered.
    """

    async def work(rest: Iterator[Sequence[bytes]], heard: list[bytes]) -> None:
        for pieces in rest:
            async with asyncio.timeout(_PATIENCE_S):
                heard.append(await _call(address, pieces))

    async def play() -> list[bytes]:
        heard: list[bytes] = []
        rest = iter(calls)
        async with asyncio.TaskGroup() as callers:
            for _ in range(AT_ONCE):
                callers.create_task(work(rest, heard))
        return heard

    return asyncio.run(play())


async def _call(address: str, pieces: Sequence[bytes]) -> bytes:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    heard = b""
    try:
        for piece in pieces:
            writer.write(piece)
            heard += await reader.read(_READ_BYTES)
        while data := await reader.read(_READ_BYTES):
            heard += data
    except ConnectionError:
        # Closed while it still spoke.
        pass
    finally:
        writer.transport.abort()
    return heard
