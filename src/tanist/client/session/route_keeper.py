"""Keeps a client's routes fresh: asked when they are needed, every 30 s, and at once after a failure.

While a broker is missing that a route named before, they are asked for more often: it is likely to come back.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from tanist.backoff import Backoff
from tanist.client.errors import ClientClosed, NoRoute
from tanist.client.session.nameservers import NameServers
from tanist.client.session.routes import RouteTable, TopicRoute
from tanist.client.session.tasks import OwnedTasks, wait_at_most
from tanist.errors import MQError
from tanist.model.route import TopicRouteData

_log = logging.getLogger(__name__)

_MISSING_POLL_S = 2.0
_MISSING_POLLS = 300
"""How often, and how many times, routes are asked for while a broker is missing: for ten minutes."""
_LEAST_APART_S = 0.05
"""A broker that is gone fails many requests at once; its topics' routes are asked for once."""


class RouteKeeper:
    """The routes of one client, which ``table`` holds."""

    def __init__(self, name_servers: NameServers, tasks: OwnedTasks, *, poll_s: float) -> None:
        self.table = RouteTable()
        self._name_servers = name_servers
        self._tasks = tasks
        self._poll_s = poll_s
        self._asking: dict[str, asyncio.Task[TopicRoute | MQError]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._refresh = asyncio.Event()
        self._missing: dict[str, int] = {}
        """Brokers that routes named before, and how many polls are left in which they are hoped for."""

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` called with each topic whose route changed or came."""
        self._listeners.append(listener)

    def start(self) -> None:
        self._tasks.start(self._poll(), "routes")

    async def find(self, topic: str) -> TopicRoute:
        """The route, as it is known or else as a name server tells. Raises NoRoute or TopicNotFound."""
        return self.table.get(topic) or await self.ask(topic)

    async def ask(self, topic: str) -> TopicRoute:
        """The route as a name server tells it now. All who ask at the same time share one answer."""
        asking = self._asking.get(topic)
        if asking is None:
            asking = self._tasks.start(self._ask(topic), f"route of {topic}")
            self._asking[topic] = asking
            asking.add_done_callback(lambda _: self._asking.pop(topic, None))
        # Not awaited itself: whoever asks may be cancelled, and the others still want to know.
        await asyncio.wait([asking])
        if asking.cancelled():
            raise ClientClosed("client")
        answer = asking.result()
        if isinstance(answer, MQError):
            raise answer
        return answer

    def suspect(self) -> None:
        """Something that a route said is not so: ask for all of them again, soon."""
        self._refresh.set()

    async def _ask(self, topic: str) -> TopicRoute | MQError:
        try:
            self._put(topic, await self._name_servers.route_of(topic))
        except MQError as error:
            return error
        route = self.table.get(topic)
        assert route is not None
        return route

    def _put(self, topic: str, data: TopicRouteData) -> None:
        before = set(self.table.replicas)
        if self.table.put(topic, data):
            if gone := before.difference(self.table.replicas):
                self._missing |= dict.fromkeys(gone, _MISSING_POLLS)
                self._refresh.set()
            _log.info("route changed topic=%s brokers=%s", topic, sorted(self.table.replicas))
            for listener in self._listeners:
                listener(topic)

    def _next_poll_s(self) -> float:
        found = self.table.replicas
        self._missing = {
            name: left - 1 for name, left in self._missing.items() if left > 0 and name not in found
        }
        return min(self._poll_s, _MISSING_POLL_S) if self._missing else self._poll_s

    async def _poll(self) -> None:
        backoff = Backoff()
        wait_s = self._poll_s
        while True:
            await wait_at_most(wait_s, self._refresh)
            await asyncio.sleep(_LEAST_APART_S)
            self._refresh.clear()
            if await self._ask_for_all():
                backoff.reset()
                wait_s = self._next_poll_s()
            else:
                wait_s = min(self._poll_s, backoff.next_s(random.random()))  # noqa: S311

    async def _ask_for_all(self) -> bool:
        """Ask for all routes again; False as soon as no name server answers. The old ones stay then."""
        for topic in self.table.topics:
            try:
                await self.ask(topic)
            except MQError as error:
                _log.warning("route not refreshed topic=%s error=%s", topic, error)
                if isinstance(error, NoRoute):
                    return False
        return True
