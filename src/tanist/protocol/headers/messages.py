"""Looking messages up, and into the queues and counters behind them."""

import msgspec

from tanist.model.integers import Int32, Int64, LogOffset64, QueueOffset64
from tanist.model.offsets import QueueOffset
from tanist.protocol.headers.base import Header


class QueryMessageRequest(Header, frozen=True, kw_only=True):
    """Asks for messages by key."""

    topic: str
    key: str
    max_count: Int32 = msgspec.field(name="maxNum")
    begin_timestamp_ms: Int64 = msgspec.field(name="beginTimestamp")
    end_timestamp_ms: Int64 = msgspec.field(name="endTimestamp")
    is_unique_key: bool = msgspec.field(name="_UNIQUE_KEY_QUERY", default=False)


class QueryMessageResponse(Header, frozen=True, kw_only=True):
    """How far the key index reaches."""

    index_timestamp_ms: Int64 = msgspec.field(name="indexLastUpdateTimestamp")
    index_log_offset: LogOffset64 = msgspec.field(name="indexLastUpdatePhyoffset")


class ViewMessageRequest(Header, frozen=True, kw_only=True):
    """Asks for the message at one place of the log."""

    log_offset: LogOffset64 = msgspec.field(name="offset")
    topic: str | None = None


class QueryConsumeQueueRequest(Header, frozen=True, kw_only=True):
    """Asks for raw entries of a consume queue, and whether a group's filter takes them."""

    topic: str | None = None
    queue_id: Int32 = 0
    queue_offset: QueueOffset64 = msgspec.field(name="index", default=QueueOffset(0))
    count: Int32 = 0
    consumer_group: str | None = None


class ViewBrokerStatsRequest(Header, frozen=True, kw_only=True):
    """Asks for one counter of the broker."""

    stats_name: str
    stats_key: str
