"""The same bytes with nothing around them: files, from the page cache through a socket into other files."""

import mmap
import multiprocessing
import os
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_PIECE_BYTES = 1 << 20


def copy_rate(sources: Sequence[Path], target: Path, size_bytes: int) -> float:
    """Bytes a second with ``sendfile`` in one process and ``recv_into`` fresh mapped files in another.

    These are as many and as large as the sources, of which so many bytes are copied, and gone afterwards.
    """
    pieces = list(_pieces(sources, size_bytes))
    here, there = connected()
    sender = multiprocessing.get_context("fork").Process(target=_send, args=(there, pieces))
    copies = [target.with_name(f"{target.name}-{source.name}") for source, _ in pieces]
    with here, there:
        began_s = time.perf_counter()
        sender.start()
        there.close()
        for copy, (_, piece_bytes) in zip(copies, pieces, strict=True):
            _receive(here, copy, piece_bytes)
        taken_s = time.perf_counter() - began_s
    sender.join()
    for copy in copies:
        copy.unlink()
    return size_bytes / taken_s


def _pieces(sources: Sequence[Path], size_bytes: int) -> Iterator[tuple[Path, int]]:
    """Of which file how many bytes."""
    for source in sources:
        if piece_bytes := min(size_bytes, source.stat().st_size):
            yield source, piece_bytes
        size_bytes -= piece_bytes
    if size_bytes:
        raise EOFError(f"the files end {size_bytes} bytes too early")


def connected() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection on the loopback address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        return here, server.accept()[0]


def _send(peer: socket.socket, pieces: Sequence[tuple[Path, int]]) -> None:
    for source, size_bytes in pieces:
        with source.open("rb") as file:
            position = 0
            while position < size_bytes:
                position += os.sendfile(peer.fileno(), file.fileno(), position, size_bytes - position)


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
