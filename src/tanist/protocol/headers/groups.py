"""Consumer and producer groups, as operators see them on a broker."""

import msgspec

from tanist.protocol.headers.base import Header


class DeleteGroupRequest(Header, frozen=True, kw_only=True):
    """Deletes a group's settings. RocketMQ 5 and 4.9 name the switch for its offsets differently."""

    group_name: str
    clean_offset: bool | None = None
    remove_offset: bool | None = None

    @property
    def are_offsets_deleted(self) -> bool:
        return bool(self.clean_offset or self.remove_offset)


class ProducerGroupRequest(Header, frozen=True, kw_only=True):
    """Asks about one producer group."""

    producer_group: str


class GetConsumeStatsRequest(Header, frozen=True, kw_only=True):
    """Asks how far a group is behind. ``topic_list`` reads ``a;b;``."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class BrokerConsumeStatsRequest(Header, frozen=True, kw_only=True):
    """Asks how far every group of the broker is behind."""

    is_ordered: bool = msgspec.field(name="isOrder")


class QuerySubscriptionRequest(Header, frozen=True, kw_only=True):
    """Asks what a group wants of a topic."""

    group: str
    topic: str | None = None
