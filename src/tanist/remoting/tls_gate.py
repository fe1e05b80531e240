"""Where a server's connection turns out to be TLS or plain text.

    UNDECIDED --0x16--> TLS
        \\--any other byte--> plain: the connection takes the transport over, and the gate is gone

The first byte tells: a frame begins with 0x00, a TLS record with 0x16.
"""

import asyncio
import ssl
from typing import cast

from tanist.remoting.connection import Connection
from tanist.remoting.tls_layer import TlsLayer
from tanist.remoting.watch import CloseCause

_TLS_HANDSHAKE_RECORD = 0x16


class TlsGate(asyncio.Protocol):
    """One accepted socket on its way to a Connection."""

    __slots__ = (
        "_connection",
        "_context",
        "_deadline",
        "_handshake_s",
        "_is_enforcing",
        "_tls",
        "_transport",
    )

    _transport: asyncio.Transport
    _deadline: asyncio.TimerHandle
    """By which a handshake that has begun has to be over."""

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, *, is_enforcing: bool, handshake_s: float
    ) -> None:
        self._connection = connection
        self._context = context
        self._is_enforcing = is_enforcing
        self._handshake_s = handshake_s
        self._tls: TlsLayer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connection.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._connection.is_open:
            return
        if self._tls is None:
            if data[0] == _TLS_HANDSHAKE_RECORD:
                self._tls = self._begin_tls()
            elif self._is_enforcing:
                self._connection.end(CloseCause.BAD_TLS, "plain text, where tlsMode=enforcing wants TLS")
                return
            else:
                self._transport.set_protocol(self._connection)
                self._connection.data_received(data)
                return
        self._feed(self._tls, data)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._tls is not None:
            self._deadline.cancel()
        self._connection.connection_lost(exc)

    def _begin_tls(self) -> TlsLayer:
        layer = TlsLayer(self._transport, self._context)
        self._deadline = asyncio.get_running_loop().call_later(self._handshake_s, self._on_deadline)
        self._connection.use_wire(layer)
        return layer

    def _feed(self, layer: TlsLayer, data: bytes) -> None:
        try:
            said = layer.feed(data)
        except ssl.SSLError as error:
            self._connection.end(CloseCause.BAD_TLS, f"{error.reason or error}")
            return
        if layer.is_established:
            self._deadline.cancel()
        if said:
            self._connection.data_received(said)
        if layer.is_ended:
            self._connection.end(CloseCause.PEER, "the peer closed it")

    def _on_deadline(self) -> None:
        self._connection.give_up(CloseCause.BAD_TLS, "the handshake is not over in time")
