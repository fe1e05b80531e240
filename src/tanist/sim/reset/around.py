"""What brokers and members of a group have around them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tanist.model.route import BrokerData, QueueData, TopicRouteData
from tanist.sim.cables import Cables, Line
from tanist.sim.clockwork import Clockwork
from tanist.sim.reset.machines import Machines
from tanist.sim.reset.rules import Rules

BROKER = "broker"
QUEUES = 3
_READ_AND_WRITE = 6


@dataclass(slots=True)
class Around:
    """One group of brokers: ``route`` is what name servers tell of it, ``ends`` how long its queues are."""

    clockwork: Clockwork
    cables: Cables
    chance: Random
    machines: Machines
    tell: Callable[[str, str], None]
    rules: Rules
    reign: int = 1
    """As a controller counts them."""
    addresses: dict[int, str] = field(default_factory=dict[int, str])
    ends: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    feed_line: Line = field(default_factory=Line)
    """What a master tells its slave comes in its order."""
    back_line: Line = field(default_factory=Line)
    """What the slave answers."""
    answer_loss: float = 0.0
    """How many of the brokers' answers are lost."""

    def end_of(self, topic: str, queue_id: int) -> int:
        return self.ends.get((topic, queue_id), 0)

    def route(self) -> TopicRouteData:
        offer = QueueData(
            broker_name=BROKER, read_queue_count=QUEUES, write_queue_count=QUEUES, perm=_READ_AND_WRITE
        )
        data = BrokerData(cluster="c", broker_name=BROKER, broker_addrs={**self.addresses})
        return TopicRouteData(queue_datas=[offer], broker_datas=[data])
