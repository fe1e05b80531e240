"""The server's side of TLS on a transport, over memory buffers.

asyncio can begin TLS only before a byte was read, and tells nobody of the peers that fail at it: here such a
peer is counted, bounded and logged like any other.
"""

import asyncio
import ssl
from contextlib import suppress

_READ_BYTES = 256 * 1024


class TlsLayer(asyncio.Transport):
    """What comes off a transport is fed in; what is written is encrypted and goes to the transport."""

    def __init__(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        super().__init__()
        self._transport = transport
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_established = False
        """Whether the handshake is over."""
        self.is_ended = False
        """Whether the peer has said that nothing more comes."""

    def feed(self, data: bytes) -> bytes:
        """Take what came off the socket; what it says, all that is whole of it as one read.

        Raises SSLError; the peer is told why, so that it can tell its user what is wrong.
        """
        self._incoming.write(data)
        try:
            if not self.is_established:
                self._tls.do_handshake()
                self.is_established = True
            return self._decrypt()
        except ssl.SSLWantReadError:
            return b""
        finally:
            self._send_outgoing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_established:
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        self._send_outgoing()

    def close(self) -> None:
        if self.is_established:
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

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._tls if name == "ssl_object" else self._transport.get_extra_info(name, default)

    def _decrypt(self) -> bytes:
        pieces: list[bytes] = []
        try:
            while piece := self._tls.read(_READ_BYTES):
                pieces.append(piece)
            self.is_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_ended = True
        return b"".join(pieces)

    def _send_outgoing(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())
