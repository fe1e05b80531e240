"""Offsets of groups and of queues."""

import msgspec

from tanist.model.integers import Int32, Int64, QueueOffset64
from tanist.protocol.headers.base import Header


class QueryConsumerOffsetRequest(Header, frozen=True, kw_only=True):
    """Asks where a group stands in a queue."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


class ConsumerOffsetResponse(Header, frozen=True, kw_only=True):
    """The next message the group will read."""

    consumer_offset: QueueOffset64 = msgspec.field(name="offset")


class UpdateConsumerOffsetRequest(Header, frozen=True, kw_only=True):
    """Commits a group's offset. It may go back.

    ``client_id`` is ours: a member says who it is, and whoever moves the group does not.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    consumer_offset: QueueOffset64 = msgspec.field(name="commitOffset")
    client_id: str | None = None


class GetMaxOffsetRequest(Header, frozen=True, kw_only=True):
    """Asks for the end of a queue, up to what is safe to read or up to what was written."""

    topic: str
    queue_id: Int32
    is_committed: bool = msgspec.field(name="committed", default=True)


class SearchOffsetRequest(Header, frozen=True, kw_only=True):
    """Asks for the offset at a time. ``boundary_type`` is LOWER or UPPER."""

    topic: str
    queue_id: Int32
    timestamp_ms: Int64 = msgspec.field(name="timestamp")
    boundary_type: str | None = None


class EarliestStoreTimeResponse(Header, frozen=True, kw_only=True):
    """When the first message of the queue was stored, or -1."""

    timestamp_ms: Int64 = msgspec.field(name="timestamp")


class CloneGroupOffsetRequest(Header, frozen=True, kw_only=True):
    """Copies the offsets of one group to another."""

    source_group: str = msgspec.field(name="srcGroup")
    destination_group: str = msgspec.field(name="destGroup")
    topic: str | None = None
    is_offline: bool | None = msgspec.field(name="offline", default=None)


class QueryCorrectionOffsetRequest(Header, frozen=True, kw_only=True):
    """Compares the offsets of groups; ``filter_groups`` is a comma-separated list."""

    filter_groups: str | None = None
    compare_group: str
    topic: str
