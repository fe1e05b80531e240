"""An order of a broker to go to other offsets, and what this consumer did of it. Pure.

    told --> running --all moved--> done --told again--> the same receipt once more
                |  `--another is told for its queues--> running, with the others
                +--some did not--> failed --told again--> running, with those alone

An order is known by its id and its broker, for all brokers of a topic may be given the same, and by when it
was applied, for one that a switch undid may be given again. A broker that got no receipt tells it again, and
nothing moves twice.

What a master told before another one replaced it may come after what that one tells. It is passed over then,
whatever the clocks of the two say: the newer master knows the orders that count, and tells them itself.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tanist.client.queues.queue_move import QueueMove
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import QueueReceipt, QueueReceipts

MAX_ORDERS = 256
"""How many orders are remembered; the oldest is forgotten first."""
_TOLD_FAILURES = 8
"""More than so many failures are counted instead of told: a receipt is read by people."""


class OrderKey(NamedTuple):
    """What tells orders apart."""

    order_id: str
    topic: str
    broker_name: str
    applied_ms: int = 0


@dataclass(slots=True)
class ResetOrder:
    """One order of the broker ``broker_name``."""

    order_id: str
    topic: str
    broker_name: str
    left: dict[MessageQueue, QueueOffset]
    """Where queues are to go that have not gone there. Who moves them looks again when it is their turn."""
    applied_ms: int = 0
    epoch: int = 0
    """Of the master that told it last; 0 if that has none."""
    is_running: bool = True
    receipts: dict[MessageQueue, QueueReceipt] = field(default_factory=dict[MessageQueue, QueueReceipt])
    failures: list[str] = field(default_factory=list[str])

    @property
    def key(self) -> "OrderKey":
        return OrderKey(self.order_id, self.topic, self.broker_name, self.applied_ms)

    def on_teller(self, epoch: int) -> None:
        """The master of that epoch tells it."""
        self.epoch = max(self.epoch, epoch)

    def on_told(self, targets: Mapping[MessageQueue, QueueOffset]) -> None:
        """A broker says it, perhaps once more: then the group may have come further where this did not go."""
        self.left = {queue: targets.get(queue, target) for queue, target in self.left.items()}
        self.is_running = True

    def on_moves(self, moves: Iterable[QueueMove]) -> None:
        """It was carried out, as far as that went."""
        failed = {move.queue: move for move in moves if move.failure}
        for move in moves:
            if not move.failure:
                self.receipts[move.queue] = QueueReceipt(
                    queue_id=move.queue.queue_id, old_offset=move.old_offset, new_offset=move.target
                )
        self.left = {queue: move.target for queue, move in failed.items()}
        self.failures = [f"queue {queue.queue_id}: {move.failure}" for queue, move in sorted(failed.items())]
        self.is_running = False

    def on_failure(self, failure: str) -> None:
        """It could not be carried out at all."""
        self.failures = [failure]
        self.is_running = False

    def on_first_taken(self, queue: MessageQueue, offset: QueueOffset) -> None:
        """The first message after it was taken."""
        receipt = self.receipts.get(queue)
        if receipt is not None:
            self.receipts[queue] = msgspec.structs.replace(receipt, first_offset=offset)

    def receipt(self) -> QueueReceipts:
        """What the broker is told."""
        told, more = self.failures[:_TOLD_FAILURES], len(self.failures) - _TOLD_FAILURES
        if more > 0:
            told = [*told, f"and {more} queues more"]
        queues = [self.receipts[queue] for queue in sorted(self.receipts)]
        return QueueReceipts(queues=queues, failure="; ".join(told))


class KnownOrders:
    """The orders that one consumer was given, as many as it remembers."""

    def __init__(self) -> None:
        self._orders: OrderedDict[OrderKey, ResetOrder] = OrderedDict()

    def find(self, key: OrderKey) -> ResetOrder | None:
        return self._orders.get(key)

    def is_late(self, broker_name: str, epoch: int) -> bool:
        """Whether the broker's master of that epoch was replaced by one that has told orders already."""
        known = (order.epoch for order in self._orders.values() if order.broker_name == broker_name)
        return 0 < epoch < max(known, default=0)

    def give_way(self, newer: ResetOrder) -> None:
        """Orders that run leave to one that was told after them its queues, where they have not gone yet."""
        for order in self._orders.values():
            if order.is_running and order is not newer:
                for queue in newer.left:
                    order.left.pop(queue, None)

    def add(self, order: ResetOrder) -> None:
        self._orders[order.key] = order
        while len(self._orders) > MAX_ORDERS:
            self._orders.popitem(last=False)
