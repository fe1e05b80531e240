"""Sends consumers away when this broker may not be read any more, and has it know them when it may.

read --READ is lost--> the pulls that wait are refused, then the connections of consumers are closed
not read --READ is gained--> consumers come, and find those who have not come yet in their group's list

Stock clients stay where it is known who is read: they do not understand where to go, and what they ask is
relayed. They are told to pull again, are noted as before, and are members when this broker is read again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from tanist.broker.consumer_group import Client, ClientConnection
from tanist.broker.handlers import clients
from tanist.broker.slave_consume.live_view import NOBODY, LiveView, bounded
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.relay_rules import is_stock, reads_elsewhere
from tanist.broker.state import BrokerState
from tanist.clock import steady_ms
from tanist.model.topics import READ

_log = logging.getLogger(__name__)

EXPECTED_S = 10.0
"""So long queues are kept for members that were elsewhere and have not come yet."""

LINGER_S = 0.2
"""Between the refusals and the end of the connections: pulls that are on their way are refused too, and a
connection that is closed while its peer still speaks takes with it what was sent to the peer last."""


class RefusePulls(Protocol):
    """Answers all pulls that wait, of stock clients so that they come again where they are relayed."""

    def __call__(self, error: Exception, /, *, is_relayed: bool) -> None: ...


class ReadGate:
    """One broker's, which has a read right."""

    def __init__(self, state: BrokerState, refuse_pulls: RefusePulls) -> None:
        self._state = state
        self._refuse_pulls = refuse_pulls
        self.is_from_relay: Callable[[ClientConnection], bool] = lambda _connection: False
        """Whether another broker relays on a connection. Its client is there, and not here."""
        # Whoever may be here at the start has to go if it can not be read then.
        self._was_readable = True
        self._left = NOBODY
        self._timer: asyncio.TimerHandle | None = None
        self._leaving: list[ClientConnection] = []
        self._closing: asyncio.TimerHandle | None = None

    def view(self) -> LiveView:
        """Who consumes here; once it is not read any more, who did until then."""
        if not self._was_readable:
            return self._left
        state = self._state
        members = state.clients.members()
        topics = {group: tuple(state.clients.subscriptions(group)) for group in members}
        locks = state.locks.held(steady_ms(state.clock))
        return bounded(LiveView(members=members, topics=topics, locks=locks))

    def take_view(self, view: LiveView) -> None:
        """Expect those who consumed at the broker that was read before, and keep their locks for them."""
        view = bounded(view)
        state = self._state
        state.locks.seed(view.locks, steady_ms(state.clock))
        state.clients.expect(view.members)
        self._stop_timer()
        if view.members:
            self._timer = asyncio.get_running_loop().call_later(EXPECTED_S, self._end_expecting)

    def on_permitted(self, found: Permitted) -> None:
        """What this broker may do has changed."""
        was_readable, is_readable = self._was_readable, bool(found.permission & READ)
        if is_readable:
            clients.on_readable(self._state)
        elif was_readable:
            self._left = self.view()
            self._state.clients.listen()
            self._send_away(found)
        self._was_readable = is_readable

    def close(self) -> None:
        """Wait for nobody any more: the broker stops, and closes all connections."""
        self._stop_timer()
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        self._leaving.clear()

    def _send_away(self, found: Permitted) -> None:
        state, right = self._state, self._state.read_right
        assert right is not None  # It is what told us.
        refusal = right.refuse(found)
        is_relayed = reads_elsewhere(found, right.address) is not None

        def may_stay(client: Client) -> bool:
            return is_relayed and is_stock(client.language) and not self.is_from_relay(client.connection)

        # Who gets no answer before its connection ends waits for one until its time is over: half a minute.
        self._refuse_pulls(refusal, is_relayed=is_relayed)
        if leaving := state.clients.forget_consumers(may_stay):
            self._close_soon(leaving, refusal.remark)
            _log.info(
                "consumers are sent away connections=%d reader=%s term=%d reason=%s",
                *(len(leaving), found.reader or "-", found.term, found.reason),
            )
        # The next time this broker is read others may hold them.
        state.locks.clear()
        self._end_expecting()

    def _close_soon(self, leaving: list[ClientConnection], reason: str) -> None:
        self._leaving += leaving
        if self._closing is None:
            loop = asyncio.get_running_loop()
            self._closing = loop.call_later(LINGER_S, self._close_leaving, reason)

    def _close_leaving(self, reason: str) -> None:
        self._closing = None
        leaving, self._leaving = self._leaving, []
        for connection in leaving:
            connection.close(reason)

    def _end_expecting(self) -> None:
        self._stop_timer()
        clients.on_expected_over(self._state)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
