"""How far an apply has come, at each broker and as a whole. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from tanist.admin.resets.plan import Plan
from tanist.admin.resets.stock import StockWay
from tanist.admin.resets.tally import Tally, tally
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import ResetOrderView, ResetState

_DONE = (ResetState.APPLIED, ResetState.EXPIRED)


class Outcome(IntEnum):
    """What a command ends with; its number is the exit code."""

    DONE = 0
    """Applied, and every client that there is was seen to follow."""
    FAILED = 1
    """Some broker was not reached or refused; the same command again goes on."""
    UNCONFIRMED = 3
    """Applied, and not every client was seen to follow."""
    MOVED = 4
    """The group stands elsewhere than planned, or a later order has moved it on."""
    WAITING = 5
    """Nothing is changed until somebody approves."""
    REJECTED = 6
    """Somebody did not approve."""


@dataclass(slots=True)
class AtBroker:
    """One broker's part."""

    queue_count: int
    order: ResetOrderView | None = None
    later: list[ResetOrderView] = field(default_factory=list[ResetOrderView])
    """Orders that were applied to its queues since then, the newest last: there it does not hold."""
    way: StockWay | None = None
    """How it is told if it knows no orders."""
    at_ms: int | None = None
    """The time that it is told, if that is how."""
    done: set[int] = field(default_factory=set[int])
    """The queues that were changed, where there is no order that says so."""
    seen: set[int] = field(default_factory=set[int])
    """Those of them that were seen to stand where they should."""
    stood: dict[MessageQueue, int] = field(default_factory=dict[MessageQueue, int])
    """Where its clients stood before it was told."""
    moved: dict[int, int | None] = field(default_factory=dict[int, "int | None"])
    failure: str | None = None

    @property
    def is_applied(self) -> bool:
        if self.order is not None:
            return self.order.state in _DONE
        return self.way is not None and len(self.done) == self.queue_count

    @property
    def done_count(self) -> int:
        if self.order is not None:
            return self.queue_count - len(self.overtaken) if self.is_applied else 0
        return len(self.done)

    @property
    def overtaken(self) -> set[int]:
        """The queues that a later order has moved."""
        own = set[int]() if self.order is None else {target.queue_id for target in self.order.targets}
        return own & {target.queue_id for order in self.later for target in order.targets}


@dataclass(slots=True)
class Progress:
    """All brokers."""

    plan: Plan
    brokers: dict[str, AtBroker]

    @property
    def done_count(self) -> int:
        return sum(broker.done_count for broker in self.brokers.values())

    @property
    def tally(self) -> Tally:
        return tally(broker.order for broker in self.brokers.values() if broker.order is not None)

    @property
    def moved(self) -> Mapping[str, Mapping[int, int | None]]:
        return {name: broker.moved for name, broker in self.brokers.items() if broker.moved}

    @property
    def is_overtaken(self) -> bool:
        return any(broker.later for broker in self.brokers.values())

    @property
    def outcome(self) -> Outcome:
        brokers = list(self.brokers.values())
        states = [broker.order.state for broker in brokers if broker.order is not None]
        if ResetState.MOVED in states or self.moved or self.is_overtaken:
            return Outcome.MOVED
        if any(broker.failure for broker in brokers):
            return Outcome.FAILED
        if ResetState.REJECTED in states:
            return Outcome.REJECTED
        if ResetState.WAITING in states:
            return Outcome.WAITING
        if not all(broker.is_applied for broker in brokers):
            return Outcome.FAILED
        return Outcome.DONE if self._is_seen else Outcome.UNCONFIRMED

    @property
    def _is_seen(self) -> bool:
        count = self.tally
        unseen = [broker for broker in self.brokers.values() if broker.way and broker.seen < broker.done]
        # Where nobody of a broadcasting group was told, nobody has moved.
        is_empty = self.plan.is_broadcast and not count.count
        return count.is_complete and not unseen and not is_empty
