"""The slaves of one master as it sees them: who is there, what each holds, and whose word counts. Pure.

An ack belongs to a connection and is forgotten with it. A replica counts once, by its identity, and with
its newest connection only. So nobody can raise what the master believes to be replicated by connecting
twice, and nothing that a lost slave once said is believed later.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from tanist.ha.throttle import Rate
from tanist.protocol.ha_link import AckKind

MAX_REFUSALS = 64
"""So many refused peers are remembered one by one; the counts go on."""


class Dialect(Enum):
    """What is spoken on a link."""

    TANIST = "tanist"
    CLASSIC = "classic"
    AUTOSWITCH = "autoswitch"

    @property
    def has_tables(self) -> bool:
        """Whether the tables beside the log travel on the link."""
        return self is Dialect.TANIST


@dataclass(slots=True, eq=False)
class Replica:
    """One connected slave that was let in."""

    peer: str
    """Its address, host:port."""
    dialect: Dialect
    broker_id: int | None
    """None for a slave of RocketMQ with a fixed role, which does not tell it."""
    counts: bool
    """Whether its acks count for double write."""
    requested_to: int
    """The end of its log when it came: what it asked the master to go on from."""
    sent_from: int
    ack_kind: AckKind
    since_ms: int
    held_from: int = 0
    """Of what lies before it holds nothing, whatever it acks."""
    is_learner: bool = False
    """Whether it only follows: it never counts, and is in no sync state set."""
    acked_to: int = field(init=False)
    sent_to: int = field(init=False)
    tables_held: int = field(default=0, init=False)
    """Up to which question about them it has taken over the tables."""
    sent_bytes: int = field(default=0, init=False)
    """All bytes that were sent to it, frames included."""
    rate: Rate = field(default_factory=Rate, init=False)
    """Of what is sent to it."""

    def __post_init__(self) -> None:
        # Of what lies before its start it needs nothing: that it has, or was told to leave out.
        self.acked_to = self.sent_to = self.sent_from

    @property
    def identity(self) -> str:
        """What tells it from others: its id if it proved one, else the address without the port."""
        if self.broker_id is not None:
            return f"id {self.broker_id}"
        return self.peer.rpartition(":")[0]

    def lag_bytes(self, log_end: int) -> int:
        """How much of the master's log it has not acked."""
        return max(0, log_end - self.acked_to)


@dataclass(frozen=True, slots=True)
class RefusedPeer:
    """Who was turned away, what it had sent or said, and why."""

    peer: str
    reason: str
    received: str
    """What it had sent: an offset, or the first bytes in hex."""
    at_ms: int


class ReplicaTable:
    """All slaves that are connected, and those that were refused."""

    def __init__(self, *, fallbehind_max_bytes: int) -> None:
        self._fallbehind_max_bytes = fallbehind_max_bytes
        self._replicas: dict[str, Replica] = {}
        self.latest_start = 0
        """Behind this all that count hold what they have acked."""
        self.refused: deque[RefusedPeer] = deque(maxlen=MAX_REFUSALS)
        """The newest last."""
        self.refused_counts: Counter[str] = Counter()
        """How many were refused, by kind of reason."""

    def __iter__(self) -> Iterator[Replica]:
        return iter(tuple(self._replicas.values()))

    def __len__(self) -> int:
        return len(self._replicas)

    def join(self, replica: Replica) -> Replica | None:
        """Take a slave in; the older connection of the same replica, which the caller closes."""
        before = self._replicas.pop(replica.identity, None)
        self._replicas[replica.identity] = replica
        self._find_latest_start()
        return before

    def leave(self, replica: Replica) -> bool:
        """Forget a connection and all it said; False for one that was replaced and is forgotten already."""
        if self._replicas.get(replica.identity) is not replica:
            return False
        del self._replicas[replica.identity]
        self._find_latest_start()
        return True

    def refuse(self, peer: RefusedPeer, *, kind: str) -> None:
        self.refused.append(peer)
        self.refused_counts[kind] += 1

    def is_in_step(self, replica: Replica, log_end: int) -> bool:
        """Whether a slave is not too far behind."""
        return replica.lag_bytes(log_end) < self._fallbehind_max_bytes

    def usable_count(self, log_end: int) -> int:
        """How many slaves are worth waiting for: they count, and are in step."""
        return sum(replica.counts and self.is_in_step(replica, log_end) for replica in self)

    def counted_acks(self) -> list[int]:
        """Up to where each of the slaves that count holds the log, the furthest first."""
        acks = [one.acked_to for one in self._replicas.values() if one.counts]
        acks.sort(reverse=True)
        return acks

    def holder_count(self, end: int) -> int:
        """How many slaves that count hold the last byte before ``end``."""
        return sum(one.counts and one.held_from < end <= one.acked_to for one in self)

    def best_acked(self) -> int | None:
        """The furthest ack of any connected slave; None if none is connected."""
        return max((replica.acked_to for replica in self), default=None)

    def _find_latest_start(self) -> None:
        self.latest_start = max((one.held_from for one in self if one.counts), default=0)
