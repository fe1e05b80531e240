"""Sending: a message in, its place in the log out; and sending one back to be consumed again.

SEND_MESSAGE and SEND_MESSAGE_V2 say the same, the second with one letter a field. Handlers take a
SendMessageRequest; a SendMessageRequestV2 is one, with other wire names.
"""

import msgspec

from tanist.model.integers import Int32, Int64, LogOffset64, QueueOffset64
from tanist.protocol.headers.base import Header

DEFAULT_REGION = "DefaultRegion"


class SendMessageRequest(Header, frozen=True, kw_only=True):
    """The message around its body, in the long spelling. ``properties`` is the wire string as it came."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_count: Int32 = msgspec.field(name="defaultTopicQueueNums")
    queue_id: Int32
    """Negative: the broker picks."""
    sys_flag: Int32
    born_timestamp_ms: Int64 = msgspec.field(name="bornTimestamp")
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    is_unit_mode: bool | None = msgspec.field(name="unitMode", default=None)
    max_reconsume_times: Int32 | None = None
    is_batch: bool | None = msgspec.field(name="batch", default=None)
    """Decides whether the body is a batch; the request code does not."""
    broker_name: str | None = msgspec.field(name="bname", default=None)
    write_run: str | None = None
    """Ours: which run of a write that is made once this batch is, see ``tanist.model.writes``."""


class SendMessageRequestV2(SendMessageRequest, frozen=True, kw_only=True):
    """The same in the short spelling."""

    producer_group: str = msgspec.field(name="a")
    topic: str = msgspec.field(name="b")
    default_topic: str = msgspec.field(name="c")
    default_topic_queue_count: Int32 = msgspec.field(name="d")
    queue_id: Int32 = msgspec.field(name="e")
    sys_flag: Int32 = msgspec.field(name="f")
    born_timestamp_ms: Int64 = msgspec.field(name="g")
    flag: Int32 = msgspec.field(name="h")
    properties: str | None = msgspec.field(name="i", default=None)
    reconsume_times: Int32 | None = msgspec.field(name="j", default=None)
    is_unit_mode: bool | None = msgspec.field(name="k", default=None)
    max_reconsume_times: Int32 | None = msgspec.field(name="l", default=None)
    is_batch: bool | None = msgspec.field(name="m", default=None)
    broker_name: str | None = msgspec.field(name="n", default=None)


class SendMessageResponse(Header, frozen=True, kw_only=True):
    """Where the message went. Java clients need all of ``msg_id``, ``queue_id`` and ``queue_offset``.

    ``msg_id`` is the offset id, comma-separated for a batch, whose ``queue_offset`` is its first.
    """

    region: str = msgspec.field(name="MSG_REGION", default=DEFAULT_REGION)
    is_trace_on: bool = msgspec.field(name="TRACE_ON", default=True)
    batch_uniq_id: str | None = None
    msg_id: str
    queue_id: Int32
    queue_offset: QueueOffset64
    recall_handle: str | None = None
    transaction_id: str | None = None


class PushReplyMessageRequest(Header, frozen=True, kw_only=True):
    """An answer of request/reply, pushed by the broker to the client that asked."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_count: Int32 = msgspec.field(name="defaultTopicQueueNums")
    queue_id: Int32
    sys_flag: Int32
    born_timestamp_ms: Int64 = msgspec.field(name="bornTimestamp")
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    is_unit_mode: bool | None = msgspec.field(name="unitMode", default=None)
    born_host: str
    store_host: str
    store_timestamp_ms: Int64 = msgspec.field(name="storeTimestamp")


class ConsumerSendBackRequest(Header, frozen=True, kw_only=True):
    """A message its group could not consume. ``delay_level`` 0: the broker decides, below 0: give it up."""

    log_offset: LogOffset64 = msgspec.field(name="offset")
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    is_unit_mode: bool = msgspec.field(name="unitMode", default=False)
    max_reconsume_times: Int32 | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class RecallMessageRequest(Header, frozen=True, kw_only=True):
    """Takes a delayed message back."""

    producer_group: str | None = None
    topic: str
    recall_handle: str


class RecallMessageResponse(Header, frozen=True, kw_only=True):
    """The message that was taken back."""

    msg_id: str | None = None
