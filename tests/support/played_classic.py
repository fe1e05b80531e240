"""A slave and a master of RocketMQ that say exactly what a test has them say."""

import select
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple, Self

from tanist.protocol.ha_classic import encode_report, encode_transfer_header
from tanist.protocol.ha_hello import MAGIC

_HOST = "127.0.0.1"
_TIMEOUT_S = 20.0
# log_offset, size_bytes
_HEADER = struct.Struct(">qi")


class Frame(NamedTuple):
    """What a master sent at once. One without a body is a heartbeat."""

    log_offset: int
    body: bytes


class PlayedSlave:
    """One connection of a slave, from an address of this machine that the test chooses."""

    def __init__(self, ha_address: str, *, host: str = _HOST) -> None:
        master, _, port = ha_address.rpartition(":")
        self._socket = socket.create_connection((master, int(port)), _TIMEOUT_S, source_address=(host, 0))
        self.log = bytearray()
        """What it was sent, in order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Who it is to the master."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def report(self, log_offset: int) -> None:
        self.say(encode_report(log_offset))

    def read_frame(self) -> Frame:
        log_offset, size_bytes = _HEADER.unpack(self._read(_HEADER.size))
        body = self._read(size_bytes)
        self.log += body
        return Frame(log_offset, body)

    def read_to(self, log_end: int, *, start: int = 0) -> bytes:
        """Read frames until there are no more up to an offset; what they carried."""
        while start + len(self.log) < log_end:
            frame = self.read_frame()
            assert frame.log_offset == start + len(self.log) - len(frame.body)
        return bytes(self.log)

    def is_silent(self, seconds: float) -> bool:
        """Whether the master says nothing for so long, and does not hang up either."""
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(_TIMEOUT_S)
        return False

    def read_rest(self) -> bytes:
        """What else the master says before it hangs up."""
        rest = b""
        try:
            while data := self._socket.recv(1 << 16):
                rest += data
        except ConnectionResetError:
            pass
        return rest

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Go without a farewell: what is on its way is thrown away."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def _read(self, size_bytes: int) -> bytes:
        data = bytearray()
        while len(data) < size_bytes:
            piece = self._socket.recv(size_bytes - len(data))
            assert piece, "the master hung up"
            data += piece
        return bytes(data)


class Caller:
    """A slave that called a played master."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def read_report(self) -> int:
        raw = b""
        while len(raw) < 8:
            piece = self._socket.recv(8 - len(raw))
            assert piece, "the slave hung up"
            raw += piece
        return int.from_bytes(raw, "big", signed=True)

    def read_report_of(self, log_offset: int) -> None:
        """Read reports until one is of this offset: those before it are of less."""
        while (report := self.read_report()) != log_offset:
            assert report < log_offset

    def send(self, log_offset: int, body: bytes = b"") -> None:
        self.say(encode_transfer_header(log_offset, len(body)) + body)

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def has_hung_up(self) -> bool:
        """Whether the slave goes, after whatever reports."""
        try:
            while self._socket.recv(1 << 12):
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            pass
        return True

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        self._socket.close()


class PlayedMaster:
    """A master's port: this one, or any."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server((_HOST, port))
        self._listener.settimeout(_TIMEOUT_S)
        self.address = f"{_HOST}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def is_called(self, seconds: float) -> bool:
        """Whether anybody calls within this time."""
        return bool(select.select([self._listener], [], [], seconds)[0])

    @contextmanager
    def called(self) -> Generator[Caller]:
        """Wait for a slave that calls; the connection lasts as long as the block."""
        caller = Caller(self._accept())
        try:
            yield caller
        finally:
            caller.close()

    def _accept(self) -> socket.socket:
        """The next caller that does not only knock to hear whether this is a master of Tanist's."""
        while True:
            connection, _ = self._listener.accept()
            connection.settimeout(_TIMEOUT_S)
            if connection.recv(len(MAGIC), socket.MSG_PEEK) != MAGIC:
                return connection
            connection.close()
