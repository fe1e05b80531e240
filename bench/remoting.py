"""Requests a second through a loopback socket: ours beside asyncio streams and json doing the same.

Both servers answer a route-sized request with a constant. One raw socket keeps a window of requests in
flight; the server has a process of its own, so that its CPU a request can be told, which the client's
speed does not blur. A window of one is a client that waits for each answer.
Ours runs on uvloop, as our servers do, the peer on asyncio's own loop: part of the ratio is the loop's.
"""

import asyncio
import json
import multiprocessing
import socket
import statistics
import struct
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection as Pipe

import uvloop

from bench.processes import cpu_s
from bench.table import Row, interleaved
from tanist.protocol import Command, encode_command
from tanist.remoting import Connection, RemotingServer

_ROUNDS = 5
_CODE = 105
_LENGTHS = struct.Struct(">ii")
_REQUEST = Command.request(_CODE, ext={"topic": "BenchTopic", "acceptStandardJsonOnly": "true"}, opaque=7)
_FRAME = encode_command(_REQUEST)
_BODY = b'{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}'
_SECONDS = 0.7

Serve = Callable[[Pipe], Awaitable[None]]


def run() -> list[Row]:
    return [row for window in (1, 32, 256) for row in _compare(window)]


def _compare(window: int) -> list[Row]:
    micros: dict[Serve, list[float]] = {_tanist: [], _streams: []}
    ours, peer = interleaved(
        _ROUNDS, lambda: _measure(_tanist, window, micros), lambda: _measure(_streams, window, micros)
    )
    our_micros, peer_micros = statistics.median(micros[_tanist]), statistics.median(micros[_streams])
    return [
        Row(
            f"requests answered, {window} in flight",
            f"{ours / 1e3:.1f}k/s",
            f"streams + json {peer / 1e3:.1f}k/s",
            ours / peer,
            "",
            None,
        ),
        Row(
            "the server's CPU a request",
            f"{our_micros:.1f} µs",
            f"streams + json {peer_micros:.1f} µs",
            our_micros / peer_micros,
            "≤ 0.5" if window > 1 else "",
            our_micros <= 0.5 * peer_micros if window > 1 else None,
        ),
    ]


def _measure(serve: Serve, window: int, micros: dict[Serve, list[float]]) -> float:
    """Requests a second of one server, and its CPU a request into ``micros``."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_run_server, args=(serve, there))
    child.start()
    try:
        with socket.create_connection(("127.0.0.1", here.recv())) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            started_s, used_s = time.perf_counter(), cpu_s(child.pid)
            answered = _drive(peer, window)
            elapsed_s, used_s = time.perf_counter() - started_s, cpu_s(child.pid) - used_s
    finally:
        child.terminate()
        child.join()
    micros[serve].append(used_s / answered * 1e6)
    return answered / elapsed_s


def _drive(peer: socket.socket, window: int) -> int:
    peer.sendall(_FRAME)
    answer_bytes = len(peer.recv(1 << 16))
    answered = received = 0
    peer.sendall(_FRAME * window)
    ends_s = time.perf_counter() + _SECONDS
    while time.perf_counter() < ends_s:
        received += len(peer.recv(1 << 16))
        whole, received = divmod(received, answer_bytes)
        answered += whole
        peer.sendall(_FRAME * whole)
    return answered


def _run_server(serve: Serve, pipe: Pipe) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if serve is _tanist else None) as runner:
        runner.run(_serve(serve, pipe))


async def _serve(serve: Serve, pipe: Pipe) -> None:
    await serve(pipe)
    await asyncio.Event().wait()


async def _tanist(pipe: Pipe) -> None:
    def answer(request: Command, _connection: Connection) -> Command:
        assert request.ext["topic"]
        return request.reply(body=_BODY)

    server = RemotingServer({_CODE: answer})
    await server.start("127.0.0.1", 0)
    pipe.send(server.port)


async def _streams(pipe: Pipe) -> None:
    async def on_peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                total, header_bytes = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
            except asyncio.IncompleteReadError:
                break
            frame = await reader.readexactly(total - 4)
            request = json.loads(frame[:header_bytes])
            assert request["extFields"]["topic"]
            header = json.dumps(
                {
                    "code": 0,
                    "flag": 1,
                    "language": "PYTHON",
                    "opaque": request["opaque"],
                    "serializeTypeCurrentRPC": "JSON",
                    "version": 479,
                },
                separators=(",", ":"),
            ).encode()
            writer.write(_LENGTHS.pack(4 + len(header) + len(_BODY), len(header)) + header + _BODY)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(on_peer, "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
