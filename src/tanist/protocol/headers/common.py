"""Field sets that several requests share."""

import msgspec

from tanist.model.integers import Int32, QueueOffset64
from tanist.protocol.headers.base import Header


class TopicRequest(Header, frozen=True, kw_only=True):
    """Asks about one topic."""

    topic: str


class TopicQueueRequest(Header, frozen=True, kw_only=True):
    """Asks about one queue of the broker."""

    topic: str
    queue_id: Int32


class QueueOffsetResponse(Header, frozen=True, kw_only=True):
    """A position in the queue that was asked about."""

    queue_offset: QueueOffset64 = msgspec.field(name="offset")


class ConsumerGroupRequest(Header, frozen=True, kw_only=True):
    """Asks about one consumer group."""

    consumer_group: str


class GroupRequest(Header, frozen=True, kw_only=True):
    """Asks about one consumer group, by the other wire name it has."""

    group: str


class TopicGroupRequest(Header, frozen=True, kw_only=True):
    """Asks about one group's consumption of one topic."""

    topic: str
    group: str


class BrokerNameRequest(Header, frozen=True, kw_only=True):
    """Asks about one replica group."""

    broker_name: str
