"""Resetting a group's offsets, and asking clients where they stand."""

import msgspec

from tanist.model.integers import Int32, Int64, QueueOffset64
from tanist.protocol.headers.base import Header


class ResetOffsetRequest(Header, frozen=True, kw_only=True):
    """Resets a group, on every queue or on one, to a time or to an offset.

    An operator asks a broker, and the broker tells its clients, who find their offsets in the body.
    """

    topic: str
    group: str
    timestamp_ms: Int64 = msgspec.field(name="timestamp")
    is_force: bool
    queue_id: Int32 = -1
    """-1: every queue."""
    queue_offset: QueueOffset64 | None = msgspec.field(name="offset", default=None)
    """None or -1: by time."""
    order_id: str | None = None
    """Ours: the order that a client's receipt names. A client that does not know it sends none."""
    applied_ms: Int64 = msgspec.field(name="appliedMillis", default=0)
    """Ours: when the order was applied. One that a switch undid, and that is given again, is applied anew."""
    master_epoch: Int32 | None = None
    """Ours: the epoch of who tells a client, not that in which the order was given; None without one."""


class InvokeConsumerStatusRequest(Header, frozen=True, kw_only=True):
    """An operator asks where the clients of a group stand, one of them or all."""

    topic: str
    group: str
    client_addr: str | None = None


class ApplyResetRequest(Header, frozen=True, kw_only=True):
    """Ours: an operator orders offsets of one group in one topic, found in the body with what it stands at.

    The same order may be given again, and changes nothing then: whoever lost the answer asks once more.
    """

    order_id: str
    topic: str
    group: str
    caller: str
    """Who says so; the broker writes down where it came from."""
    reason: str = ""
    undoes: str | None = None
    """The order whose effect this one takes back."""
    is_forced: bool = False
    """Whether to go on where the group has moved since the plan."""
    expires_after_ms: Int64 = msgspec.field(name="expiresAfterMillis", default=86_400_000)
    """For how long clients that come later are told."""


class GetResetOrdersRequest(Header, frozen=True, kw_only=True):
    """Ours: asks for a broker's orders, newest last; one that waits is answered when one has changed."""

    order_id: str | None = None
    group: str | None = None
    topic: str | None = None
    seen_version: Int64 = -1
    """The version of what the caller knows; -1 is answered at once."""
    wait_ms: Int64 = msgspec.field(name="waitMillis", default=0)


class DecideResetRequest(Header, frozen=True, kw_only=True):
    """Ours: another than the caller approves an order that waits for it, or rejects it."""

    order_id: str
    decider: str
    is_approved: bool
    reason: str = ""


class ResetReceiptRequest(Header, frozen=True, kw_only=True):
    """Ours: a client says what it did of an order; the offsets are in the body."""

    order_id: str
    topic: str
    group: str
    client_id: str
    applied_ms: Int64 = msgspec.field(name="appliedMillis", default=0)
    """When the order was applied that it was told. Older clients do not say it, with 0."""
