"""What a slave asks its master beside the log, and what brokers tell of their replication.

RocketMQ from 5.3.4 on pages the topic and group tables. A master that leaves out the totals is taken
for an older one that sent everything at once.
"""

import msgspec

from tanist.model.integers import Int32, Int64, LogOffset64
from tanist.protocol.headers.base import Header


class GetTopicConfigPageRequest(Header, frozen=True, kw_only=True):
    """Asks for all topics, or for a page of them. ``data_version`` is JSON text."""

    topic_seq: Int32 | None = None
    max_topic_count: Int32 | None = msgspec.field(name="maxTopicNum", default=None)
    data_version: str | None = None


class GetTopicConfigPageResponse(Header, frozen=True, kw_only=True):
    """How many topics there are in all."""

    total_topic_count: Int32 | None = msgspec.field(name="totalTopicNum", default=None)


class GetGroupConfigPageRequest(Header, frozen=True, kw_only=True):
    """Asks for all groups, or for a page of them. ``data_version`` is JSON text."""

    group_seq: Int32 | None = None
    max_group_count: Int32 | None = msgspec.field(name="maxGroupNum", default=None)
    data_version: str | None = None


class GetGroupConfigPageResponse(Header, frozen=True, kw_only=True):
    """How many groups there are in all."""

    total_group_count: Int32 | None = msgspec.field(name="totalGroupNum", default=None)


class ExchangeHAInfo(Header, frozen=True, kw_only=True):
    """Where the master is and how far it has flushed. Request and answer look the same."""

    master_ha_address: str | None = None
    master_flushed_to: LogOffset64 | None = msgspec.field(name="masterFlushOffset", default=None)
    master_address: str | None = None


class ResetMasterFlushOffsetRequest(Header, frozen=True, kw_only=True):
    """Corrects how far a slave believes its master has flushed."""

    master_flushed_to: LogOffset64 = msgspec.field(name="masterFlushOffset")


class RebuildSlaveRequest(Header, frozen=True, kw_only=True):
    """Which replica is to be filled anew: whoever asks must know whom."""

    broker_name: str
    broker_id: Int64


class GetBrokerConfigResponse(Header, frozen=True, kw_only=True):
    """The version of the settings in the body, as the JSON text of a DataVersion."""

    version: str
