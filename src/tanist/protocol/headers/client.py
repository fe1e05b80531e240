"""Clients themselves: their coming and going, and what a broker asks of them."""

import msgspec

from tanist.model.integers import Int32
from tanist.protocol.headers.base import Header


class HeartbeatResponse(Header, frozen=True, kw_only=True):
    """Offers the shorter heartbeats of RocketMQ 5. Without these fields a client keeps to full ones."""

    is_heartbeat_v2_supported: bool | None = msgspec.field(name="IS_SUPPORT_HEART_BEAT_V2", default=None)
    is_subscription_changed: bool | None = msgspec.field(name="IS_SUB_CHANGE", default=None)


class UnregisterClientRequest(Header, frozen=True, kw_only=True):
    """A client leaves one of its groups."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class ConsumerRunningInfoRequest(Header, frozen=True, kw_only=True):
    """Asks a consumer what it is doing. A broker relays the operator's request to the client."""

    consumer_group: str
    client_id: str
    is_jstack_enabled: bool | None = msgspec.field(name="jstackEnable", default=None)


class ConsumeMessageDirectlyRequest(Header, frozen=True, kw_only=True):
    """Makes one client consume one message. Relayed, like the running info."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
