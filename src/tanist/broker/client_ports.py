"""The two ports that clients use: the main one, and the fast one below it for all that does not wait.

What they serve depends on the role that the broker has, and may change while clients are connected.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from tanist.broker.acl import AccessGuard, Needs, topic_at
from tanist.broker.handlers import all_routes, clients, fast_routes
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.settings import FAST_PORT_DISTANCE, BrokerSettings
from tanist.broker.slave_role import fenced, without_writes
from tanist.broker.state import BrokerState
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import ConfigError
from tanist.remoting import Connection, Handler, RemotingServer, ServerLimits, TlsSettings

_CLOSE_GRACE_S = 1.0
_LINGER_S = 0.2
FLUSH_GRACE_S = 1.0
"""So long whoever waits for disk or slaves may be answered when the broker stops."""


class ClientPorts:
    """One broker's. They serve nothing before ``start``."""

    def __init__(
        self, state: BrokerState, limits: ServerLimits, tls: TlsSettings | None, guard: AccessGuard | None
    ) -> None:
        self._state = state
        self._guard = guard
        self._pulls = PullHandler(state)
        state.store.dispatcher.listeners.append(self._pulls.on_indexed)
        self._main = RemotingServer({}, limits=limits, tls=tls, on_close=self._on_close)
        self._fast = RemotingServer({}, limits=limits, tls=tls, on_close=self._on_close)
        self._keeper = TransactionKeeper(state)

    def serve_as_master(self, keeper: TransactionKeeper) -> None:
        self._use(all_routes(self._state, self._pulls, keeper))

    def serve_as_slave(self) -> None:
        self._use(without_writes(self._routes(), lambda: self._state.replication.master_address))

    def serve_fenced(self, reason: str) -> None:
        """Refuse all that reads or writes messages: there is no role yet, or it was just taken away."""
        self._use(fenced(self._routes(), reason))

    @asynccontextmanager
    async def closing(self) -> AsyncGenerator[None]:
        """At the end of the block the ports are closed."""
        try:
            yield
        finally:
            # Whoever waits for an answer gets it while there is a connection to send it on.
            await self._state.writer.close(FLUSH_GRACE_S)
            self._pulls.close()
            if self._main.connection_count or self._fast.connection_count:
                # Pulls that are on their way are refused too, before their connection goes.
                await asyncio.sleep(_LINGER_S)
            await asyncio.gather(self._main.close(_CLOSE_GRACE_S), self._fast.close(_CLOSE_GRACE_S))

    async def start(self, bound: socket.socket, *, has_fast: bool) -> None:
        """Listen. Raises ConfigError if the fast port can not be had."""
        settings = self._state.settings
        try:
            await self._main.start_on(bound)
            if has_fast:
                await self._fast.start(settings.bind_address, settings.listen_port - FAST_PORT_DISTANCE)
        except OSError as error:
            raise port_error(settings, error) from error

    def _routes(self) -> dict[int, Handler]:
        return all_routes(self._state, self._pulls, self._keeper)

    def _use(self, routes: dict[int, Handler]) -> None:
        if self._guard is not None:
            needs = Needs(self._state.settings, partial(topic_at, self._state.store))
            routes = self._guard.guard(routes, needs)
        self._main.use(routes)
        self._fast.use(fast_routes(routes))

    def _on_close(self, connection: Connection) -> None:
        self._pulls.on_lost(connection)
        clients.on_lost(self._state, connection)


def port_error(settings: BrokerSettings, error: OSError) -> ConfigError:
    """What to do about a port that can not be had."""
    remedy = f"free ports, this one and the one {FAST_PORT_DISTANCE} below ({error.strerror or error})"
    return ConfigError("listenPort", settings.listen_port, remedy)
