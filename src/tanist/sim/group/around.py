"""What all replicas of a simulated group have around them."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tanist.ha.keys import HaKeys
from tanist.protocol.ha_hello import Authentication
from tanist.protocol.ha_link import AckKind
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Clockwork
from tanist.sim.group.controllers import PlayedController
from tanist.sim.group.machines import Machines
from tanist.sim.group.naming import NAME
from tanist.sim.group.rules import Rules

KEYS = HaKeys(NAME, Authentication.SECRET, b"a secret of sixteen bytes and more")
HEARTBEAT_S = 0.3
SILENCE_S = 1.2
TIMEOUT_MS = 1000
"""After so long without a heartbeat a replica is taken for dead."""
SESSION_S = 1.5
"""After so long without a word a controller's session with the registry is ended."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What this group tells its producers."""

    is_durable: bool
    """Whether what is acknowledged is on the disks; if not, nobody loses power."""
    is_slow: bool
    """Whether disks take their time."""
    waits_for_all: bool
    """Whether a send waits for all in step, or for one slave on the word of the lease."""

    @property
    def ack_kind(self) -> AckKind:
        return AckKind.FLUSHED if self.is_durable else AckKind.RECEIVED


@dataclass(slots=True)
class Around:
    """One group's world."""

    clockwork: Clockwork
    cables: Cables
    chance: Random
    controllers: list[PlayedController]
    machines: Machines
    rules: Rules
    promise: Promise
    tell: Callable[[str, str], None]

    def flush_s(self) -> float:
        """How long a flush takes."""
        return self.chance.uniform(0.05, 0.4) if self.promise.is_slow else self.chance.uniform(0.001, 0.02)

    def nonce(self) -> bytes:
        return self.chance.randbytes(16)
