"""Who plays an attack on a replication port, and what it hears."""

import contextlib
import selectors
import socket
import time
from types import TracebackType
from typing import Self

from tests.support.ha_attacks import Attack, Ground

_READ_BYTES = 1 << 16
_CONNECT_TIMEOUT_S = 5.0


class Intruder:
    """All connections of one attack. Leaving the block closes them."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._ways = selectors.DefaultSelector()
        self.heard = bytearray()
        """Everything the other side said, on whichever connection."""
        self.open_count = 0
        self.addresses: set[str] = set()
        """Who we are to the other side."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for key in list(self._ways.get_map().values()):
            self._close(key.fileobj)
        self._ways.close()

    def play(self, attack: Attack, ground: Ground) -> None:
        """Say all that the attack says; the connections stay open."""
        for call in attack.calls(ground):
            connection = self.connect()
            for piece in call:
                # It may have been closed on us, which the listening finds out.
                with contextlib.suppress(OSError):
                    connection.sendall(piece)
                self.listen(attack.pause_s)

    def connect(self) -> socket.socket:
        connection = socket.create_connection(self._address, timeout=_CONNECT_TIMEOUT_S)
        self.addresses.add("{}:{}".format(*connection.getsockname()))
        self._ways.register(connection, selectors.EVENT_READ)
        self.open_count += 1
        return connection

    def listen(self, seconds: float) -> float:
        """Hear what comes, until all connections are closed or the time is up; how long that was."""
        begun_s = time.monotonic()
        while self.open_count and (left_s := begun_s + seconds - time.monotonic()) > 0:
            for key, _ in self._ways.select(left_s):
                self._hear(key.fileobj)
        return time.monotonic() - begun_s

    def _hear(self, connection: object) -> None:
        assert isinstance(connection, socket.socket)
        try:
            data = connection.recv(_READ_BYTES)
        except OSError:
            data = b""
        self.heard += data
        if not data:
            self._close(connection)

    def _close(self, connection: object) -> None:
        assert isinstance(connection, socket.socket)
        self._ways.unregister(connection)
        connection.close()
        self.open_count -= 1
