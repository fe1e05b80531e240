"""Strangers who say to a port what no peer would say, and hang on or go away without reading the answer."""

import asyncio
import random
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress

_LENGTHS = struct.Struct(">ii")
_OFFSET = struct.Struct(">q")
# code, language, version, opaque, flag, size of the remark, size of the ext fields
_BINARY_HEADER = struct.Struct(">hbhiiii")
_LISTEN_S = 0.05
_READ_BYTES = 1 << 16


def _framed(header: bytes, body: bytes = b"", encoding: int = 0) -> bytes:
    return _LENGTHS.pack(4 + len(header) + len(body), encoding << 24 | len(header)) + header + body


def _asking(code: int, *, fields: bytes = b"{}", body: bytes = b"") -> bytes:
    return _framed(b'{"code":%d,"opaque":1,"extFields":%b}' % (code, fields), body)


def _many_fields(count: int) -> bytes:
    return b"{" + b",".join(b'"k%d":"v"' % number for number in range(count)) + b"}"


BAD_FRAMES: Mapping[str, bytes] = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100c8010000c403039f") + bytes(200),
    "random bytes": random.Random(7).randbytes(4096),  # noqa: S311 - the same ones every time.
    "eight bytes of ones": b"\xff" * 8,
    "offset 0": _OFFSET.pack(0),
    "a length of 2^31-1": bytes.fromhex("7fffffff00000000"),
    "a length of -2^31": bytes.fromhex("8000000000000000"),
    "a length of 16 MiB and one byte": bytes.fromhex("0100000100000000"),
    "a frame over the limit by one byte": bytes.fromhex("00fffffd00000000"),
    "a header longer than its frame": bytes.fromhex("0000000400000001"),
    "a header of 16 MiB in a small frame": bytes.fromhex("0000000a00ffffff") + bytes(6),
    "an encoding nobody knows": _framed(b"{}", encoding=7),
    "a header that is no JSON": _framed(b"{code:1"),
    "a header that is no object": _framed(b"[1,2]"),
    "a header that is not UTF-8": _framed(b'{"remark":"\xff\xfe"}'),
    "a lone surrogate": _framed(b'{"code":105,"opaque":1,"remark":"\\ud800"}'),
    "deep JSON": _framed(b'{"extFields":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001),
    "deep JSON, never closed": _framed(b"[" * 1_000_000),
    "a number of a million digits": _framed(b'{"code":' + b"1" * 1_000_000 + b"}"),
    "a code of 100 bits": _framed(b'{"code":%d,"opaque":1}' % (1 << 100)),
    "NaN": _framed(b'{"code":NaN,"opaque":Infinity}'),
    "10,000 fields": _asking(30, fields=_many_fields(10_000)),
    "100,000 fields": _asking(105, fields=_many_fields(100_000)),
    "10,000 binary fields": _framed(
        _BINARY_HEADER.pack(30, 0, 0, 1, 0, 0, 10_000 * 11)
        + b"".join(b"\0\4%04d\0\0\0\1v" % number for number in range(10_000)),
        encoding=1,
    ),
    "half a binary header": _framed(bytes(5), encoding=1),
    "a binary header whose remark is longer than it": _framed(bytes(17) + b"\x7f\xff\xff\xff", encoding=1),
}
"""What is no frame of remoting: there whoever says it is hung up on."""

SAYINGS: Mapping[str, bytes] = BAD_FRAMES | {
    "nothing": b"",
    "one byte": b"\0",
    "offset 2^40": _OFFSET.pack(1 << 40),
    "a length of 1": bytes.fromhex("0000000100"),
    "a length of 3": bytes.fromhex("00000003000000"),
    "half a frame": _asking(105)[:-3],
    "the same key twice": _framed(b'{"code":105,"code":10,"opaque":1,"opaque":2}'),
    "a code that nobody has": _asking(4711),
    "a topic that is a path": _asking(105, fields=b'{"topic":"../../etc"}'),
    "a queue that can not be": _asking(30, fields=b'{"topic":"T","queueId":"-1"}'),
    "a heartbeat that is no JSON": _asking(34, body=b"\xff\xfe"),
    "a heartbeat of deep JSON": _asking(34, body=b'{"a":' * 100_000),
    "a broker that registers random bytes": _asking(103, body=b"\x78\x9c" + bytes(64)),
    "a transfer before its handshake": struct.pack(">iq", 2, 1 << 30),
    "a state of no link": struct.pack(">iq", 99, 0),
    "HTTP of no method": b"\x00\x01\x02 / HTTP/9.9\r\n\r\n",
    "HTTP whose headers never end": b"GET / HTTP/1.1\r\n" + b"X-Junk: junk\r\n" * 10_000,
    "HTTP with a header of a megabyte": b"GET / HTTP/1.1\r\nX-Junk: " + b"j" * (1 << 20) + b"\r\n\r\n",
    "HTTP with a body of -1 bytes": b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "HTTP with a body of 2^63 bytes": (
        b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n" + bytes(64)
    ),
    "HTTP with two lengths": (
        b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    ),
    "HTTP with deep JSON": (
        b"POST /api/v1/topics HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 500000\r\n\r\n" + b'{"a":' * 100_000
    ),
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
