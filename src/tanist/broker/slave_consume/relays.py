"""All relays of one broker: it relays what stock consumers ask while another broker of its group is read."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from tanist.broker.clients import is_short
from tanist.broker.consumer_group import ClientConnection
from tanist.broker.heartbeat import read_heartbeat
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.relay import Relay
from tanist.broker.slave_consume.relay_rules import (
    MAX_RELAYS,
    RELAYED,
    KeptHeartbeats,
    is_stock,
    relays_to,
)
from tanist.broker.slave_consume.right import ReadRight
from tanist.model.topics import READ
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reading import ReadStandingRequest
from tanist.remoting import Connection, Handler
from tanist.remoting.replies import Pieces

IDLE_S = 45.0
"""A client that asked for nothing for so long goes by its new route: then its relay ends."""


class Dialer(Protocol):
    """Connects to other brokers, as a RemotingClient does."""

    async def dial(self, address: str, handlers: Mapping[int, Handler]) -> Connection: ...
    async def close(self) -> None: ...


class Relays:
    """One broker's, which has a read right."""

    def __init__(self, right: ReadRight, dialer: Dialer, *, is_slave: bool) -> None:
        self._right = right
        self._is_slave = is_slave
        self._dialer = dialer
        self._relays: dict[Connection, Relay] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._heartbeats: KeptHeartbeats[Connection] = KeptHeartbeats()
        self._from_relays: set[ClientConnection] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._relays)

    def relaying(self, routes: Mapping[int, Handler]) -> dict[int, Handler]:
        """The same routes, of which those of consumers are relayed when that is called for."""
        relayed = {
            code: self._relayed(handler) if code in RELAYED else handler for code, handler in routes.items()
        }
        relayed[RequestCode.HEART_BEAT] = self._heartbeat(routes[RequestCode.HEART_BEAT])
        relayed[RequestCode.UNREGISTER_CLIENT] = self._goodbye(routes[RequestCode.UNREGISTER_CLIENT])
        relayed[RequestCode.GET_READ_STANDING] = self._standing(routes[RequestCode.GET_READ_STANDING])
        return relayed

    def is_from_relay(self, connection: ClientConnection) -> bool:
        """Whether a broker relays to us here. That is not relayed again, or it might go in circles."""
        return connection in self._from_relays

    def on_permitted(self, found: Permitted) -> None:
        """What this broker may do has changed: when it is read itself it relays nothing."""
        if found.permission & READ:
            self._end_all("this broker is read")

    def on_lost(self, connection: Connection) -> None:
        """A client's connection was closed."""
        self._from_relays.discard(connection)
        self._heartbeats.forget(connection)
        if (relay := self._relays.pop(connection, None)) is not None:
            relay.end("its client has gone")

    async def close(self) -> None:
        """Relay nothing more: the broker stops."""
        self._is_closed = True
        self._end_all("the broker stops")
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        await self._dialer.close()

    def _relayed(self, handler: Handler) -> Handler:
        def serve(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
            relay = self._relay_for(command, connection) if is_stock(command.language) else None
            if relay is None:
                return handler(command, connection)
            relay.used_s = asyncio.get_running_loop().time()
            relay.pass_on(command, handler)
            return None

        return serve

    def _heartbeat(self, handler: Handler) -> Handler:
        def serve(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
            if not is_stock(command.language):
                return handler(command, connection)
            if self.is_from_relay(connection):
                self._right.check_read()
            answer = handler(command, connection)
            heartbeat = read_heartbeat(command)
            if heartbeat.consumer_data_set and not is_short(heartbeat):
                self._heartbeats.keep(connection, command)
            relay = self._in_use(connection)
            if relay is None:
                return answer
            # It is noted here, and counts there.
            relay.pass_on(command, handler)
            return None

        return serve

    def _goodbye(self, handler: Handler) -> Handler:
        def serve(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
            answer, relay = handler(command, connection), self._relays.get(connection)
            if relay is None:
                return answer
            relay.pass_on(command, handler)
            return None

        return serve

    def _standing(self, handler: Handler) -> Handler:
        def serve(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
            if command.header(ReadStandingRequest).relayed_for is not None:
                self._from_relays.add(connection)
            return handler(command, connection)

        return serve

    def _relay_for(self, command: Command, connection: Connection) -> Relay | None:
        """The relay of a client's request; None if it is served, or refused, here."""
        target = relays_to(command.code, self._right.look(), self._right.address, is_slave=self._is_slave)
        if target is None or connection in self._from_relays or self._is_closed:
            return None
        relay = self._relays.get(connection)
        if relay is not None and (relay.is_over or relay.target != target):
            del self._relays[connection]
            relay.end("another broker is read")
            relay = None
        if relay is None and len(self._relays) < MAX_RELAYS:
            relay = self._open(connection, target)
        return relay

    def _open(self, connection: Connection, target: str) -> Relay:
        relay = Relay(connection, target, own=self._right.address, dial=self._dialer.dial)
        self._relays[connection] = relay
        opening = asyncio.get_running_loop().create_task(relay.open(self._heartbeats.find(connection)))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        return relay

    def _in_use(self, connection: Connection) -> Relay | None:
        """The relay of a client that still comes to us for messages."""
        relay = self._relays.get(connection)
        if relay is None:
            return None
        if relay.is_over or asyncio.get_running_loop().time() - relay.used_s > IDLE_S:
            del self._relays[connection]
            relay.end("its client goes by its route")
            return None
        return relay

    def _end_all(self, reason: str) -> None:
        relays = list(self._relays.values())
        self._relays.clear()
        for relay in relays:
            relay.end(reason)
