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
from tanist.broker.handlers.send import SendHandler
from tanist.broker.handlers.standing import StandingHandler
from tanist.broker.lane import make_lane
from tanist.broker.settings import BrokerSettings
from tanist.broker.slave_consume.gate import ReadGate
from tanist.broker.slave_consume.gates import obeying
from tanist.broker.slave_consume.relays import Relays
from tanist.broker.slave_consume.right import ReadRight
from tanist.broker.slave_role import fenced, without_writes
from tanist.broker.state import BrokerState
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import ConfigError
from tanist.model.host import FAST_PORT_DISTANCE
from tanist.remoting import (
    Connection,
    Handler,
    RemotingClient,
    RemotingServer,
    ServerLimits,
    TlsSettings,
)

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
        state.writer.is_awaited = self._pulls.is_awaiting
        state.resets.wakers.append(self._pulls.on_reset)
        self._standings = StandingHandler(state)
        self.gate = ReadGate(state, self._pulls.refuse_all)
        """Sends consumers away when this broker may not be read any more."""
        # Where there is more to check than the lane knows of, it would only pass everything on.
        self._lane = make_lane(state) if guard is None else None
        self._main = RemotingServer({}, limits=limits, tls=tls, on_close=self._on_close, lane=self._lane)
        self._fast = RemotingServer({}, limits=limits, tls=tls, on_close=self._on_close, lane=self._lane)
        self._keeper = TransactionKeeper(state)
        self._tls = tls
        self._relays: Relays | None = None

    def obey(self, right: ReadRight) -> None:
        """Serve only what ``right`` allows, from the next role on: to be called before there is one."""
        state = self._state
        state.read_right = right
        state.clients.listen()  # Until it is said that this one is read.
        self._relays = relays = Relays(right, RemotingClient(tls=self._tls), is_slave=state.settings.is_slave)
        self.gate.is_from_relay = relays.is_from_relay
        # Who asks is told before the gate closes its connection.
        right.listeners += [self._standings.on_permitted, self.gate.on_permitted, relays.on_permitted]

    def serve_as_master(self, keeper: TransactionKeeper) -> None:
        sends = SendHandler(self._state)
        # Where there is more to check, that is done with Commands.
        is_open = self._guard is None and self._state.read_right is None
        self._use(self._routes(keeper, sends), sends if is_open else None)

    def serve_as_slave(self) -> None:
        replication = self._state.replication
        self._use(without_writes(self._routes(), lambda: replication.master_address, self._is_read))

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
            self._standings.close()
            self.gate.close()
            if self._relays is not None:
                await self._relays.close()
            if self._main.connection_count or self._fast.connection_count:
                # Pulls that are on their way are refused too, before their connection goes.
                await asyncio.sleep(_LINGER_S)
            await asyncio.gather(self._main.close(_CLOSE_GRACE_S), self._fast.close(_CLOSE_GRACE_S))
            if self._lane is not None:
                self._lane.close()

    async def start(self, bound: socket.socket, *, has_fast: bool) -> None:
        """Listen. Raises ConfigError if the fast port can not be had."""
        settings = self._state.settings
        try:
            await self._main.start_on(bound)
            if has_fast:
                await self._fast.start(settings.bind_address, settings.listen_port - FAST_PORT_DISTANCE)
        except OSError as error:
            raise port_error(settings, error) from error

    def _routes(
        self, keeper: TransactionKeeper | None = None, sends: SendHandler | None = None
    ) -> dict[int, Handler]:
        sends = sends or SendHandler(self._state)
        routes = all_routes(self._state, sends, self._pulls, keeper or self._keeper)
        routes |= self._standings.routes()
        right = self._state.read_right
        return routes if right is None else obeying(routes, right)

    def _is_read(self) -> bool:
        right = self._state.read_right
        return right is not None and right.is_readable

    def _use(self, routes: dict[int, Handler], sends: SendHandler | None = None) -> None:
        if self._relays is not None:
            routes = self._relays.relaying(routes)
        if self._guard is not None:
            needs = Needs(self._state.settings, partial(topic_at, self._state.store))
            routes = self._guard.guard(routes, needs)
        express = None if sends is None else sends.express
        self._main.use(routes, express)
        self._fast.use(fast_routes(routes), express)
        if self._lane is not None:
            self._lane.serve(None if sends is None else sends.quick)

    def _on_close(self, connection: Connection) -> None:
        if self._relays is not None:
            self._relays.on_lost(connection)
        self._pulls.on_lost(connection)
        self._standings.on_lost(connection)
        clients.on_lost(self._state, connection)


def port_error(settings: BrokerSettings, error: OSError) -> ConfigError:
    """What to do about a port that can not be had."""
    remedy = f"free ports, this one and the one {FAST_PORT_DISTANCE} below ({error.strerror or error})"
    return ConfigError("listenPort", settings.listen_port, remedy)
