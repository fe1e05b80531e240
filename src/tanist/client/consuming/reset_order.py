"""An order of a broker to go to other offsets, and what this consumer did of it. Pure.

    told --> running --all moved--> done --told again--> the same receipt once more
                |
                +--some did not--> failed --told again--> running, with those alone

An order is known by its id: a broker that got no receipt tells it again, and nothing moves twice.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from tanist.client.queues.queue_move import QueueMove
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import QueueReceipt, QueueReceipts

MAX_ORDERS = 256
"""How many orders are remembered; the oldest is forgotten first."""
_TOLD_FAILURES = 8
"""More than so many failures are counted instead of told: a receipt is read by people."""


@dataclass(slots=True)
class ResetOrder:
    """One order of the broker ``broker_name``."""

    order_id: str
    topic: str
    broker_name: str
    left: Mapping[MessageQueue, QueueOffset]
    """Where queues are to go that have not gone there."""
    is_running: bool = True
    receipts: dict[MessageQueue, QueueReceipt] = field(default_factory=dict[MessageQueue, QueueReceipt])
    failures: list[str] = field(default_factory=list[str])

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
        self._orders: OrderedDict[str, ResetOrder] = OrderedDict()

    def find(self, order_id: str) -> ResetOrder | None:
        return self._orders.get(order_id)

    def add(self, order: ResetOrder) -> None:
        self._orders[order.order_id] = order
        while len(self._orders) > MAX_ORDERS:
            self._orders.popitem(last=False)
