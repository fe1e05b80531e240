"""Tells brokers who this client is: every 30 s, and at once when a broker, a connection or a group is new.

A broker forgets a client with its connection. So a client that only waited for the next heartbeat
would be no member of its groups for half a minute.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from tanist.backoff import Backoff
from tanist.client.errors import ClientClosed, NoPermission
from tanist.client.session.routes import RouteTable
from tanist.client.session.tasks import OwnedTasks, wait_at_most
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.log import ToldFailures
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.client import HeartbeatData
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.client import UnregisterClientRequest
from tanist.protocol.response_errors import NotReadable

_log = logging.getLogger(__name__)

_FAREWELL_S = 1.0
_LEAST_APART_S = 0.05
"""A broker that hangs up after each heartbeat is not to be told without end."""


class Heartbeats:
    """The heartbeats of one client. ``describe`` says what it is now: groups, subscriptions."""

    def __init__(
        self,
        wire: Wire,
        table: RouteTable,
        tasks: OwnedTasks,
        *,
        describe: Callable[[], HeartbeatData],
        period_s: float,
    ) -> None:
        self._wire = wire
        self._table = table
        self._tasks = tasks
        self._describe = describe
        self._period_s = period_s
        self._told: set[str] = set()  # They may know us.
        self._known: set[str] = set()  # They know us, by the connection that there is now.
        self._failures = ToldFailures()
        self._introduced: set[str] = set()  # They have answered, or failed to, since the last connection.
        self._refused: set[str] = set()  # They are not read, and do not want to know.
        self._greeting: dict[str, asyncio.Task[MQError | None]] = {}
        self._is_due = asyncio.Event()
        self.on_refused: Callable[[str], None] = lambda _address: None
        """Told the address of a broker that does not let us in because another replica is read."""

    def start(self) -> None:
        self._tasks.start(self._beat(), "heartbeats")

    def soon(self) -> None:
        """Something changed: tell the brokers at once."""
        self._is_due.set()

    def meet(self, address: str) -> None:
        """There is a connection to a broker. If it is not for a heartbeat, one is due: it may be back."""
        if address not in self._told:
            self.soon()

    def forget(self, address: str) -> None:
        """The connection to a broker is gone, and what it knew of us with it."""
        self._told.discard(address)
        self._introduced.discard(address)
        if address in self._known:
            self._known.discard(address)
            self.soon()
        # Else it is told again anyway, with pauses: it may be one that hangs up whenever we come.

    async def beat(self) -> bool:
        """Tell all brokers now; whether all of them know that are to know."""
        failures = await self._tell_all()
        return all(failure is None or isinstance(failure, NotReadable) for failure in failures)

    async def greet(self, address: str) -> bool:
        """Tell a broker that is to be read from now on, unless it knows; it is told again if that fails.

        All who ask at the same time share one heartbeat. True if the broker has heard of us only now.
        """
        self._refused.discard(address)
        if address in self._known:
            return False
        greeting = self._greeting.get(address)
        if greeting is None:
            body = encode_body(self._describe())
            greeting = self._tasks.start(self._tell(address, body), f"greet {address}")
            self._greeting[address] = greeting
            greeting.add_done_callback(lambda _: self._greeting.pop(address, None))
        await asyncio.wait([greeting])
        return address in self._known

    async def join(self) -> None:
        """Tell all brokers for the first time. Raises NoPermission if not one of them lets us in."""
        failures = await self._tell_all()
        refusals = [
            failure
            for failure in failures
            if isinstance(failure, NoPermission) and not isinstance(failure, NotReadable)
        ]
        if refusals and len(refusals) == len(failures):
            raise refusals[0]

    async def _tell_all(self) -> list[MQError | None]:
        """Tell all brokers, and say for each what went wrong."""
        data = self._describe()
        # Consumers may read from slaves, too: those have to know their subscriptions.
        addresses = self._table.addresses(only_masters=not data.consumer_data_set)
        for known in (self._told, self._known, self._introduced, self._refused):
            known.intersection_update(addresses)
        if self._refused:
            masters = self._table.addresses(only_masters=True)
            addresses = [one for one in addresses if one in masters or one not in self._refused]
        body = encode_body(data)
        return await asyncio.gather(*(self._tell(address, body) for address in addresses))

    async def introduce(self, *, timeout_s: float) -> None:
        """Go on when every broker of our routes knows us, or did not listen; those are told again later."""
        data = self._describe()
        addresses = self._table.addresses(only_masters=not data.consumer_data_set)
        strangers = [address for address in addresses if address not in self._introduced]
        if strangers:
            body = encode_body(data)
            await asyncio.gather(*(self._tell(address, body, timeout_s) for address in strangers))

    async def leave(self, *, producer_group: str | None = None, consumer_group: str | None = None) -> None:
        """Tell all brokers that we leave a group, so that its other members rebalance at once."""
        client_id = self._describe().client_id
        header = UnregisterClientRequest(
            client_id=client_id, producer_group=producer_group, consumer_group=consumer_group
        )
        await asyncio.gather(*(self._take_leave(address, header) for address in tuple(self._told)))

    async def _beat(self) -> None:
        backoff, now_s = Backoff(), asyncio.get_running_loop().time
        next_period_s = now_s() + self._period_s
        while True:
            self._is_due.clear()
            if now_s() >= next_period_s:
                self._refused.clear()
                next_period_s = now_s() + self._period_s
            wait_s = self._period_s
            next_s = now_s() + _LEAST_APART_S
            if await self.beat():
                backoff.reset()
            else:
                wait_s = min(wait_s, backoff.next_s(random.random()))  # noqa: S311
            await wait_at_most(wait_s, self._is_due)
            await asyncio.sleep(next_s - now_s())

    async def _tell(self, address: str, body: bytes, timeout_s: float | None = None) -> MQError | None:
        request = Command.request(RequestCode.HEART_BEAT, body=body)
        # From now on it may know us, also if we leave before it says so.
        self._told.add(address)
        try:
            await self._wire.ask(address, request, timeout_s=timeout_s)
        except ClientClosed:
            return None
        except MQError as error:
            self._told.discard(address)
            self._known.discard(address)
            self._introduced.add(address)
            if isinstance(error, NotReadable):
                self._refuse(address)
                return error
            if self._failures.is_news(address, str(error)):
                _log.warning("heartbeat failed broker=%s error=%s", address, error)
            return error
        self._failures.is_over(address)
        self._known.add(address)
        self._introduced.add(address)
        return None

    def _refuse(self, address: str) -> None:
        """A broker does not let us in. It is asked again when it is read, and else with the next period."""
        self._refused.add(address)
        self._wire.hang_up(address, "it is not read")
        self.on_refused(address)

    async def _take_leave(self, address: str, header: UnregisterClientRequest) -> None:
        request = Command.request(RequestCode.UNREGISTER_CLIENT, header)
        try:
            await self._wire.ask(address, request, timeout_s=_FAREWELL_S)
        except MQError as error:
            _log.debug("farewell failed broker=%s error=%s", address, error)
