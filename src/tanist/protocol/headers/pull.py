"""Pulling messages out of one queue."""

from enum import IntFlag

import msgspec

from tanist.model.integers import Int32, Int64, QueueOffset64
from tanist.protocol.headers.base import Header


class PullSysFlag(IntFlag):
    """The bits of a pull's ``sys_flag``."""

    COMMIT_OFFSET = 1
    SUSPEND = 2
    SUBSCRIPTION = 4
    CLASS_FILTER = 8
    LITE_PULL = 16


class PullMessageRequest(Header, frozen=True, kw_only=True):
    """Wants up to ``max_message_count`` messages from ``queue_offset`` on."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: QueueOffset64
    max_message_count: Int32 = msgspec.field(name="maxMsgNums")
    sys_flag: Int32
    consumer_offset: QueueOffset64 = msgspec.field(name="commitOffset")
    """To be committed if COMMIT_OFFSET is set; anything otherwise."""
    suspend_timeout_ms: Int64 = msgspec.field(name="suspendTimeoutMillis")
    subscription: str | None = None
    sub_version: Int64
    expression_type: str | None = None
    max_message_bytes: Int32 | None = msgspec.field(name="maxMsgBytes", default=None)
    request_source: Int32 | None = None
    proxy_forward_client_id: str | None = msgspec.field(name="proxyFrowardClientId", default=None)
    """RocketMQ's own misspelling."""


class PullMessageResponse(Header, frozen=True, kw_only=True):
    """Where to pull next, and at which replica. Clients need the first four whatever was found."""

    suggested_broker_id: Int64 = msgspec.field(name="suggestWhichBrokerId")
    next_begin_offset: QueueOffset64
    min_offset: QueueOffset64
    max_offset: QueueOffset64
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    offset_delta: Int64 | None = None
    forbidden_type: Int32 | None = None
