"""Machines of their own for brokers, as far as the network goes: each can be cut off from everything.

A host is a network namespace on a bridge. Whoever is cut off notices nothing but silence, as if its cable
were pulled at the switch. Only the superuser may make one.
"""

import os
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tanist.chaos.means import NotPossible, command

_CARD = "eth0"
"""What the card of each host is called."""
_NOBODY = "02:00:00:00:00:00"
"""The address of no machine: what is sent there is lost, and whoever sends it is not told."""


@dataclass(frozen=True)
class Host:
    """Where a broker runs: its address, and the command that runs a program there."""

    address: str = "127.0.0.1"
    within: tuple[str, ...] = ()
    cable: str = ""
    bridge: str = ""

    def cut(self) -> None:
        """Let nothing in or out any more."""
        _ip("link", "set", "dev", self.cable, "nomaster")

    def mute(self, *ears: str) -> None:
        """Let nothing out any more that is for these addresses; all that is said to it still comes in."""
        for ear in ears:
            self._ip("neighbour", "replace", ear, "lladdr", _NOBODY, "dev", _CARD, "nud", "permanent")

    def mend(self) -> None:
        """Be whole again, whichever it was."""
        _ip("link", "set", "dev", self.cable, "master", self.bridge)
        self._ip("neighbour", "flush", "dev", _CARD, "nud", "permanent")

    def _ip(self, *words: str) -> None:
        command("ip", "-n", self.within[-1], *words)


class Switch:
    """A bridge with some hosts on it. All of it is gone after the block."""

    def __init__(self, number: int, *, hosts: int) -> None:
        """``number`` tells switches apart that are there at the same time."""
        self._bridge = f"tanist{number}-{os.getpid() % 100_000}"
        self._network = f"10.213.{number}"
        self._made = ExitStack()
        self.address = f"{self._network}.254"
        """Where this side, with all that is not cut off, is found by the hosts."""
        self.hosts = [
            Host(
                address=f"{self._network}.{index}",
                within=("ip", "netns", "exec", f"{self._bridge}-{index}"),
                cable=f"tn{number}{index}-{os.getpid() % 100_000}",
                bridge=self._bridge,
            )
            for index in range(1, hosts + 1)
        ]

    def __enter__(self) -> Self:
        with self._made:
            self._make("link", "add", self._bridge, "type", "bridge")
            self._made.callback(_ip, "link", "delete", self._bridge)
            _ip("address", "add", f"{self.address}/24", "dev", self._bridge)
            _ip("link", "set", "dev", self._bridge, "up")
            for host in self.hosts:
                self._connect(host)
            self._made = self._made.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._made.close()

    def _connect(self, host: Host) -> None:
        namespace = host.within[-1]
        self._make("netns", "add", namespace)
        self._made.callback(_ip, "netns", "delete", namespace)
        _ip("link", "add", host.cable, "type", "veth", "peer", "name", _CARD, "netns", namespace)
        for words in (
            ("address", "add", f"{host.address}/24", "dev", _CARD),
            ("link", "set", "dev", _CARD, "up"),
            ("link", "set", "dev", "lo", "up"),
        ):
            _ip("-n", namespace, *words)
        _ip("link", "set", "dev", host.cable, "up")
        host.mend()

    def _make(self, *words: str) -> None:
        try:
            _ip(*words)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotPossible("no network namespaces can be made here", error) from error


def _ip(*words: str) -> None:
    command("ip", *words)
