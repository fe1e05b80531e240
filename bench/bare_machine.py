"""What this machine does with no broker in the way: loopback, memory and disk."""

import mmap
import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from bench.bare_copy import connected, copy_rate
from bench.figures import Figure, Series, percentile
from bench.turns import Allowance, take_turns

_SIDE = "the machine"
_ROUNDS = 3
_FILE_BYTES = 512 << 20
_BLOCK_BYTES = 1 << 20
_SMALL_BYTES = 1024
_SYNCS = 200
_PINGS = 10_000
_PING_BYTES = 64


def bare_figures(home: Path, allowance: Allowance) -> list[Figure]:
    size = allowance.amount(_FILE_BYTES)
    source = home / "source"
    source.write_bytes(os.urandom(_BLOCK_BYTES) * (size // _BLOCK_BYTES))
    size = source.stat().st_size
    rates: dict[str, Callable[[], float]] = {
        "sendfile to a socket, from there into a mapped file": lambda: copy_rate(
            [source], home / "copy", size
        ),
        "copying 1 KiB at a time into a mapped file": lambda: _map_rate(home / "mapped", size),
        "appending 1 MiB at a time": lambda: _append_rate(home / "appended", size),
        "appending 1 MiB at a time, fdatasync each": lambda: _append_rate(
            home / "synced", size, is_synced=True
        ),
    }
    figures = [
        Figure("bare", what, "B/s", _turns(what, measure, allowance), is_more_better=True)
        for what, measure in rates.items()
    ]
    syncs = take_turns("fdatasync", {_SIDE: lambda: _sync_times(home / "small")}, allowance, rounds=_ROUNDS)
    pings = take_turns("ping-pong", {_SIDE: lambda: _ping_times(allowance)}, allowance, rounds=_ROUNDS)
    for what, turns in (("appending 1 KiB, fdatasync", syncs), ("TCP ping-pong of 64 B", pings)):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            series = turns.series(lambda taken, share=share: percentile(taken, share) * 1e6)
            figures.append(Figure("bare", f"{what}: {name}", "µs", series))
    return figures


def _turns(what: str, measure: Callable[[], float], allowance: Allowance) -> tuple[Series, ...]:
    return take_turns(what, {_SIDE: measure}, allowance, rounds=_ROUNDS).series(float)


def _map_rate(target: Path, size: int) -> float:
    body = os.urandom(_SMALL_BYTES)
    with target.open("w+b") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        with mmap.mmap(file.fileno(), size) as mapped:
            began_s = time.perf_counter()
            for position in range(0, size - _SMALL_BYTES + 1, _SMALL_BYTES):
                mapped[position : position + _SMALL_BYTES] = body
            taken_s = time.perf_counter() - began_s
    target.unlink()
    return size / taken_s


def _append_rate(target: Path, size: int, *, is_synced: bool = False) -> float:
    block = os.urandom(_BLOCK_BYTES)
    with target.open("wb", buffering=0) as file:
        began_s = time.perf_counter()
        for _ in range(0, size, _BLOCK_BYTES):
            file.write(block)
            if is_synced:
                os.fdatasync(file.fileno())
        taken_s = time.perf_counter() - began_s
    target.unlink()
    return size / taken_s


def _sync_times(target: Path) -> list[float]:
    block = os.urandom(_SMALL_BYTES)
    taken: list[float] = []
    with target.open("wb", buffering=0) as file:
        for _ in range(_SYNCS):
            began_s = time.perf_counter()
            file.write(block)
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began_s)
    target.unlink()
    return taken


def _ping_times(allowance: Allowance) -> list[float]:
    here, there = connected()
    echo = multiprocessing.get_context("fork").Process(target=_echo, args=(there,))
    echo.start()
    there.close()
    ping = bytes(_PING_BYTES)
    taken: list[float] = []
    with here:
        here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(allowance.amount(_PINGS)):
            began_s = time.perf_counter()
            here.sendall(ping)
            here.recv(_PING_BYTES)
            taken.append(time.perf_counter() - began_s)
        here.shutdown(socket.SHUT_RDWR)
    echo.join()
    return taken


def _echo(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while ping := peer.recv(_PING_BYTES):
        peer.sendall(ping)
