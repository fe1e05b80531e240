"""The tables a slave copies from its master beside the log."""

import struct
from typing import Any, NamedTuple

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.integers import Int32, QueueOffset64
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.base import Body

# last_read_time_ms, last_timer_log_flushed_to, last_timer_queue_offset, master_timer_queue_offset,
# state_version, timestamp_ms, counter
_TIMER_CHECK_POINT = struct.Struct(">7q")


class TopicConfigTable(Body, frozen=True, kw_only=True):
    """All topics of a broker. Also what it keeps in ``topics.json``.

    The mappings belong to the static topics of RocketMQ 5 and are carried along untouched.
    """

    data_version: DataVersion = DataVersion()
    topics: dict[str, TopicConfig] = msgspec.field(name="topicConfigTable", default={})
    mapping_data_version: DataVersion | None = None
    mappings: dict[str, dict[str, Any]] | None = msgspec.field(name="topicQueueMappingInfoMap", default=None)


class TopicConfigList(Body, frozen=True, kw_only=True):
    """Topics to be made or changed in one request."""

    configs: list[TopicConfig] = msgspec.field(name="topicConfigList", default=[])


class GroupConfigList(Body, frozen=True, kw_only=True):
    """Consumer groups to be made or changed in one request."""

    configs: list[SubscriptionGroupConfig] = msgspec.field(name="groupConfigList", default=[])


class ConsumerOffsetTable(Body, frozen=True, kw_only=True):
    """All offsets of all groups: ``topic@group`` to queue id to offset. Also ``consumerOffset.json``.

    Without ``data_version`` a slave of RocketMQ 5 merges the offsets and then fails to keep them.
    """

    data_version: DataVersion = DataVersion()
    offset_table: dict[str, dict[Int32, QueueOffset64]] = msgspec.field(default={})


class DelayOffsetTable(Body, frozen=True, kw_only=True):
    """Where delivery stands, by delay level. Also ``delayOffset.json``."""

    data_version: DataVersion = DataVersion()
    offset_table: dict[Int32, QueueOffset64] = msgspec.field(default={})


class SubscriptionGroupTable(Body, frozen=True, kw_only=True):
    """All consumer groups of a broker. Also ``subscriptionGroup.json``."""

    data_version: DataVersion = DataVersion()
    groups: dict[str, SubscriptionGroupConfig] = msgspec.field(name="subscriptionGroupTable", default={})
    forbidden_table: dict[str, dict[str, Int32]] = msgspec.field(default={})


class MessageRequestModeTable(Body, frozen=True, kw_only=True):
    """How groups get their messages, by topic and group. Carried along, not interpreted."""

    modes: dict[str, Any] = msgspec.field(name="messageRequestModeMap", default={})


class TimerMetrics(Body, frozen=True, kw_only=True):
    """How many messages wait for their time, by topic. Carried along, not interpreted."""

    data_version: DataVersion = DataVersion()
    timing_count: dict[str, Any] = msgspec.field(default={})


class TimerCheckPoint(NamedTuple):
    """How far a master's timer is. Fixed binary, not JSON."""

    last_read_time_ms: int
    last_timer_log_flushed_to: int
    last_timer_queue_offset: int
    master_timer_queue_offset: int
    data_version: DataVersion


def encode_timer_check_point(point: TimerCheckPoint) -> bytes:
    """The 56 bytes of the body."""
    *positions, version = point
    return _TIMER_CHECK_POINT.pack(*positions, version.state_version, version.timestamp_ms, version.counter)


def decode_timer_check_point(body: bytes | memoryview) -> TimerCheckPoint:
    """Read the 56 bytes of the body."""
    if len(body) != _TIMER_CHECK_POINT.size:
        raise RemoteProtocolError(f"a timer check point has {_TIMER_CHECK_POINT.size} bytes, not {len(body)}")
    *positions, state_version, timestamp_ms, counter = _TIMER_CHECK_POINT.unpack(body)
    version = DataVersion(state_version=state_version, counter=counter, timestamp_ms=timestamp_ms)
    return TimerCheckPoint(*positions, data_version=version)
