"""The controller at work: it owns the ports, the tasks and the session with the registry."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Metric

from tanist.clock import Clock, SystemClock
from tanist.controller.handlers import Context, bound_handlers
from tanist.controller.keeping import GroupKeeper
from tanist.controller.leading import Leading, OpenSession
from tanist.controller.reigns import Reigns
from tanist.controller.remote_sessions import RemoteSessions
from tanist.controller.settings import ControllerSettings, LiveSettings
from tanist.coord import Registry, open_registry
from tanist.coord.open import SqlitePlace, parse_place
from tanist.coord.sqlite_registry import SqliteHome
from tanist.errors import lone_error
from tanist.metrics import OnDemand, Sampler, names
from tanist.metrics.names import Process
from tanist.remoting import (
    ClientLimits,
    Connection,
    RemotingClient,
    RemotingServer,
    ServerLimits,
    TlsSettings,
)

_CLOSE_GRACE_S = 2.0
_LEADER, _FOLLOWER = 3, 2


class Controller:
    """One controller. It serves while the block of ``serving`` lasts, once.

    controller = Controller(ControllerSettings(listen_port=0, controller_store_path="/var/lib/tanist"))
    async with controller.serving():
        print(controller.address)
    """

    def __init__(
        self,
        settings: ControllerSettings,
        *,
        server_limits: ServerLimits | None = None,
        client_limits: ClientLimits | None = None,
        tls: TlsSettings | None = None,
        clock: Clock | None = None,
        open_session: OpenSession | None = None,
    ) -> None:
        """``open_session`` takes the place of the registry that the settings name."""
        self._settings = LiveSettings(settings)
        self._clock = clock or SystemClock()
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        limits = server_limits or ServerLimits()
        # Brokers hear of a new master on their own port: they take no requests on connections they opened.
        self._client = RemotingClient(limits=client_limits, tls=tls)
        # A registry in a file outlives our sessions with it: brokers have theirs in it too.
        self._home: SqliteHome | None = None
        if open_session is None:
            timeout_s = settings.coordinator_timeout_millis / 1000
            match parse_place(settings.registry_url):
                case SqlitePlace(path):
                    self._home = SqliteHome(path, self._clock)
                    open_session = partial(self._home.session, timeout_s)
                case _:
                    open_session = partial(
                        open_registry, settings.registry_url, timeout_s=timeout_s, clock=self._clock
                    )
        self._remote_sessions = None if self._home is None else RemoteSessions(self._home)
        self._leading = Leading(
            open_session,
            clock=self._clock,
            load=self._load,
            on_begin=self._on_begin,
            on_look=self._on_look,
            on_end=self._on_end,
        )
        self._keeper = GroupKeeper(self._leading)
        self._reigns = Reigns(
            self._leading,
            self._keeper,
            self._settings,
            clock=self._clock,
            notify=self._client.notify,
            spawn=self._spawn,
        )
        self._context = Context(
            *(self._reigns, self._keeper, self._leading, self._settings, limits, self._clock, self._spawn),
            self._remote_sessions,
        )
        self._server = RemotingServer(
            bound_handlers(self._context), limits=limits, tls=tls, on_close=self._on_connection_lost
        )
        self.metrics = CollectorRegistry()
        """What can be measured of it."""
        self.metrics.register(OnDemand(self._measure))

    @property
    def address(self) -> str:
        """Where it is reached, with the real port if 0 was asked for."""
        settings = self._settings.current
        return settings.address_at(settings.listen_port)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve from the beginning of the block to its end. Raises ConfigError if that can not begin."""
        async with AsyncExitStack() as around:
            if self._home is not None:
                await around.enter_async_context(self._home)
            await self._listen()
            around.push_async_callback(self._close)
            with lone_error():
                async with asyncio.TaskGroup() as tasks:
                    self._tasks = tasks
                    leading = tasks.create_task(self._leading.run(self.address))
                    await self._leading.wait_for_first_look()
                    yield
                    self._tasks = None
                    self._reigns.close()
                    for task in (leading, *self._running):
                        task.cancel()

    async def _close(self) -> None:
        self._tasks = None
        self._reigns.close()
        await self._server.close(_CLOSE_GRACE_S)
        self._context.close()
        await self._client.close()

    async def _listen(self) -> None:
        settings = self._settings.current
        await self._server.start_as_set(settings.bind_address, settings.listen_port)
        # Whoever asks for the settings is told the real port.
        self._settings.current = msgspec.structs.replace(settings, listen_port=self._server.port)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done in the background, or not at all once we stop."""
        if self._tasks is None:
            work.close()
        else:
            task = self._tasks.create_task(work)
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _measure(self) -> Iterator[Metric]:
        sampler, records = Sampler(Process.CONTROLLER, self.address), self._keeper.records
        is_leading = self._leading.is_leading
        # As DLedger's roles in RocketMQ: a controller that does not lead is ready to.
        yield sampler.one(names.CONTROLLER_ROLE, _LEADER if is_leading else _FOLLOWER)
        alive = Counter((live.cluster, live.broker_name) for live in self._reigns.live.all())
        yield sampler.many(names.CONTROLLER_ACTIVE, alive)
        yield sampler.one(names.CONTROLLER_ELECTIONS, self._reigns.election_count)
        if is_leading:
            yield sampler.one(names.CONTROLLER_GROUPS, len(records))
            masterless = sum(record.master_id is None for record in records)
            yield sampler.one(names.CONTROLLER_MASTERLESS, masterless)
            yield sampler.many(
                names.CONTROLLER_EPOCH, {(record.broker_name,): record.epoch for record in records}
            )
        yield sampler.one(names.CONTROLLER_CONNECTIONS, self._server.connection_count)
        yield from sampler.end()

    async def _load(self, registry: Registry) -> None:
        await self._keeper.load(registry)

    def _on_begin(self) -> None:
        self._reigns.on_begin()

    def _on_look(self) -> None:
        self._reigns.review_all()

    def _on_end(self) -> None:
        self._keeper.forget()
        self._reigns.on_end()

    def _on_connection_lost(self, connection: Connection) -> None:
        if self._remote_sessions is not None:
            self._remote_sessions.on_connection_lost(connection)
        # Connections that end because we stop are no news about those at their other ends.
        if self._tasks is not None:
            self._reigns.on_connection_lost(connection)
