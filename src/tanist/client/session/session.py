"""What a producer and a consumer both have: connections, routes, heartbeats, and the tasks behind them."""

from collections.abc import Callable, Mapping

from tanist.client.session.heartbeats import Heartbeats
from tanist.client.session.nameservers import NameServers
from tanist.client.session.readers import Readers
from tanist.client.session.route_keeper import RouteKeeper
from tanist.client.session.tasks import OwnedTasks
from tanist.client.session.wire import Wire
from tanist.client.settings import ClientSettings, make_client_id
from tanist.model.route import MASTER_ID
from tanist.protocol.bodies.client import HeartbeatData
from tanist.remoting import Handler


class Session:
    """One client's presence in a cluster, from ``open`` to ``close``.

    ``handlers`` answer what brokers ask of the client; ``describe`` tells them what it is.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        handlers: Mapping[int, Handler],
        describe: Callable[[str], HeartbeatData],
        default_instance: str | None = None,
    ) -> None:
        """``describe`` is given the client's id."""
        self.settings = settings
        self.clock = settings.clock
        self.client_id = make_client_id(settings, default_instance=default_instance)
        self.tasks = OwnedTasks()
        self.wire = Wire(settings, handlers, on_connect=self._on_connect, on_disconnect=self._on_disconnect)
        self.routes = RouteKeeper(
            NameServers(settings, self.wire.remoting), self.tasks, poll_s=settings.route_poll_s
        )
        self.heartbeats = Heartbeats(
            self.wire,
            self.routes.table,
            self.tasks,
            describe=lambda: describe(self.client_id),
            period_s=settings.heartbeat_s,
        )
        self.readers = Readers(self.wire, self.routes, self.heartbeats, self.tasks, clock=self.clock)
        self.heartbeats.on_refused = self._on_refused
        self._name_servers = frozenset(settings.namesrv)
        self.routes.on_change(lambda _topic: self.heartbeats.soon())

    def open(self) -> None:
        """Begin with what goes on in the background."""
        self.routes.start()
        self.heartbeats.start()

    async def close(self) -> None:
        """End all tasks, then all connections. Leave the groups before."""
        try:
            await self.tasks.close()
        finally:
            await self.wire.close()

    def _on_connect(self, address: str) -> None:
        if address not in self._name_servers:
            self.heartbeats.meet(address)
            self.routes.reached(address)

    def _on_refused(self, address: str) -> None:
        """A broker does not let us in because it is not read. If it should be, find out who is."""
        for broker_name, replicas in self.routes.table.replicas.items():
            if address in replicas.values() and replicas.get(MASTER_ID, address) == address:
                self.readers.seek(broker_name)

    def _on_disconnect(self, address: str) -> None:
        if address not in self._name_servers:
            self.heartbeats.forget(address)
            self.routes.lost(address)
