"""A connection without a socket, for handlers and tables."""

import asyncio

from tanist.errors import ConnectionLost
from tanist.model.host import pack_host
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder
from tanist.remoting import Connection
from tanist.remoting.replies import Pieces


def decode_answer(answer: bytes | Pieces) -> list[Command]:
    """The Commands of what a handler answered, or of what was sent to a peer."""
    whole = answer if isinstance(answer, bytes) else b"".join(answer)
    return list(FrameDecoder().feed(whole))


class FakeConnection(Connection):
    """Keeps what was sent to the peer, as Commands, and why it was closed."""

    __slots__ = ("closed_for", "sent")

    def __init__(self, peer: str = "127.0.0.1:5") -> None:
        # Nothing of a real connection is set up: that would need an event loop.
        address, port = peer.rsplit(":", 1)
        self.peer = peer
        self.peer_host = pack_host(address, int(port))
        self.owner_state = None
        self.sent: list[Command] = []
        self.closed_for: str | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_for is None

    def send(self, data: bytes | Pieces | Command) -> None:
        if self.is_open:
            self.sent += [data] if isinstance(data, Command) else decode_answer(data)

    def send_soon(self, frame: bytes) -> None:
        self.send(frame)

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Nobody is there to answer."""
        raise ConnectionLost(self.peer, "a connection without a socket asks nobody")

    def close(self, reason: str) -> None:
        self.closed_for = self.closed_for or reason

    def take_sent(self) -> list[Command]:
        """What was sent since the last call."""
        taken, self.sent = self.sent, []
        return taken
