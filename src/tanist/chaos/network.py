"""The network of one run: what is between its processes, where it can be cut or go bad."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tanist.chaos.cables import Cable
from tanist.chaos.hosts import Host, Switch
from tanist.chaos.means import NotPossible
from tanist.chaos.modes import Layout, Road
from tanist.chaos.proxy import FAIR, SILENT, Proxy, Weather
from tanist.up.plan import BROKERS

_log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


class Network:
    """Brokers by their number, and all others at one address."""

    def __init__(self, seed: int) -> None:
        self.hub = LOOPBACK
        """The address of all that is no broker."""
        self._seed = seed
        self._hosts: Sequence[Host | Cable] = (Host(), Host())
        self._relays: list[Proxy] = []

    async def begin(self, running: AsyncExitStack, *, is_separate: bool) -> None:
        """Make the brokers' machines, each of its own if so asked, and the ways that brokers are told of."""
        if is_separate:
            self._separate(running)
        for cable in self._cables:
            await cable.begin(running)
        self._registry = await running.enter_async_context(Proxy(self.hub, seed=self._seed))

    def roads(self, name_server: str) -> tuple[Road, Road]:
        """Where each broker is found, and finds others."""
        first, second = (self._road_of(host, name_server) for host in self._hosts)
        return first, second

    async def lead(self, running: AsyncExitStack, layout: Layout) -> None:
        """Have all ways lead to where their ends will be."""
        self._registry.target = f"{self.hub}:{layout.controller_port}"
        for number, road in enumerate(layout.roads):
            port = layout.ha_port(number)
            relay = Proxy(layout.relay, port, seed=self._seed + 1 + number)
            relay.target = f"{road.bound}:{port}"
            self._relays.append(await running.enter_async_context(relay))
        for number, cable in enumerate(self._cables):
            cable.names.target, cable.registry.target = layout.name_server, self._registry.address
            await cable.lead(
                running,
                port=layout.broker_ports[number],
                own_relay=self._relays[number],
                other_relay=self._relays[1 - number],
            )

    def within(self, broker: int) -> tuple[str, ...]:
        """The command that runs a program on a broker's machine."""
        return self._hosts[broker].within

    def cut(self, broker: int) -> None:
        """Let nothing in or out of its machine any more."""
        self._hosts[broker].cut()

    def mute(self, broker: int) -> None:
        """Let nothing out of its machine any more; all that is said to it still comes in."""
        host = self._hosts[broker]
        host.mute(self.hub, *(other.address for other in self._hosts if other is not host))

    def mend(self, broker: int) -> None:
        """Have its machine whole again."""
        self._hosts[broker].mend()

    def cut_registry(self) -> None:
        """Let nothing pass between brokers and controller."""
        self._registry.become(SILENT)

    def relay_as(self, weather: Weather) -> None:
        """How what master and slave tell each other passes from now on."""
        for relay in self._relays:
            relay.become(weather)

    def clear(self) -> None:
        """Have everything pass again that goes through registry and relays."""
        self._registry.become(FAIR)
        self.relay_as(FAIR)

    # Inside

    @property
    def _cables(self) -> list[Cable]:
        return [host for host in self._hosts if isinstance(host, Cable)]

    def _separate(self, running: AsyncExitStack) -> None:
        """Give each broker a machine of its own, or what comes close to it."""
        try:
            switch = running.enter_context(Switch(self._seed % 200, hosts=len(BROKERS)))
        except NotPossible as error:
            _log.warning("brokers are cut off by proxies reason=%s", error)
            self._hosts = [Cable(number, seed=self._seed) for number in range(len(BROKERS))]
        else:
            self._hosts, self.hub = switch.hosts, switch.address

    def _road_of(self, host: Host | Cable, name_server: str) -> Road:
        if isinstance(host, Cable):
            return Road(host.address, host.bound, host.names.address, host.registry.address)
        return Road(host.address, host.address, name_server, self._registry.address)
