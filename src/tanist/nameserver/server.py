"""The name server at work: it owns the sockets, the clock and the file, and carries actions out."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import msgspec
from prometheus_client import CollectorRegistry, Metric

from tanist.clock import Clock, SystemClock
from tanist.errors import lone_error
from tanist.metrics import OnDemand, Sampler, names
from tanist.metrics.names import Process
from tanist.nameserver.handlers import Context, bound_handlers
from tanist.nameserver.kv_file import KVFile
from tanist.nameserver.replica_group import Action, CloseConnection, NotifyMinBrokerId
from tanist.nameserver.route_table import RouteTable
from tanist.nameserver.settings import LiveSettings, NameServerSettings
from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.nameserver import NotifyMinBrokerIdRequest
from tanist.remoting import (
    ClientLimits,
    Connection,
    RemotingClient,
    RemotingServer,
    ServerLimits,
    TlsSettings,
)

_CLOSE_GRACE_S = 2.0


class NameServer:
    """One name server. It serves while the block of ``serving`` lasts, once."""

    def __init__(
        self,
        settings: NameServerSettings,
        *,
        server_limits: ServerLimits | None = None,
        client_limits: ClientLimits | None = None,
        tls: TlsSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings = LiveSettings(settings)
        self._clock = clock or SystemClock()
        self._table = RouteTable()
        self._kv = KVFile(settings.kv_config_file)
        self._is_stopping = False
        # Brokers hear of changes on their own port: they do not take requests on the connection they opened.
        self._client = RemotingClient(limits=client_limits, tls=tls)
        limits = server_limits or ServerLimits()
        context = Context(
            self._table,
            self._kv,
            self._settings,
            limits,
            self._clock,
            self._clock.monotonic_s(),
            self._carry_out,
        )
        self._server = RemotingServer(
            bound_handlers(context), limits=limits, tls=tls, on_close=self._on_connection_lost
        )
        self.metrics = CollectorRegistry()
        """What can be measured of it."""
        self.metrics.register(OnDemand(self._measure))

    @property
    def address(self) -> str:
        """Where it listens, with the real port if 0 was asked for."""
        host, port = self._settings.current.bind_address, self._settings.current.listen_port
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve from the beginning of the block to its end. Raises ConfigError if that can not begin."""
        self._kv.load()
        await self._listen()
        try:
            with lone_error():
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._kv.run())
                    scan = tasks.create_task(self._scan())
                    yield
                    self._is_stopping = True
                    scan.cancel()
                    self._kv.close()
        finally:
            self._is_stopping = True
            await self._server.close(_CLOSE_GRACE_S)
            await self._client.close()

    async def _listen(self) -> None:
        settings = self._settings.current
        await self._server.start_as_set(settings.bind_address, settings.listen_port)
        # Whoever asks for the settings is told the real port.
        self._settings.current = msgspec.structs.replace(settings, listen_port=self._server.port)

    async def _scan(self) -> None:
        while True:
            await asyncio.sleep(self._settings.current.scan_not_active_broker_interval / 1000)
            self._carry_out(self._table.on_tick(self._clock.monotonic_s()))

    def _measure(self) -> Iterator[Metric]:
        sampler, groups = Sampler(Process.NAME_SERVER, self.address), self._table.groups()
        yield sampler.one(names.NAMESERVER_BROKERS, sum(len(group.replicas) for group in groups))
        yield sampler.one(names.NAMESERVER_GROUPS, len(groups))
        yield sampler.one(names.NAMESERVER_MASTERLESS, sum(group.master is None for group in groups))
        yield sampler.one(names.NAMESERVER_TOPICS, len(self._table.topics.names))
        yield sampler.one(names.NAMESERVER_CONNECTIONS, self._server.connection_count)
        yield from sampler.end()

    def _on_connection_lost(self, connection: Connection) -> None:
        self._carry_out(self._table.on_connection_lost(connection))

    def _carry_out(self, actions: list[Action]) -> None:
        if self._is_stopping:
            # Connections end because we stop. That is no news about those at their other ends.
            return
        for action in actions:
            match action:
                case NotifyMinBrokerId():
                    self._notify(action)
                case CloseConnection(connection):
                    assert isinstance(connection, Connection)
                    connection.close("the lease of its broker is over")

    def _notify(self, news: NotifyMinBrokerId) -> None:
        if not self._settings.current.notify_min_broker_id_changed:
            return
        header = NotifyMinBrokerIdRequest(
            min_broker_id=news.min_broker_id,
            broker_name=news.broker_name,
            min_broker_addr=news.min_broker_address,
            offline_broker_addr=news.offline_address,
            ha_broker_addr=news.ha_address,
        )
        for address in news.addresses:
            self._client.notify(address, Command.request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, header))
