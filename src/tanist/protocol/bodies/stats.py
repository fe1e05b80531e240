"""Figures that operators ask a broker for."""

import msgspec

from tanist.model.integers import Int32, Int64, LogOffset64, QueueOffset64
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.base import Body
from tanist.protocol.java_json import ObjectKeyed


class QueueStats(Body, frozen=True, kw_only=True):
    """One queue of a topic: what it holds, and when it got its last message."""

    min_offset: QueueOffset64
    max_offset: QueueOffset64
    last_update_timestamp_ms: Int64 = msgspec.field(name="lastUpdateTimestamp", default=0)


class TopicStatsTable(Body, frozen=True, kw_only=True):
    """All queues of a topic on one broker."""

    offset_table: ObjectKeyed[MessageQueue, QueueStats] = msgspec.field(
        default_factory=ObjectKeyed[MessageQueue, QueueStats]
    )
    topic_put_tps: float | None = None


class QueueConsumeStats(Body, frozen=True, kw_only=True):
    """One queue as a group sees it. ``pull_offset`` is what its clients have asked for."""

    broker_offset: QueueOffset64
    consumer_offset: QueueOffset64
    pull_offset: QueueOffset64 | None = None
    last_timestamp_ms: Int64 = msgspec.field(name="lastTimestamp", default=0)


class ConsumeStats(Body, frozen=True, kw_only=True):
    """How far one group is behind, queue by queue."""

    offset_table: ObjectKeyed[MessageQueue, QueueConsumeStats] = msgspec.field(
        default_factory=ObjectKeyed[MessageQueue, QueueConsumeStats]
    )
    consume_tps: float = 0.0


class BrokerConsumeStats(Body, frozen=True, kw_only=True):
    """How far every group of the broker is behind: one member a group in each item of the list."""

    broker_addr: str
    consume_stats_list: list[dict[str, list[ConsumeStats]]] = msgspec.field(default=[])
    total_diff: Int64 = 0
    total_inflight_diff: Int64 = 0


class QueueTimeSpan(Body, frozen=True, kw_only=True):
    """From when to when the messages of a queue are, and how late a group is on it."""

    queue: MessageQueue = msgspec.field(name="messageQueue")
    min_timestamp_ms: Int64 = msgspec.field(name="minTimeStamp")
    max_timestamp_ms: Int64 = msgspec.field(name="maxTimeStamp")
    consume_timestamp_ms: Int64 = msgspec.field(name="consumeTimeStamp")
    delay_ms: Int64 = msgspec.field(name="delayTime", default=0)


class ConsumeTimeSpans(Body, frozen=True, kw_only=True):
    """The time spans of all queues of a topic."""

    spans: list[QueueTimeSpan] = msgspec.field(name="consumeTimeSpanSet", default=[])


class CorrectionOffsets(Body, frozen=True, kw_only=True):
    """The offset to go to, by queue id."""

    correction_offsets: dict[Int32, QueueOffset64] = msgspec.field(default={})


class StatsWindow(Body, frozen=True, kw_only=True):
    """One counter over one span of time. ``average`` is the sum per call."""

    sum: Int64 = 0
    tps: float = 0.0
    average: float = msgspec.field(name="avgpt", default=0.0)


class BrokerStats(Body, frozen=True, kw_only=True):
    """One counter over the last minute, hour and day."""

    minute: StatsWindow = msgspec.field(name="statsMinute")
    hour: StatsWindow = msgspec.field(name="statsHour")
    day: StatsWindow = msgspec.field(name="statsDay")


class QueueEntryView(Body, frozen=True, kw_only=True):
    """One entry of a consume queue, and whether the group's filter takes it."""

    log_offset: LogOffset64 = msgspec.field(name="physicOffset")
    size_bytes: Int32 = msgspec.field(name="physicSize")
    tags_code: Int64
    is_taken: bool = msgspec.field(name="eval", default=False)


class ConsumeQueueView(Body, frozen=True, kw_only=True):
    """A stretch of a consume queue."""

    min_offset: QueueOffset64 = msgspec.field(name="minQueueIndex")
    max_offset: QueueOffset64 = msgspec.field(name="maxQueueIndex")
    entries: list[QueueEntryView] = msgspec.field(name="queueData", default=[])
    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
