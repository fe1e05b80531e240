"""The same bytes with nothing around them: a file, from the page cache through a socket into another file."""

import mmap
import multiprocessing
import os
import socket
import time
from pathlib import Path

_PIECE_BYTES = 1 << 20


def copy_rate(source: Path, target: Path, size_bytes: int) -> float:
    """Bytes a second with ``sendfile`` in one process and ``recv_into`` a fresh mapped file in another."""
    here, there = connected()
    sender = multiprocessing.get_context("fork").Process(target=_send, args=(there, source, size_bytes))
    with here, there:
        began_s = time.perf_counter()
        sender.start()
        there.close()
        _receive(here, target, size_bytes)
        taken_s = time.perf_counter() - began_s
    sender.join()
    target.unlink()
    return size_bytes / taken_s


def connected() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection on the loopback address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        return here, server.accept()[0]


def _send(peer: socket.socket, source: Path, size_bytes: int) -> None:
    with source.open("rb") as file:
        position = 0
        while position < size_bytes:
            sent = os.sendfile(peer.fileno(), file.fileno(), position, size_bytes - position)
            if not sent:
                raise EOFError(f"{source} ends at {position}, before {size_bytes}")
            position += sent


def _receive(peer: socket.socket, target: Path, size_bytes: int) -> None:
    with target.open("w+b") as file:
        os.posix_fallocate(file.fileno(), 0, size_bytes)
        with mmap.mmap(file.fileno(), size_bytes) as mapped, memoryview(mapped) as view:
            position = 0
            while position < size_bytes:
                with view[position : min(position + _PIECE_BYTES, size_bytes)] as piece:
                    received = peer.recv_into(piece)
                if not received:
                    raise EOFError(f"the sender ended at {position}, before {size_bytes}")
                position += received
