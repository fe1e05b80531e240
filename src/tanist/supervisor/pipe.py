"""Passes the bytes of one connection on to another, both ways, as they are.

Each way reads a chunk only when the one before has left: a peer that takes nothing is a peer that nothing is
read for, and no more than two chunks are ever kept.
"""

import asyncio
import socket
from contextlib import suppress

CHUNK_BYTES = 16 << 10


async def connect(address: str, *, port_distance: int = 0) -> socket.socket:
    """A connection to an IP address with its port, or to the port so far below it. Raises OSError."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        prepare(connection)
        await asyncio.get_running_loop().sock_connect(connection, (host, int(port) - port_distance))
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(connection: socket.socket) -> None:
    """Have what is written leave at once, and nothing block."""
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def pipe(caller: socket.socket, callee: socket.socket, said: bytes) -> None:
    """Pass on what the caller has said already, then whatever either says, until one of them ends."""
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(callee, said)
        async with asyncio.TaskGroup() as ways:
            both = [ways.create_task(_pass_on(*way)) for way in ((caller, callee), (callee, caller))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for way in both:
                way.cancel()


async def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while data := await loop.sock_recv(source, CHUNK_BYTES):
            await loop.sock_sendall(sink, data)
