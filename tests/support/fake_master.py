"""A master that lies to a slave in RocketMQ's classic framing, and what the slave made of it."""

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psutil

from tests.support.attacked import Master
from tests.support.relay import Relay

_HEADER = struct.Struct(">qi")
_REPORT = struct.Struct(">q")
_HOST = "127.0.0.1"
_CALL_TIMEOUT_S = 30.0
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Lie:
    """What a false master says to a slave that holds the log up to an offset."""

    name: str
    says: Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class SlaveSeen:
    """What one lie did to a slave."""

    lie: str
    first_report: int
    later_reports: list[int]
    log_end_before: int
    log_end_after: int
    closed_after_s: float | None
    """When the slave hung up, from the lie on; None if it did not in time."""
    grown_bytes: int
    """How much more memory its process has."""


def frame(log_offset: int, size_bytes: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(log_offset, size_bytes) + body


LIES: Final = (
    Lie("a body of 2^31-1 bytes", lambda end: frame(end, (1 << 31) - 1, bytes(8 << 20))),
    Lie("a body of -5 bytes", lambda end: frame(end, -5, bytes(64))),
    Lie("a frame of another place", lambda end: frame(end + 4096, 64, bytes(64))),
    Lie("bytes that are no records", lambda end: frame(end, 64, b"\xab" * 64)),
)


def play_on_slave(address: str, pid: int, cable: Relay, lie: Lie, *, patience_s: float) -> SlaveSeen:
    """Lead a slave to a false master, tell it one lie, and watch it until it hangs up."""
    slave = Master(address, "")
    process = psutil.Process(pid)
    with contextlib.closing(slave), socket.create_server((_HOST, 0)) as listener:
        before = slave.status().client["maxOffset"]
        before_bytes = process.memory_info().rss
        listener.settimeout(_CALL_TIMEOUT_S)
        cable.lead_to(f"{_HOST}:{listener.getsockname()[1]}")
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(_CALL_TIMEOUT_S)
            first = _REPORT.unpack(connection.recv(_REPORT.size, socket.MSG_WAITALL))[0]
            heard, closed_after_s = tell(connection, lie.says(first), patience_s=patience_s)
        return SlaveSeen(
            lie=lie.name,
            first_report=first,
            later_reports=[_REPORT.unpack_from(heard, at)[0] for at in range(0, len(heard) - 7, 8)],
            log_end_before=before,
            log_end_after=slave.status().client["maxOffset"],
            closed_after_s=closed_after_s,
            grown_bytes=process.memory_info().rss - before_bytes,
        )


def tell(connection: socket.socket, said: bytes, *, patience_s: float) -> tuple[bytes, float | None]:
    """Say all that the other side takes, and hear it out; what it said, and when it hung up."""
    begun_s = time.monotonic()
    heard = bytearray()
    connection.setblocking(False)
    view = memoryview(said)
    while (left_s := begun_s + patience_s - time.monotonic()) > 0:
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            view = view[connection.send(view) :] if view else view
        try:
            data = connection.recv(_READ_BYTES)
        except BlockingIOError:
            time.sleep(min(0.02, left_s))
            continue
        except OSError:
            data = b""
        if not data:
            return bytes(heard), time.monotonic() - begun_s
        heard += data
    return bytes(heard), None
