"""Where a server's connection turns out to be TLS or plain text.

    UNDECIDED --0x16--> TLS
        \\--any other byte--> plain: the connection takes the transport over, and the gate is gone

The first byte tells: a frame begins with 0x00, a TLS record with 0x16. TLS is spoken here over memory
buffers and not by asyncio, which can begin it only before a byte was read, and tells nobody of the
peers that fail at it: here such a peer is counted, bounded and logged like any other.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import cast

from tanist.remoting.connection import Connection
from tanist.remoting.watch import CloseCause

_TLS_HANDSHAKE_RECORD = 0x16
_READ_BYTES = 256 * 1024


class TlsGate(asyncio.Protocol):
    """One accepted socket on its way to a Connection."""

    __slots__ = ("_connection", "_context", "_handshake_s", "_is_enforcing", "_tls", "_transport")

    _transport: asyncio.Transport

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, *, is_enforcing: bool, handshake_s: float
    ) -> None:
        self._connection = connection
        self._context = context
        self._is_enforcing = is_enforcing
        self._handshake_s = handshake_s
        self._tls: _TlsLayer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connection.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._connection.is_open:
            return
        if self._tls is None:
            if data[0] == _TLS_HANDSHAKE_RECORD:
                self._tls = _TlsLayer(self._connection, self._transport, self._context, self._handshake_s)
            elif self._is_enforcing:
                self._connection.end(CloseCause.BAD_TLS, "plain text, where tlsMode=enforcing wants TLS")
                return
            else:
                self._transport.set_protocol(self._connection)
                self._connection.data_received(data)
                return
        self._tls.feed(data)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._tls is not None:
            self._tls.on_lost()
        self._connection.connection_lost(exc)


class _TlsLayer:
    """TLS between a Connection, whose wire it is, and the transport below."""

    def __init__(
        self,
        connection: Connection,
        transport: asyncio.Transport,
        context: ssl.SSLContext,
        handshake_s: float,
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_established = False
        self._deadline = asyncio.get_running_loop().call_later(handshake_s, self._on_deadline)
        connection.use_wire(self)

    def feed(self, data: bytes) -> None:
        """Take what came off the socket, and give the connection what it holds."""
        self._incoming.write(data)
        try:
            if not self._is_established:
                self._tls.do_handshake()
                self._is_established = True
                self._deadline.cancel()
            self._hand_over()
        except ssl.SSLWantReadError:
            self._send_outgoing()
        except ssl.SSLError as error:
            self._send_outgoing()  # The alert, so that the peer can tell its user what is wrong.
            self._connection.end(CloseCause.BAD_TLS, f"{error.reason or error}")

    def _hand_over(self) -> None:
        """Decrypt all that is whole, and hand it over as one read: its answers then are one write."""
        pieces: list[bytes] = []
        is_ended = False
        try:
            while piece := self._tls.read(_READ_BYTES):
                pieces.append(piece)
            is_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            is_ended = True
        self._send_outgoing()
        if pieces:
            self._connection.data_received(b"".join(pieces))
        if is_ended:
            self._connection.end(CloseCause.PEER, "the peer closed it")

    def on_lost(self) -> None:
        self._deadline.cancel()

    def write(self, data: bytes) -> None:
        if not self._is_established:
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        self._send_outgoing()

    def close(self) -> None:
        if self._is_established:
            with suppress(ssl.SSLError):  # The peer's own farewell is not waited for.
                self._tls.unwrap()
            self._send_outgoing()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def abort(self) -> None:
        self._transport.abort()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def _on_deadline(self) -> None:
        self._connection.give_up(CloseCause.BAD_TLS, "the handshake is not over in time")

    def _send_outgoing(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())
