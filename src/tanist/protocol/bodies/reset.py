"""Offsets that clients are told to go to, and that they keep for themselves; and orders to move them.

An order is ours. It holds for the queues that one broker has of one topic, and says of each where the group
stood when it was planned. What became of it is told per client: a client has moved when it was seen to.
"""

from enum import StrEnum

import msgspec

from tanist.model.integers import Int32, Int64, QueueOffset64
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.base import Body
from tanist.protocol.java_json import ObjectKeyed


class OffsetTable(Body, frozen=True, kw_only=True):
    """An offset a queue: the body of a reset, and a broadcasting client's own ``offsets.json``."""

    offset_table: ObjectKeyed[MessageQueue, QueueOffset64] = msgspec.field(
        default_factory=ObjectKeyed[MessageQueue, QueueOffset]
    )


class QueueOffsetRow(Body, frozen=True, kw_only=True):
    """One queue and its offset, as clients written in C++ want them."""

    topic: str
    broker_name: str
    queue_id: Int32
    queue_offset: QueueOffset64 = msgspec.field(name="offset")


class OffsetRows(Body, frozen=True, kw_only=True):
    """The body of a reset for clients written in C++: a list, because they cannot read objects as keys."""

    offset_table: list[QueueOffsetRow] = msgspec.field(default=[])


class OffsetMovedEvent(Body, frozen=True, kw_only=True):
    """RocketMQ's event of a consumer that asked for what its queue does not have: a message's body."""

    consumer_group: str
    queue: MessageQueue = msgspec.field(name="messageQueue")
    asked: QueueOffset64 = msgspec.field(name="offsetRequest")
    corrected: QueueOffset64 = msgspec.field(name="offsetNew")


class QueueTarget(Body, frozen=True, kw_only=True):
    """Where a group is to stand in one queue."""

    queue_id: Int32
    expected_offset: QueueOffset64 | None = None
    """Its consumer offset when this was planned; None if it had none."""
    target: QueueOffset64


class QueueTargets(Body, frozen=True, kw_only=True):
    """The body of an order."""

    targets: list[QueueTarget] = msgspec.field(default=[])


class ResetState(StrEnum):
    """How far an order has come."""

    WAITING = "WAITING"
    """For somebody's approval; nothing has been changed."""
    REJECTED = "REJECTED"
    """Somebody did not approve, or nobody did in time; nothing was changed."""
    MOVED = "MOVED"
    """The group stood elsewhere than planned; nothing was changed."""
    APPLIED = "APPLIED"
    """The broker's offsets are changed and its clients told; the receipts say who has followed."""
    EXPIRED = "EXPIRED"
    """Applied, and clients that have not confirmed are no longer told."""


class ReceiptState(StrEnum):
    """What is known of one client."""

    PENDING = "PENDING"
    """It is known and not connected: it is told when it comes."""
    TOLD = "TOLD"
    """The order was sent to it; it has not been seen to follow."""
    CONFIRMED = "CONFIRMED"
    """It said that it moved, or was seen to pull from the target."""
    FAILED = "FAILED"
    """It did not move; the reason says why."""


class QueueReceipt(Body, frozen=True, kw_only=True):
    """One queue of one client."""

    queue_id: Int32
    old_offset: QueueOffset64 | None = None
    """Where it stood there; None if nobody can tell."""
    new_offset: QueueOffset64
    first_offset: QueueOffset64 | None = None
    """The first message it has taken since; None before there was one."""


class QueueReceipts(Body, frozen=True, kw_only=True):
    """The body of a client's receipt: its queues that the order named, none if it has no such queue."""

    queues: list[QueueReceipt] = msgspec.field(default=[])
    failure: str = ""
    """Why it did not move, if it did not."""


class ClientReceipt(Body, frozen=True, kw_only=True):
    """One client, as the broker knows it."""

    client_id: str
    address: str = ""
    language: str = ""
    version: str = ""
    state: ReceiptState
    told_ms: Int64 = 0
    confirmed_ms: Int64 = 0
    queues: list[QueueReceipt] = msgspec.field(default=[])
    reason: str = ""


class ResetOrderView(Body, frozen=True, kw_only=True):
    """One order and what became of it."""

    order_id: str
    topic: str
    group: str
    broker_name: str
    state: ResetState
    is_broadcast: bool = msgspec.field(name="broadcast", default=False)
    caller: str
    caller_address: str
    reason: str = ""
    undoes: str | None = None
    is_forced: bool = msgspec.field(name="forced", default=False)
    decider: str = ""
    """Who approved or rejected it, where somebody had to."""
    decision_reason: str = ""
    created_ms: Int64
    applied_ms: Int64 = 0
    expires_ms: Int64 = 0
    targets: list[QueueTarget] = msgspec.field(default=[])
    before: dict[int, QueueOffset64] = msgspec.field(default={})
    """The consumer offsets that it replaced, by queue; a queue without one is not in it."""
    moved: dict[int, QueueOffset64] = msgspec.field(default={})
    """Where the group was found in queues in which it was expected elsewhere; -1 for nowhere."""
    receipts: list[ClientReceipt] = msgspec.field(default=[])


class ResetOrders(Body, frozen=True, kw_only=True):
    """A broker's orders, the newest last."""

    version: Int64
    """Grows with each change of any of them."""
    orders: list[ResetOrderView] = msgspec.field(default=[])


def rows_of(table: OffsetTable) -> OffsetRows:
    """The same offsets as a list."""
    return OffsetRows(
        offset_table=[
            QueueOffsetRow(
                topic=queue.topic, broker_name=queue.broker_name, queue_id=queue.queue_id, queue_offset=offset
            )
            for queue, offset in sorted(table.offset_table.items())
        ]
    )
