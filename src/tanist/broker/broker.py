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
from collections.abc import AsyncGenerator, Sequence
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from functools import partial
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from tanist.broker.acl import AccessGuard, AclFiles
from tanist.broker.chores import doing_chores
from tanist.broker.client_ports import ClientPorts, port_error
from tanist.broker.clients import ClientTable
from tanist.broker.controlled.identity import IdentityFiles
from tanist.broker.controlled_role import ControlledRole, without_role
from tanist.broker.coordinated_role import CoordinatedRole, as_assigned
from tanist.broker.delays.rules import DelayRules
from tanist.broker.delays.table import DelayTable
from tanist.broker.duties import Duties
from tanist.broker.groups import GroupTable
from tanist.broker.ha_port import bind_ha_port
from tanist.broker.lasting import running
from tanist.broker.late import LongAnswers
from tanist.broker.locks import QueueLocks
from tanist.broker.offsets import OffsetTable
from tanist.broker.operating.broker_metrics import broker_metrics
from tanist.broker.operating.config_file import ConfigFile
from tanist.broker.operating.damage import tell_damage
from tanist.broker.operating.live_config import LiveConfig
from tanist.broker.operating.stats import Counters
from tanist.broker.placing import Placing
from tanist.broker.pull_progress import PullProgress
from tanist.broker.rebuilding import SlaveRounds
from tanist.broker.registration import Registration
from tanist.broker.replication import Parts, Replication
from tanist.broker.resets.order_file import OrderFile
from tanist.broker.resets.table import OrderTable, set_unsaved
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.broker.topics import TopicTable
from tanist.broker.writer import LogWriter
from tanist.clock import Clock, SystemClock
from tanist.config import ProcessSettings
from tanist.errors import lone_error
from tanist.ha.settings import HaAckMode, HaSettings
from tanist.metrics import OnDemand
from tanist.model.host import pack_host
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.sync import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfigTable
from tanist.remoting import RemotingClient, ServerLimits, TlsSettings, bind_port
from tanist.store import MessageStore, StoreSettings
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tanist.store.flush import Flusher
from tanist.store.scrub import Scrub
from tanist.store.upkeep import Upkeep

_log = logging.getLogger(__name__)


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
        process: ProcessSettings | None = None,
        config_file: Path | None = None,
        topics: Sequence[TopicConfig] = (),
    ) -> None:
        """``config_file`` is where the settings come from, and where changes of them are written to.

        ``topics`` are there when it begins to serve; those that the store has already stay as they are.
        """
        self._settings = _first(settings)
        self._has_fast_port = settings.listen_port != 0
        self._store_settings = store_settings
        self._limits = limits or ServerLimits()
        self._tls = tls
        self._ha = ha or HaSettings()
        self._process = process or ProcessSettings()
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
        with self._bind() as bound:
            # Records, routes and whoever asks for the settings tell the real ports.
            self._settings = msgspec.structs.replace(self._settings, listen_port=bound.getsockname()[1])
            if self._settings.coordinator:
                self._settings = await as_assigned(self._settings, self._clock, self._tls)
            async with self._serving_on(bound):
                yield

    @asynccontextmanager
    async def _serving_on(self, bound: socket.socket) -> AsyncGenerator[None]:
        with self._bind_ha() as ha_bound:
            if ha_bound is not None:
                self._ha = msgspec.structs.replace(self._ha, ha_listen_port=ha_bound.getsockname()[1])
            if self._settings.is_slave or self._settings.enable_controller_mode:
                root = Path(self._settings.store_path_root_dir)
                rounds = SlaveRounds(
                    partial(self._serving, ha_bound),
                    bound,
                    root,
                    self._clock,
                    forget_identity=self._forget_identity,
                )
                async with rounds.serving():
                    yield
            else:
                async with self._serving(ha_bound, bound):
                    yield

    @asynccontextmanager
    async def _serving(
        self, ha_bound: socket.socket | None, bound: socket.socket, rounds: SlaveRounds | None = None
    ) -> AsyncGenerator[None]:
        root = Path(self._settings.store_path_root_dir)
        host = pack_host(self._settings.broker_ip1, self._settings.listen_port)
        with (
            MessageStore.open(
                root,
                self._store_settings,
                store_host=host,
                clock=self._clock,
                waits_for_confirm=self._settings.enable_controller_mode,
                is_waited_for=self._ha.ha_ack_mode is HaAckMode.FLUSHED,
            ) as store,
            lone_error(),
        ):
            async with asyncio.TaskGroup() as tasks:
                flusher = Flusher(store.log, self._store_settings, self._clock)
                state = self._make_state(root, store, flusher, host)
                if rounds is not None:
                    state.rebuild, state.rebuild_failure = rounds.rebuild, rounds.failure
                # Before anybody is told of this log, it is known what is damaged in it.
                state.scrub.on_found = partial(tell_damage, state)
                state.scrub.recall()
                ports = ClientPorts(state, self._limits, self._tls, self._guard)
                duties = Duties(state, ports, tasks, self._tls)
                state.config.on_change(state.use_config)
                state.config.on_change(lambda: flusher.use(state.config.store))
                async with (
                    self._measured(state),
                    doing_chores(state, flusher, self._guard, tasks),
                    ports.closing(),
                    self._registering(state) as registration,
                    self._on_duty(duties, registration, ha_bound, flusher),
                ):
                    await ports.start(bound, has_fast=self._has_fast_port)
                    try:
                        async with self._registered(registration, tasks):
                            yield
                    finally:
                        # Another round goes on with what was changed while this one ran.
                        self._settings, self._store_settings = _first(state.config.broker), state.config.store

    def _forget_identity(self) -> None:
        """Also where the settings keep it out of the store's folder, which is set aside with the log."""
        if self._settings.enable_controller_mode:
            IdentityFiles(Disk(), self._settings).forget()

    def _make_state(self, root: Path, store: MessageStore, flusher: Flusher, host: bytes) -> BrokerState:
        disk = Disk()
        writer = LogWriter(store, flusher)
        replication = Replication(
            Parts(self._settings, self._ha, self._tls, store, writer, flusher, self._clock)
        )
        file = ConfigFile(self._config_file) if self._config_file is not None else None
        topics = TopicTable.open(ConfigTable(disk, root, TopicConfigTable), self._settings, self._clock)
        topics.add_several(self._topics, max_new=len(self._topics))
        delays = DelayTable.open(disk, root, self._settings, store, self._clock)
        writer.on_cut.append(delays.on_cut)
        offsets = OffsetTable.open(ConfigTable(disk, root, ConsumerOffsetTable), self._clock)
        resets = OrderTable(OrderFile(disk, root))
        set_unsaved(resets, offsets)
        fixed = (self._limits, self._ha, self._process, *(() if self._tls is None else (self._tls,)))
        state = BrokerState(
            settings=self._settings,
            ha=self._ha,
            config=LiveConfig(self._settings, self._store_settings, *fixed, file=file),
            store=store,
            topics=topics,
            groups=GroupTable.open(
                ConfigTable(disk, root, SubscriptionGroupTable), self._settings, self._clock
            ),
            offsets=offsets,
            clients=ClientTable(),
            locks=QueueLocks(),
            placing=Placing(
                delays=DelayRules.of(self._settings, self._store_settings.delay_levels),
                takes_transactions=not self._settings.reject_transaction_message,
            ),
            delays=delays,
            writer=writer,
            replication=replication,
            counters=Counters(cluster=self._settings.broker_cluster_name, boot_ms=self._clock.now_ms()),
            upkeep=Upkeep(store, self._clock),
            scrub=Scrub(store, self._clock),
            pull_progress=PullProgress(),
            long_answers=LongAnswers(self._clock),
            clock=self._clock,
            store_host=host,
            pid=os.getpid(),
            resets=resets,
        )
        writer.on_grown.append(
            lambda: state.writes.on_grown(store, writer, born_host=host, now_ms=self._clock.now_ms())
        )
        return state

    @asynccontextmanager
    async def _measured(self, state: BrokerState) -> AsyncGenerator[None]:
        figures = OnDemand(partial(broker_metrics, state))
        self.metrics.register(figures)
        try:
            yield
        finally:
            self.metrics.unregister(figures)

    @asynccontextmanager
    async def _on_duty(
        self, duties: Duties, registration: Registration, ha_bound: socket.socket | None, flusher: Flusher
    ) -> AsyncGenerator[None]:
        """Do what the role asks for, which the config or the controller gives."""
        if self._settings.enable_controller_mode:
            assert ha_bound is not None
            async with ControlledRole(duties, registration, ha_bound, flusher).held():
                yield
        elif self._settings.coordinator:
            async with CoordinatedRole(duties, registration, ha_bound).held():
                yield
        elif ha_bound is not None:
            async with duties.master(ha_bound):
                yield
        else:
            async with duties.slave() as following:
                registration.on_master(following.use_master)
                following.follower.on_lost.append(registration.master_lost)
                yield

    def _bind(self) -> socket.socket:
        try:
            return bind_port(self._settings.bind_address, self._settings.listen_port)
        except OSError as error:
            raise port_error(self._settings, error) from error

    def _bind_ha(self) -> AbstractContextManager[socket.socket | None]:
        """A slave has no such port: nobody follows it, unless it may become master."""
        settings = self._settings
        if settings.is_slave and not settings.enable_controller_mode:
            return nullcontext()
        if not self._has_fast_port:
            # Where the system chose the port, the one above it may be anybody's.
            settings = msgspec.structs.replace(settings, listen_port=0)
        return bind_ha_port(settings, self._ha)

    @asynccontextmanager
    async def _registering(self, state: BrokerState) -> AsyncGenerator[Registration]:
        """What tells the name servers of this broker."""
        client = RemotingClient(tls=self._tls, on_disconnect=lambda _server: registration.connection_lost())
        registration = Registration(state, client, is_on=self._is_shown)
        state.topics.on_change(registration.topics_changed)
        try:
            yield registration
        finally:
            await client.close()

    @property
    def _is_shown(self) -> bool:
        """Whether name servers are told from the start: not before it is known what may be done here."""
        settings = self._settings
        return not settings.enable_controller_mode and (settings.is_slave or not settings.coordinator)

    @asynccontextmanager
    async def _registered(self, registration: Registration, tasks: asyncio.TaskGroup) -> AsyncGenerator[None]:
        await registration.register()
        try:
            async with running(tasks, {"registration": registration.run}):
                yield
        finally:
            await registration.unregister()


def _first(settings: BrokerSettings) -> BrokerSettings:
    """What a broker begins with: where a controller gives the role, none."""
    return without_role(settings) if settings.enable_controller_mode else settings
