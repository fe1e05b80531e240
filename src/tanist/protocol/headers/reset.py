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


class InvokeConsumerStatusRequest(Header, frozen=True, kw_only=True):
    """An operator asks where the clients of a group stand, one of them or all."""

    topic: str
    group: str
    client_addr: str | None = None
