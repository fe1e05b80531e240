"""Sending on a link: at once where the system takes it, without a copy.

What is small and urgent, an ack or the next record, leaves within the call and not when the event loop
comes round to it. What the system does not take is the transport's to send.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Sequence
from typing import TypeAlias, cast

from tanist.model.host import host_and_port

HIGH_WATER_BYTES = 256 << 10
LOW_WATER_BYTES = 64 << 10

UNKNOWN_PEER = "?:0"
"""What a peer is called of which the address is not known."""

Pieces: TypeAlias = Sequence[bytes | memoryview]


class Wire:
    """One connected transport, plain or TLS."""

    def __init__(self, transport: asyncio.BaseTransport, *, high_water_bytes: int = HIGH_WATER_BYTES) -> None:
        """While more than ``high_water_bytes`` wait to be sent, the protocol is told to pause."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=high_water_bytes, low=LOW_WATER_BYTES)
        found = transport.get_extra_info("socket")
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        self._file_number: int = -1 if found is None or tls is not None else found.fileno()
        self.peer = _name(transport.get_extra_info("peername"))

    @property
    def waiting_bytes(self) -> int:
        """How much the system has not taken yet."""
        return self._transport.get_write_buffer_size()

    @property
    def free_file_number(self) -> int:
        """Where may be sent to without the transport; -1 if that would come before what waits there."""
        transport = self._transport
        is_free = not transport.is_closing() and not transport.get_write_buffer_size()
        return self._file_number if is_free else -1

    def send(self, pieces: Pieces) -> int:
        """Send all of it; how many bytes that is. On a closing transport nothing is sent."""
        transport = self._transport
        total = sum(map(len, pieces))
        if transport.is_closing():
            return total
        sent = 0
        if self._file_number >= 0 and not transport.get_write_buffer_size():
            try:
                sent = os.writev(self._file_number, pieces)
            except OSError:
                # Where the system takes nothing the transport will meet the same reason, and sees to it.
                sent = 0
        if sent < total:
            self._leave_to_transport(pieces, sent)
        return total

    def _leave_to_transport(self, pieces: Pieces, sent: int) -> None:
        for piece in pieces:
            if sent < len(piece):
                self._transport.write(piece[sent:] if sent else piece)
                sent = 0
            else:
                sent -= len(piece)

    def set_buffers(self, size_bytes: int) -> None:
        """Have the system hold no more than about this in either direction."""
        found: socket.socket = self._transport.get_extra_info("socket")
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            # On a connection that is gone already it does not matter.
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, option, size_bytes)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def close(self) -> None:
        """Close once all is sent."""
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def _name(peername: tuple[str, int] | None) -> str:
    if peername is None:
        return UNKNOWN_PEER
    host, port = peername[:2]
    return host_and_port(host, port)
