"""One broker at work: its store, its tables, its ports, and the tasks that keep them going.

take the port -> open the store -> listen -> register -> serve
              -> unregister -> stop listening -> close the store

What fails in a task of its own, such as a save on a full disk, is told in the log and tried again:
consumers go on reading while nothing can be written.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from functools import partial
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from tanist.broker.acl import AccessGuard, AclFiles, Needs, topic_at
from tanist.broker.clients import ClientTable
from tanist.broker.delays.delivery import Delivery
from tanist.broker.delays.rules import DelayRules
from tanist.broker.delays.table import DelayTable
from tanist.broker.following import Following
from tanist.broker.groups import GroupTable
from tanist.broker.ha_port import bind_ha_port
from tanist.broker.handlers import all_routes, clients, consumption, fast_routes
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.late import LongAnswers
from tanist.broker.locks import QueueLocks
from tanist.broker.offsets import OffsetTable
from tanist.broker.operating.config_file import ConfigFile
from tanist.broker.operating.counting import Counting
from tanist.broker.operating.ha_metrics import ha_metrics
from tanist.broker.operating.ha_status import ha_status
from tanist.broker.operating.lag_lines import LagLines
from tanist.broker.operating.live_config import LiveConfig
from tanist.broker.operating.stats import Counters
from tanist.broker.placing import Placing
from tanist.broker.pull_progress import PullProgress
from tanist.broker.rebuilding import SlaveRounds, drop_when_in_step
from tanist.broker.registration import Registration
from tanist.broker.replication import Parts, Replication
from tanist.broker.settings import FAST_PORT_DISTANCE, BrokerRole, BrokerSettings
from tanist.broker.slave_role import without_writes
from tanist.broker.state import BrokerState
from tanist.broker.tables_feed import TablesFeed
from tanist.broker.topics import TopicTable
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.broker.writer import LogWriter
from tanist.clock import Clock, SystemClock
from tanist.errors import ConfigError, MQError, lone_error
from tanist.ha.settings import HaSettings
from tanist.metrics import OnDemand
from tanist.model.host import pack_host
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.sync import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfigTable
from tanist.remoting import (
    Connection,
    RemotingClient,
    RemotingServer,
    ServerLimits,
    TlsSettings,
    bind_port,
)
from tanist.store import MessageStore, StoreSettings
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tanist.store.flush import Flusher
from tanist.store.upkeep import Upkeep

_log = logging.getLogger(__name__)

_CLOSE_GRACE_S = 1.0
_LINGER_S = 0.2
_FLUSH_GRACE_S = 1.0
_CLIENT_SCAN_S = 10.0
_AFTER_FAILURE_S = 1.0
_FOLLOWED_SAVE_MS = 1_000
"""How often a slave saves what its master told of topics and groups."""


class Broker:
    """One broker. It serves while the block of ``serving`` lasts, once."""

    def __init__(
        self,
        settings: BrokerSettings,
        store_settings: StoreSettings,
        *,
        limits: ServerLimits | None = None,
        tls: TlsSettings | None = None,
        ha: HaSettings | None = None,
        clock: Clock | None = None,
        config_file: Path | None = None,
        topics: Sequence[TopicConfig] = (),
    ) -> None:
        """``config_file`` is where the settings come from, and where changes of them are written to.

        ``topics`` are there when it begins to serve; those that the store has already stay as they are.
        """
        self._settings = settings
        self._has_fast_port = settings.listen_port != 0
        self._store_settings = store_settings
        self._limits = limits or ServerLimits()
        self._tls = tls
        self._ha = ha or HaSettings()
        self._clock = clock or SystemClock()
        self._config_file = config_file
        self._topics = topics
        self._guard: AccessGuard | None = None
        self.metrics = CollectorRegistry()
        """What can be measured of it, while it serves."""

    @property
    def address(self) -> str:
        """What clients are told to connect to, with the real port once it serves."""
        return self._settings.address

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve from the beginning of the block to its end. Raises ConfigError if that can not begin."""
        if self._settings.acl_enable:
            self._guard = AccessGuard(AclFiles(self._settings), self._clock)
        with self._bind() as bound, self._bind_ha() as ha_bound:
            # Records, routes and whoever asks for the settings tell the real ports.
            self._settings = msgspec.structs.replace(self._settings, listen_port=bound.getsockname()[1])
            if ha_bound is not None:
                self._ha = msgspec.structs.replace(self._ha, ha_listen_port=ha_bound.getsockname()[1])
                async with self._serving(bound, ha_bound):
                    yield
            else:
                root = Path(self._settings.store_path_root_dir)
                async with SlaveRounds(self._serving_slave, bound, root, self._clock).serving():
                    yield

    def _serving_slave(self, bound: socket.socket, rounds: SlaveRounds) -> AbstractAsyncContextManager[None]:
        return self._serving(bound, None, rounds)

    @asynccontextmanager
    async def _serving(
        self, bound: socket.socket, ha_bound: socket.socket | None, rounds: SlaveRounds | None = None
    ) -> AsyncGenerator[None]:
        root = Path(self._settings.store_path_root_dir)
        host = pack_host(self._settings.broker_ip1, self._settings.listen_port)
        with (
            MessageStore.open(root, self._store_settings, store_host=host, clock=self._clock) as store,
            lone_error(),
        ):
            async with asyncio.TaskGroup() as tasks:
                flusher = Flusher(store.log, self._store_settings, self._clock)
                state = self._make_state(root, store, flusher, host)
                if rounds is not None:
                    state.rebuild, state.rebuild_failure = rounds.rebuild, rounds.failure
                keeper = TransactionKeeper(state)
                state.config.on_change(state.use_config)
                state.config.on_change(lambda: flusher.use(state.config.store))
                async with (
                    self._measured(state),
                    self._chores(state, flusher, tasks),
                    self._listening(bound, state, keeper),
                    self._replicating(ha_bound, state, tasks) as following,
                    self._keeping_transactions(state, keeper, tasks),
                    self._registered(state, tasks, following),
                ):
                    try:
                        yield
                    finally:
                        # Another round goes on with what was changed while this one ran.
                        self._settings, self._store_settings = state.config.broker, state.config.store

    def _make_state(self, root: Path, store: MessageStore, flusher: Flusher, host: bytes) -> BrokerState:
        disk = Disk()
        writer = LogWriter(store, flusher)
        replication = Replication(
            Parts(self._settings, self._ha, self._tls, store, writer, flusher, self._clock)
        )
        if self._settings.broker_role is BrokerRole.SYNC_MASTER:
            writer.pending.use(replication.double_write)
        file = ConfigFile(self._config_file) if self._config_file is not None else None
        topics = TopicTable.open(ConfigTable(disk, root, TopicConfigTable), self._settings, self._clock)
        topics.add_several(self._topics, max_new=len(self._topics))
        fixed = [self._limits, self._ha] if self._tls is None else [self._limits, self._ha, self._tls]
        return BrokerState(
            settings=self._settings,
            ha=self._ha,
            config=LiveConfig(self._settings, self._store_settings, *fixed, file=file),
            store=store,
            topics=topics,
            groups=GroupTable.open(
                ConfigTable(disk, root, SubscriptionGroupTable), self._settings, self._clock
            ),
            offsets=OffsetTable.open(ConfigTable(disk, root, ConsumerOffsetTable), self._clock),
            clients=ClientTable(),
            locks=QueueLocks(),
            placing=Placing(
                delays=DelayRules.of(self._settings, self._store_settings.delay_levels),
                takes_transactions=not self._settings.reject_transaction_message,
            ),
            delays=DelayTable.open(disk, root, self._settings, store, self._clock),
            writer=writer,
            replication=replication,
            counters=Counters(cluster=self._settings.broker_cluster_name, boot_ms=self._clock.now_ms()),
            upkeep=Upkeep(store, self._clock),
            pull_progress=PullProgress(),
            long_answers=LongAnswers(self._clock),
            clock=self._clock,
            store_host=host,
            pid=os.getpid(),
        )

    @asynccontextmanager
    async def _measured(self, state: BrokerState) -> AsyncGenerator[None]:
        figures = OnDemand(lambda: ha_metrics(ha_status(state), cluster=state.settings.broker_cluster_name))
        self.metrics.register(figures)
        try:
            yield
        finally:
            self.metrics.unregister(figures)

    @asynccontextmanager
    async def _chores(
        self, state: BrokerState, flusher: Flusher, tasks: asyncio.TaskGroup
    ) -> AsyncGenerator[None]:
        """Do what has to be done now and then; at the end the offsets are saved once more."""
        counting, delays = Counting(state), state.delays
        state.store.dispatcher.listeners.append(counting.on_indexed)
        chores = [
            tasks.create_task(_lasting("flush", flusher.run)),
            tasks.create_task(_lasting("upkeep", state.upkeep.run)),
            *(
                tasks.create_task(_lasting(name, partial(_saving, start_save, interval_ms)))
                for name, start_save, interval_ms in (
                    (
                        "offsets",
                        partial(_start_save_offsets, state),
                        lambda: state.settings.flush_consumer_offset_interval,
                    ),
                    (
                        "delay offsets",
                        delays.start_save_levels,
                        lambda: state.settings.flush_delay_offset_interval,
                    ),
                    ("timer", delays.start_save_timers, lambda: state.settings.timer_flush_interval_ms),
                )
            ),
            tasks.create_task(_lasting("clients", lambda: self._scan_clients(state))),
            tasks.create_task(_lasting("counting", counting.run)),
        ]
        if self._guard is not None:
            chores.append(tasks.create_task(_lasting("access rules", self._guard.watch)))
        if state.settings.is_slave:
            chores.append(tasks.create_task(_lasting("old log", lambda: drop_when_in_step(state))))
        else:
            # What a slave delivered would make its log another one than its master's.
            delivery = Delivery(state)
            state.store.dispatcher.listeners.append(delivery.on_indexed)
            chores.append(tasks.create_task(_lasting("delivery", delivery.run)))
            chores.append(tasks.create_task(_lasting("lag", LagLines(state).run)))
        try:
            yield
        finally:
            for chore in chores:
                chore.cancel()
            try:
                # Until they have ended, another thread may be saving the same offsets.
                await asyncio.wait(chores)
            finally:
                _save_at_end(state)

    @asynccontextmanager
    async def _replicating(
        self, ha_bound: socket.socket | None, state: BrokerState, tasks: asyncio.TaskGroup
    ) -> AsyncGenerator[Following | None]:
        """Serve the slaves, or follow the master."""
        if ha_bound is not None:
            async with state.replication.serving_slaves(ha_bound, partial(TablesFeed, state)):
                try:
                    yield None
                finally:
                    # Whoever waits for a slave's ack gets it while there is a link for it.
                    await state.writer.close(_FLUSH_GRACE_S)
            return
        client = RemotingClient(tls=self._tls)
        following = Following(state, client)
        chores = [
            tasks.create_task(_lasting(name, partial(_saving, start_save, lambda: _FOLLOWED_SAVE_MS)))
            for name, start_save in (("topics", state.topics.start_save), ("groups", state.groups.start_save))
        ]
        chores.append(tasks.create_task(_lasting("following", following.follower.run)))
        following.sync.start(tasks)
        try:
            yield following
        finally:
            for chore in chores:
                chore.cancel()
            await asyncio.wait(chores)
            await following.sync.close()
            await client.close()

    @asynccontextmanager
    async def _keeping_transactions(
        self, state: BrokerState, keeper: TransactionKeeper, tasks: asyncio.TaskGroup
    ) -> AsyncGenerator[None]:
        """Ask about transactions; at the end, while the log still takes it, note what is done with.

        On a slave nobody does: its master asks, and its producers answer there.
        """
        if state.settings.is_slave:
            yield
            return
        state.store.dispatcher.listeners.append(keeper.on_indexed)
        task = tasks.create_task(_lasting("transactions", keeper.run))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            keeper.close()

    @asynccontextmanager
    async def _listening(
        self, bound: socket.socket, state: BrokerState, keeper: TransactionKeeper
    ) -> AsyncGenerator[None]:
        if not state.settings.is_slave:
            # Before the first request comes.
            keeper.open()
        pulls = PullHandler(state)
        state.store.dispatcher.listeners.append(pulls.on_indexed)

        def on_close(connection: Connection) -> None:
            pulls.on_lost(connection)
            clients.on_lost(state, connection)

        routes = all_routes(state, pulls, keeper)
        if state.settings.is_slave:
            routes = without_writes(routes, lambda: state.replication.master_address)
        if self._guard is not None:
            routes = self._guard.guard(routes, Needs(self._settings, partial(topic_at, state.store)))
        main = RemotingServer(routes, limits=self._limits, tls=self._tls, on_close=on_close)
        fast = RemotingServer(fast_routes(routes), limits=self._limits, tls=self._tls, on_close=on_close)
        try:
            await self._listen(bound, main, fast)
            yield
        finally:
            # Whoever waits for an answer gets it while there is a connection to send it on.
            await state.writer.close(_FLUSH_GRACE_S)
            pulls.close()
            if main.connection_count or fast.connection_count:
                # Pulls that are on their way are refused too, before their connection goes.
                await asyncio.sleep(_LINGER_S)
            await asyncio.gather(main.close(_CLOSE_GRACE_S), fast.close(_CLOSE_GRACE_S))

    def _bind(self) -> socket.socket:
        try:
            return bind_port(self._settings.bind_address, self._settings.listen_port)
        except OSError as error:
            raise self._port_error(error) from error

    def _bind_ha(self) -> AbstractContextManager[socket.socket | None]:
        """A slave has no such port: nobody follows it."""
        return nullcontext() if self._settings.is_slave else bind_ha_port(self._settings, self._ha)

    async def _listen(self, bound: socket.socket, main: RemotingServer, fast: RemotingServer) -> None:
        try:
            await main.start_on(bound)
            if self._has_fast_port:
                await fast.start(self._settings.bind_address, self._settings.listen_port - FAST_PORT_DISTANCE)
        except OSError as error:
            raise self._port_error(error) from error

    def _port_error(self, error: OSError) -> ConfigError:
        remedy = f"free ports, this one and the one {FAST_PORT_DISTANCE} below ({error.strerror or error})"
        return ConfigError("listenPort", self._settings.listen_port, remedy)

    @asynccontextmanager
    async def _registered(
        self, state: BrokerState, tasks: asyncio.TaskGroup, following: Following | None
    ) -> AsyncGenerator[None]:
        client = RemotingClient(tls=self._tls, on_disconnect=lambda _server: registration.connection_lost())
        registration = Registration(state, client)
        state.topics.on_change(registration.topics_changed)
        if following is not None:
            registration.on_master(following.use_master)
            following.follower.on_lost.append(registration.master_lost)
        try:
            await registration.register()
            task = tasks.create_task(_lasting("registration", registration.run))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])
                await registration.unregister()
        finally:
            await client.close()

    async def _scan_clients(self, state: BrokerState) -> None:
        while True:
            await asyncio.sleep(_CLIENT_SCAN_S)
            clients.on_tick(state)
            consumption.on_tick(state)


def _save_at_end(state: BrokerState) -> None:
    try:
        state.delays.close()
    except (MQError, OSError) as error:
        # The next start finds in the log what was delivered.
        _log.warning("delay offsets are not saved reason=%s", error)
    # A master has saved its own at every change.
    for start_save in (state.topics.start_save, state.groups.start_save):
        if finish := start_save():
            finish()
    state.offsets.save()


def _start_save_offsets(state: BrokerState) -> Callable[[], None] | None:
    """A slave's after the log: they say how far transactions are done with, and it may be master next."""
    finish = state.offsets.start_save()
    if finish is None or not state.settings.is_slave:
        return finish

    def finish_after_flush() -> None:
        state.store.flush()
        finish()

    return finish_after_flush


async def _saving(
    start_save: Callable[[], Callable[[], None] | None], interval_ms: Callable[[], int]
) -> None:
    """Save what has changed every so often, the disk's part off the event loop."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="saving") as executor:
        while True:
            await asyncio.sleep(interval_ms() / 1000)
            if finish := start_save():
                await loop.run_in_executor(executor, finish)


async def _lasting(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run what runs until it is cancelled, and run it again when the disk or the like made it fail."""
    task = asyncio.current_task()
    assert task is not None
    told = ""
    while True:
        try:
            await run()
        except (MQError, OSError) as error:
            if task.cancelling():
                raise
            # A disk that failed once fails every second: told once, it is known.
            if str(error) != told:
                told = str(error)
                _log.error("task failed and is tried again task=%s reason=%s", name, told)
        await asyncio.sleep(_AFTER_FAILURE_S)
