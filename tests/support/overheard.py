"""A broker whose clients speak through cables, so that a test knows what they asked for, and at which port.

with OverheardBroker(tmp_path, names.address) as broker:
    ...
    broker.main.about("Orders")
"""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.model.host import FAST_PORT_DISTANCE
from tanist.protocol import Command, FrameDecoder
from tests.support.relay import Relay
from tests.support.tanist_cluster import BrokerProcess

_TOLD_HOST = "127.0.0.2"
"""Where clients are told that the broker is; it listens at another address of this machine."""
_HOST = "127.0.0.1"
_TOPIC_FIELDS = ("topic", "b")
"""Where a request has its topic, in the long spelling and in the short one of sends."""


@dataclass(frozen=True)
class Cable:
    """What was said to one port."""

    relay: Relay

    def calls(self) -> list[list[Command]]:
        """All requests so far, by connection."""
        return [list(FrameDecoder().feed(bytes(said))) for said in self.relay.calls]

    def heard(self, code: int) -> list[Command]:
        return [request for call in self.calls() for request in call if request.code == code]

    def about(self, topic: str) -> list[Command]:
        """The requests that name a topic."""
        return [
            request
            for call in self.calls()
            for request in call
            if topic in map(request.ext.get, _TOPIC_FIELDS)
        ]


class OverheardBroker:
    """A broker process behind a cable to each of its two ports for clients."""

    def __init__(self, directory: Path, name_server: str) -> None:
        self.process = BrokerProcess(directory, name_server, brokerIP1=_TOLD_HOST)
        self._running = ExitStack()
        self._running.enter_context(self.process)
        port = int(self.process.address.rpartition(":")[2])
        self.main, self.fast = self._lay(port), self._lay(port - FAST_PORT_DISTANCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def _lay(self, port: int) -> Cable:
        relay = Relay(f"{_HOST}:{port}", host=_TOLD_HOST, port=port)
        return Cable(self._running.enter_context(relay))
