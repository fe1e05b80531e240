"""Topics, as operators see them on a broker."""

import msgspec

from tanist.model.integers import Int32
from tanist.protocol.headers.base import Header


class UpdateTopicRequest(Header, frozen=True, kw_only=True):
    """Creates a topic or changes it. ``attributes`` reads ``+key=value,-key``."""

    topic: str
    default_topic: str
    read_queue_count: Int32 = msgspec.field(name="readQueueNums")
    write_queue_count: Int32 = msgspec.field(name="writeQueueNums")
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    is_ordered: bool = msgspec.field(name="order", default=False)
    attributes: str | None = None
    is_forced: bool | None = msgspec.field(name="force", default=None)


class GetTopicConfigRequest(Header, frozen=True, kw_only=True):
    """Asks for one topic's settings."""

    topic: str
    is_logical: bool | None = msgspec.field(name="lo", default=None)
