"""One plain connection to a server, on which a test says exactly what it wants to say."""

import socket
from types import TracebackType
from typing import Self

from tanist.protocol import Command, FrameDecoder, encode_command

_TIMEOUT_S = 60.0
_READ_BYTES = 1 << 16


class Wire:
    """A blocking connection. Leaving the ``with`` block closes it."""

    def __init__(self, address: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        self.peer_address = address
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._decoder = FrameDecoder()
        self._received: list[Command] = []
        self._last_opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    @property
    def local_address(self) -> str:
        """Who we are to the server."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def ask(self, request: Command) -> Command:
        """Send a request and wait for its answer, which must be the next frame."""
        self._last_opaque += 1
        request.opaque = self._last_opaque
        self.send(encode_command(request))
        answer = self.receive()
        assert answer is not None, "the server closed the connection"
        assert answer.is_response
        assert answer.opaque == request.opaque
        return answer

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> Command | None:
        """The next frame, or None if the server has closed the connection."""
        while not self._received:
            try:
                data = self._socket.recv(_READ_BYTES)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._received += self._decoder.feed(data)
        return self._received.pop(0)
