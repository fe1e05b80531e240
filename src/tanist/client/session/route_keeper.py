"""Keeps a client's routes fresh: asked when they are needed, every 30 s, and at once after a failure.

While a broker is missing that a route named before, they are asked for more often: it is likely to come back.
While a broker's master is sought, one of its routes is asked for in short steps: another is likely to come.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from tanist.backoff import Backoff
from tanist.client.errors import ClientClosed, NoRoute
from tanist.client.session.master_search import MasterSearch
from tanist.client.session.nameservers import NameServers
from tanist.client.session.routes import RouteTable, TopicRoute
from tanist.client.session.tasks import OwnedTasks, wait_at_most
from tanist.errors import MQError
from tanist.model.route import MASTER_ID, TopicRouteData
from tanist.protocol.response_errors import TopicNotFound

_log = logging.getLogger(__name__)

_MISSING_POLL_S = 2.0
_MISSING_POLLS = 300
"""How often, and how many times, routes are asked for while a broker is missing: for ten minutes."""
_LEAST_APART_S = 0.05
"""A broker that is gone fails many requests at once; its topics' routes are asked for once."""
_ROUNDS_APART_S = 1.0
"""A client may have many topics, and a broker may fail for long: all routes are not asked for more often."""


class RouteKeeper:
    """The routes of one client, which ``table`` holds."""

    def __init__(self, name_servers: NameServers, tasks: OwnedTasks, *, poll_s: float) -> None:
        self.table = RouteTable()
        self._name_servers = name_servers
        self._tasks = tasks
        self._poll_s = poll_s
        self._asking: dict[str, asyncio.Task[TopicRoute | MQError]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._master_listeners: list[Callable[[str], None]] = []
        self._searches: dict[str, MasterSearch] = {}
        self._refresh = asyncio.Event()
        self._changed = asyncio.Event()
        self._missing: dict[str, int] = {}
        """Brokers that routes named before, and how many polls are left in which they are hoped for."""

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` called with each topic whose route changed or came."""
        self._listeners.append(listener)

    def on_master(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` called with the name of each broker that has another master than before."""
        self._master_listeners.append(listener)

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

    def seek_master(self, broker_name: str) -> None:
        """The broker's master does not serve: find out soon whether there is another."""
        if broker_name not in self._searches:
            search = MasterSearch(self.table.master_of(broker_name))
            self._searches[broker_name] = search
            self._tasks.start(self._search(broker_name, search), f"master of {broker_name}")

    def lost(self, address: str) -> None:
        """A broker can not be reached, or is no master. If a route says it is one, find out who is now."""
        masters = [name for name, addrs in self.table.replicas.items() if addrs.get(MASTER_ID) == address]
        for broker_name in masters:
            self.seek_master(broker_name)
        if not masters:
            self.suspect()

    def reached(self, address: str) -> None:
        """There is a new connection: whoever was sought there is back."""
        for search in self._searches.values():
            search.on_reached(address)

    def believe(self, broker_name: str, master: str) -> None:
        """A replica of the broker says where its master is."""
        self.table.believe(broker_name, master)
        _log.info("replica names its master broker=%s master=%s", broker_name, master)

    async def changed(self, timeout_s: float) -> bool:
        """Wait until some route is another one, or a broker's master; whether that came in time."""
        changed = self._changed
        await wait_at_most(timeout_s, changed)
        return changed.is_set()

    def wake(self) -> None:
        """Let those go on who wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _search(self, broker_name: str, search: MasterSearch) -> None:
        try:
            while (wait_s := search.next_s(random.random())) is not None:  # noqa: S311
                await asyncio.sleep(wait_s)
                topic = self.table.topic_of(broker_name)
                if search.is_over or topic is None:
                    return
                try:
                    await self.ask(topic)
                    search.on_route(self.table.master_of(broker_name))
                except TopicNotFound:
                    search.on_route(None)  # All replicas are gone.
                except MQError as error:
                    _log.debug("master not found broker=%s error=%s", broker_name, error)
            # Other topics may have routes that are as old.
            self.suspect()
        finally:
            del self._searches[broker_name]

    async def _ask(self, topic: str) -> TopicRoute | MQError:
        try:
            self._put(topic, await self._name_servers.route_of(topic))
        except MQError as error:
            return error
        route = self.table.get(topic)
        assert route is not None
        return route

    def _put(self, topic: str, data: TopicRouteData) -> None:
        before = dict(self.table.replicas)
        if self.table.put(topic, data):
            if gone := before.keys() - self.table.replicas:
                self._missing |= dict.fromkeys(gone, _MISSING_POLLS)
                self._refresh.set()
            _log.info("route changed topic=%s brokers=%s", topic, sorted(self.table.replicas))
            for broker_name, replicas in self.table.replicas.items():
                if replicas.get(MASTER_ID) != before.get(broker_name, {}).get(MASTER_ID):
                    for master_listener in self._master_listeners:
                        master_listener(broker_name)
            for listener in self._listeners:
                listener(topic)
            self.wake()

    def _next_poll_s(self) -> float:
        found = self.table.replicas
        self._missing = {
            name: left - 1 for name, left in self._missing.items() if left > 0 and name not in found
        }
        return min(self._poll_s, _MISSING_POLL_S) if self._missing else self._poll_s

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        next_round_s = loop.time()
        backoff = Backoff()
        wait_s = self._poll_s
        while True:
            await wait_at_most(wait_s, self._refresh)
            await asyncio.sleep(max(_LEAST_APART_S, next_round_s - loop.time()))
            self._refresh.clear()
            if await self._ask_for_all():
                next_round_s = loop.time() + _ROUNDS_APART_S
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
