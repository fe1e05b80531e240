"""TLS on the HA port. A peer is known from its first packet on, and not only once it has shaken hands: it is
counted, bounded and shown like one without TLS, and the handshake is part of the time it has to prove itself.
"""

import asyncio
import ssl
from typing import cast

from tanist.ha.actions import CloseKind
from tanist.ha.slave_connection import SlaveConnection
from tanist.protocol.ha_hello import HELLO_S
from tanist.remoting import TlsLayer

MAX_HANDSHAKE_BYTES = 32 << 10
"""So much a peer may say until its handshake is over: a long chain of certificates is half of it."""
_SHOWN_BYTES = 16


class TlsEntrance(asyncio.Protocol):
    """What is between one accepted socket and the connection that hears it decrypted."""

    _layer: TlsLayer
    _deadline: asyncio.TimerHandle

    def __init__(self, connection: SlaveConnection, context: ssl.SSLContext) -> None:
        self._connection = connection
        self._context = context
        self._handshake_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # First, as the connection begins to count now too, and cannot say that the handshake was not over.
        self._deadline = asyncio.get_running_loop().call_later(HELLO_S, self._on_deadline)
        self._layer = TlsLayer(cast("asyncio.Transport", transport), self._context)
        self._connection.connection_made(self._layer)

    def data_received(self, data: bytes) -> None:
        if self._connection.is_closing:
            return
        if not self._layer.is_established:
            self._handshake_bytes += len(data)
            self._connection.first_bytes = (self._connection.first_bytes + data)[:_SHOWN_BYTES]
            if self._handshake_bytes > MAX_HANDSHAKE_BYTES:
                self._refuse(f"more than {MAX_HANDSHAKE_BYTES} bytes")
                return
        try:
            self._hear(self._layer.feed(data))
        except ssl.SSLError as error:
            self._refuse(error.reason or str(error))

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self._connection.connection_lost(exc)

    def _hear(self, said: bytes) -> None:
        if self._layer.is_established and self._handshake_bytes:
            self._deadline.cancel()
            self._handshake_bytes, self._connection.first_bytes = 0, b""
        if said:
            self._connection.data_received(said)
        if self._layer.is_ended:
            self._layer.close()

    def _refuse(self, reason: str) -> None:
        kind = CloseKind.BAD_FRAME if self._layer.is_established else CloseKind.BAD_TLS
        self._connection.close(kind, reason)

    def _on_deadline(self) -> None:
        self._connection.close(CloseKind.TOO_SLOW, "its TLS handshake is not over")
