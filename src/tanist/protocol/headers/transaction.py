"""The second phase of a transactional send."""

import msgspec

from tanist.model.integers import Int32, LogOffset64, QueueOffset64
from tanist.protocol.headers.base import Header


class EndTransactionRequest(Header, frozen=True, kw_only=True):
    """Commits or rolls back a prepared message, found by both its offsets."""

    producer_group: str
    half_queue_offset: QueueOffset64 = msgspec.field(name="tranStateTableOffset")
    half_log_offset: LogOffset64 = msgspec.field(name="commitLogOffset")
    outcome: Int32 = msgspec.field(name="commitOrRollback")
    msg_id: str
    is_from_check: bool = msgspec.field(name="fromTransactionCheck", default=False)
    transaction_id: str | None = None
    topic: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class CheckTransactionStateRequest(Header, frozen=True, kw_only=True):
    """A broker asks a producer what became of a transaction. ``topic`` is the half topic."""

    half_queue_offset: QueueOffset64 = msgspec.field(name="tranStateTableOffset")
    half_log_offset: LogOffset64 = msgspec.field(name="commitLogOffset")
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)
