"""Strangers who say to a port what no peer would say, and hang on or go away without reading the answer."""

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress

_LENGTHS = struct.Struct(">ii")
_OFFSET = struct.Struct(">q")
_LISTEN_S = 0.05
_READ_BYTES = 1 << 16


def _framed(header: bytes, encoding: int = 0) -> bytes:
    return _LENGTHS.pack(4 + len(header), encoding << 24 | len(header)) + header


SAYINGS: dict[str, bytes] = {
    "nothing": b"",
    "one byte": b"\0",
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100c8010000c403039f") + bytes(200),
    "eight bytes of ones": b"\xff" * 8,
    "offset 2^40": _OFFSET.pack(1 << 40),
    "offset -1": _OFFSET.pack(-1),
    "offset 0": _OFFSET.pack(0),
    "a length of 1": bytes.fromhex("0000000100"),
    "a length of 3": bytes.fromhex("00000003000000"),
    "a length of 2^31-1": bytes.fromhex("7fffffff00000000"),
    "a length of -2^31": bytes.fromhex("8000000000000000"),
    "a length of 16 MiB and one byte": bytes.fromhex("0100000100000000"),
    "a header longer than its frame": bytes.fromhex("0000000400000001"),
    "an encoding nobody knows": _framed(b"{}", encoding=7),
    "deep JSON": _framed(b'{"extFields":' + b'{"a":' * 100_000),
    "a number of a million digits": _framed(b'{"code":' + b"1" * 1_000_000 + b"}"),
    "NaN": _framed(b'{"code":NaN,"opaque":Infinity}'),
    "the same key twice": _framed(b'{"code":105,"code":10,"opaque":1,"opaque":2}'),
    "a lone surrogate": _framed(b'{"code":105,"opaque":1,"remark":"\\ud800"}'),
    "many fields": _framed(
        b'{"code":105,"opaque":1,"extFields":{'
        + b",".join(b'"k%d":"v"' % number for number in range(100_000))
        + b"}}"
    ),
    "a topic that is a path": _framed(b'{"code":105,"opaque":1,"extFields":{"topic":"../../etc"}}'),
    "a queue that can not be": _framed(b'{"code":30,"opaque":1,"extFields":{"topic":"T","queueId":"-1"}}'),
    "half a binary header": _framed(bytes(5), encoding=1),
    "a transfer before its handshake": struct.pack(">iq", 2, 1 << 30),
    "a state of no link": struct.pack(">iq", 99, 0),
}


async def disturb(addresses: Sequence[str]) -> None:
    """Say everything to all of them, one thing after another, until cancelled."""
    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(_disturb_one(address))


async def _disturb_one(address: str) -> None:
    while True:
        for said in SAYINGS.values():
            # Being refused is what a stranger is there for.
            with suppress(OSError):
                await _say(address, said)


async def _say(address: str, said: bytes) -> None:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(said)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTEN_S):
                await reader.read(_READ_BYTES)
    finally:
        writer.transport.abort()
