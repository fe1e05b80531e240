"""What a consumer reports of itself when it is asked."""

import msgspec

from tanist.model.integers import Int32, Int64, QueueOffset64
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.base import Body
from tanist.protocol.java_json import ObjectKeyed

PROP_START_TIMESTAMP = "PROP_CONSUMER_START_TIMESTAMP"
PROP_CONSUME_TYPE = "PROP_CONSUME_TYPE"
PROP_CONSUME_ORDERLY = "PROP_CONSUMEORDERLY"
"""Operator tools fail without these three properties."""


class ProcessQueueInfo(Body, frozen=True, kw_only=True):
    """One queue as its consumer holds it."""

    consumer_offset: QueueOffset64 = msgspec.field(name="commitOffset", default=QueueOffset(0))
    cached_min_offset: QueueOffset64 = msgspec.field(name="cachedMsgMinOffset", default=QueueOffset(0))
    cached_max_offset: QueueOffset64 = msgspec.field(name="cachedMsgMaxOffset", default=QueueOffset(0))
    cached_count: Int32 = msgspec.field(name="cachedMsgCount", default=0)
    cached_mib: Int32 = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    transaction_min_offset: QueueOffset64 = msgspec.field(
        name="transactionMsgMinOffset", default=QueueOffset(0)
    )
    transaction_max_offset: QueueOffset64 = msgspec.field(
        name="transactionMsgMaxOffset", default=QueueOffset(0)
    )
    transaction_count: Int32 = msgspec.field(name="transactionMsgCount", default=0)
    is_locked: bool = msgspec.field(name="locked", default=False)
    try_unlock_times: Int64 = 0
    last_lock_timestamp_ms: Int64 = msgspec.field(name="lastLockTimestamp", default=0)
    is_dropped: bool = msgspec.field(name="droped", default=False)
    """RocketMQ's own misspelling."""
    last_pull_timestamp_ms: Int64 = msgspec.field(name="lastPullTimestamp", default=0)
    last_consume_timestamp_ms: Int64 = msgspec.field(name="lastConsumeTimestamp", default=0)


class ConsumeStatus(Body, frozen=True, kw_only=True):
    """How well one topic is consumed; times in milliseconds, rates per second."""

    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_failed_count: Int64 = msgspec.field(name="consumeFailedMsgs", default=0)


class ConsumerRunningInfo(Body, frozen=True, kw_only=True):
    """Everything a consumer knows of its work."""

    properties: dict[str, str] = msgspec.field(default={})
    subscriptions: list[SubscriptionData] = msgspec.field(name="subscriptionSet", default=[])
    queue_table: ObjectKeyed[MessageQueue, ProcessQueueInfo] = msgspec.field(
        name="mqTable", default_factory=ObjectKeyed[MessageQueue, ProcessQueueInfo]
    )
    status_table: dict[str, ConsumeStatus] = msgspec.field(default={})
    user_consumer_info: dict[str, str] = msgspec.field(default={})
    jstack: str | None = None


class ConsumeDirectlyResult(Body, frozen=True, kw_only=True):
    """What came of consuming one message on demand. ``consume_result`` is CR_SUCCESS or says what failed."""

    consume_result: str
    is_ordered: bool = msgspec.field(name="order", default=False)
    is_auto_commit: bool = msgspec.field(name="autoCommit", default=True)
    spent_ms: Int64 = msgspec.field(name="spentTimeMills", default=0)
    remark: str | None = None


class ConsumerStatus(Body, frozen=True, kw_only=True):
    """Where clients stand: one client's own queues, or those of every client by its id."""

    queue_table: ObjectKeyed[MessageQueue, QueueOffset64] = msgspec.field(
        name="messageQueueTable", default_factory=ObjectKeyed[MessageQueue, QueueOffset]
    )
    consumer_table: dict[str, ObjectKeyed[MessageQueue, QueueOffset64]] = msgspec.field(default={})
