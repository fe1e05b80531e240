"""Connections between processes: bytes in order each way, until one end closes, is lost or falls silent."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tanist.sim.cables import Cables, Line
from tanist.sim.clockwork import Process


@dataclass(eq=False, slots=True)
class WireEnd:
    """One end of a connection, in one life of its process."""

    cables: Cables
    process: Process
    is_stranger: bool = False
    """Whether who holds the other end knows no secret."""
    on_bytes: Callable[[bytes], None] = lambda _data: None
    on_lost: Callable[[], None] = lambda: None
    is_open: bool = True
    life: int = field(init=False)
    _line: Line = field(default_factory=Line, init=False)
    peer: "WireEnd | None" = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.life = self.process.life

    def send(self, data: bytes) -> None:
        """Have the other end read this, after all that was sent before."""
        if self.is_open and data:
            self._say(lambda peer: peer.hear(data))

    def call(self, on_call: "Callable[[WireEnd], None]") -> None:
        """Have the other end taken up, before anything that is said."""
        self._say(on_call)

    def close(self) -> None:
        """End it: the other end sees that when it has read the rest."""
        if self.is_open:
            self.is_open = False
            self._say(WireEnd.lose)

    def hear(self, data: bytes) -> None:
        if self.is_open:
            self.on_bytes(data)

    def lose(self) -> None:
        """It was reset, or the other end has closed it."""
        if self.is_open:
            self.is_open = False
            self.on_lost()

    def _say(self, do: "Callable[[WireEnd], None]") -> None:
        peer = self.peer
        assert peer is not None
        way = (self.process.name, peer.process.name)
        self.cables.say(way, peer.process, lambda: do(peer), line=self._line, life=peer.life)


def connect(cables: Cables, caller: Process, called: Process, *, is_stranger: bool = False) -> WireEnd:
    """The near end of a new connection. The far one is there when ``call`` has reached it."""
    near, far = WireEnd(cables, caller), WireEnd(cables, called, is_stranger)
    near.peer, far.peer = far, near
    return near
