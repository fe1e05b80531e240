"""Machines of their own for brokers where no network namespaces can be made: proxies stand for the cable.

Others find a broker at an address where only proxies are, and it finds name server, registry and the other's
HA port through proxies too. So all of that can be cut, or one way of it. What passes is what a broker that is
cut off asks the other one at its port for clients: there it is a client like any.
"""

from contextlib import AsyncExitStack

from tanist.chaos.proxy import DEAF_TARGET, FAIR, MUTE_TARGET, SILENT, Proxy

_LOOPBACK = "127.0.0.1"
_CLIENT_PORTS = (0, -2)
"""By their distance from a broker's own port."""


class Cable:
    """All that leads to one broker, and away from it."""

    within: tuple[str, ...] = ()
    """It runs where all others do."""

    def __init__(self, number: int, *, seed: int) -> None:
        self.address = f"127.0.0.{11 + number}"
        """Where others find the broker."""
        self.bound = f"127.0.0.{21 + number}"
        """Where it listens."""
        self._seed = seed
        self.names = Proxy(_LOOPBACK, seed=seed)
        self.registry = Proxy(_LOOPBACK, seed=seed)
        self._inward: list[Proxy] = []
        self._outward: list[Proxy] = []

    async def begin(self, running: AsyncExitStack) -> None:
        """Make the ways out, of which the broker is told."""
        self._outward = [await running.enter_async_context(way) for way in (self.names, self.registry)]

    async def lead(self, running: AsyncExitStack, *, port: int, own_relay: Proxy, other_relay: Proxy) -> None:
        """Make the ways in, to the broker's own port; the relays are those to the HA ports of both."""
        self._inward.append(own_relay)
        self._outward.append(other_relay)
        for distance in _CLIENT_PORTS:
            way = Proxy(self.address, port + distance, seed=self._seed)
            way.target = f"{self.bound}:{port + distance}"
            self._inward.append(await running.enter_async_context(way))

    def cut(self) -> None:
        """Let nothing in or out any more."""
        for way in (*self._inward, *self._outward):
            way.become(SILENT)

    def mute(self, *_ears: str) -> None:
        """Let nothing out any more; all that is said to it still comes in."""
        for way in self._inward:
            way.become(MUTE_TARGET)
        for way in self._outward:
            way.become(DEAF_TARGET)

    def mend(self) -> None:
        """Be whole again, whichever it was."""
        for way in (*self._inward, *self._outward):
            way.become(FAIR)
