"""The listening side: accepts connections and looks after them until it is closed."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Mapping

from tanist.errors import ConfigError
from tanist.remoting.connection import Connection, Express, Handler, Lane
from tanist.remoting.connections import Connections
from tanist.remoting.settings import ServerLimits
from tanist.remoting.tls import TlsMode, TlsSettings, server_context
from tanist.remoting.tls_gate import TlsGate
from tanist.remoting.watch import CloseCause

_log = logging.getLogger(__name__)

_ACCEPT_TURNS = 3
"""So many turns of the event loop after a socket was accepted there is a connection that can be closed."""


def bind_port(address: str, port: int) -> socket.socket:
    """Take a port, 0 for one that the system chooses, without listening yet. Raises OSError.

    Whoever comes too early is refused by the system, as if nobody had the port.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # By its number, or Python's event loop does not know that TCP_NODELAY is for what this socket accepts.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if bound.family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((address, port))
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


async def stop_listening(listener: asyncio.Server) -> None:
    """Accept nobody any more; whoever was accepted has its connection made by then.

    Python's own event loop loses those whom it accepts in the turn in which the listener is closed, and
    leaves their sockets open.
    """
    for listening in listener.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(_ACCEPT_TURNS):
        await asyncio.sleep(0)
    listener.close()


class RemotingServer:
    """Serves ``handlers``, one for each request code, on one port.

    ``on_open`` and ``on_close`` are told of each connection; a connection refused for want of room is
    not one. When one opens it is too early to send: whether it is TLS shows when the peer speaks. A handler
    runs on the event loop and must return at once.
    """

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        *,
        limits: ServerLimits | None = None,
        tls: TlsSettings | None = None,
        on_open: Callable[[Connection], None] | None = None,
        on_close: Callable[[Connection], None] | None = None,
        lane: Lane | None = None,
    ) -> None:
        """``lane`` reads for connections that are plain text."""
        # One and the same mapping for all connections, so that ``use`` reaches those that are open.
        self._handlers = dict(handlers)
        self._express: Express | None = None
        self._lane = lane
        self._limits = limits or ServerLimits()
        self._connection_limits = self._limits.connection
        tls = tls or TlsSettings()
        self._context = server_context(tls)
        self._is_enforcing = tls.tls_mode is TlsMode.ENFORCING
        self._connections = Connections(
            self._connection_limits,
            max_count=self._limits.server_max_connections,
            max_held_bytes=self._limits.server_max_held_bytes,
            on_open=on_open,
            on_close=on_close,
        )
        self._listener: asyncio.Server | None = None

    def use(self, handlers: Mapping[int, Handler], express: Express | None = None) -> None:
        """Serve these from the next request on, also on connections that are open."""
        self._handlers.clear()
        self._handlers.update(handlers)
        self._express = express
        for connection in self._connections:
            connection.express = express

    @property
    def port(self) -> int:
        """Where it listens: the real port if 0 was asked for."""
        assert self._listener is not None
        return self._listener.sockets[0].getsockname()[1]

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def closed_connections(self) -> Counter[CloseCause]:
        """How many connections have ended, by cause."""
        return self._connections.closed

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError if that address cannot be had."""
        # Small answers leave at once: both event loops set TCP_NODELAY on what they accept.
        self._listener = await asyncio.get_running_loop().create_server(
            self._accept,
            host,
            port,
            backlog=self._limits.server_socket_backlog,
            reuse_address=True,
        )
        _log.info("listening host=%s port=%d", host, self.port)

    async def start_as_set(self, bind_address: str, listen_port: int) -> None:
        """Listen where the settings say. Raises ConfigError if that address cannot be had."""
        try:
            await self.start(bind_address, listen_port)
        except OSError as error:
            remedy = f"a free port of bindAddress={bind_address} ({error.strerror or error})"
            raise ConfigError("listenPort", listen_port, remedy) from error

    async def start_on(self, bound: socket.socket) -> None:
        """Listen on a port of ``bind_port``; closing the server closes it. Raises OSError."""
        self._listener = await asyncio.get_running_loop().create_server(
            self._accept, sock=bound, backlog=self._limits.server_socket_backlog
        )
        host, port = bound.getsockname()[:2]
        _log.info("listening host=%s port=%d", host, port)

    async def close(self, grace_s: float) -> None:
        """Stop listening and reading, let answers that were given leave, then close.

        Whoever parked a request answers it before this: answers given later are dropped.
        """
        if self._listener is None:
            return
        await stop_listening(self._listener)
        await self._connections.close(grace_s, "the server stops")
        await self._listener.wait_closed()
        self._listener = None

    def _accept(self) -> asyncio.Protocol:
        connection = Connection(
            self._handlers, self._connection_limits, self._connections, holds_back=True, lane=self._lane
        )
        connection.express = self._express
        if self._context is None:
            return connection
        return TlsGate(
            connection,
            self._context,
            is_enforcing=self._is_enforcing,
            handshake_s=self._connection_limits.frame_s,
        )
