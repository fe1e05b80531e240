"""The name server: routes out, registrations in."""

import msgspec

from tanist.model.integers import Int32, Int64
from tanist.protocol.headers.base import Header


class GetRouteRequest(Header, frozen=True, kw_only=True):
    """Asks for the route of a topic."""

    topic: str
    accept_standard_json_only: bool | None = None


class ClusterRequest(Header, frozen=True, kw_only=True):
    """Asks about one cluster."""

    cluster: str


class DeleteTopicInNameserverRequest(Header, frozen=True, kw_only=True):
    """Forgets the route of a topic, in one cluster or in all."""

    topic: str
    cluster_name: str | None = None


class PutKVConfigRequest(Header, frozen=True, kw_only=True):
    """Sets one value."""

    namespace: str
    key: str
    value: str


class KVConfigRequest(Header, frozen=True, kw_only=True):
    """Asks for one value, or deletes it."""

    namespace: str
    key: str


class GetKVConfigResponse(Header, frozen=True, kw_only=True):
    """The value."""

    value: str | None = None


class KVNamespaceRequest(Header, frozen=True, kw_only=True):
    """Asks for all values of a namespace."""

    namespace: str


class WipeWritePermResponse(Header, frozen=True, kw_only=True):
    """How many topics lost their write permission."""

    wiped_topic_count: Int32 = msgspec.field(name="wipeTopicCount")


class AddWritePermResponse(Header, frozen=True, kw_only=True):
    """How many topics got their write permission back."""

    added_topic_count: Int32 = msgspec.field(name="addTopicCount")


class RegisterBrokerRequest(Header, frozen=True, kw_only=True):
    """A broker makes itself known. Without ``enable_acting_master`` it is an old one."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    body_crc32: Int32 = 0
    """Of the body as sent, masked to 31 bits; 0 switches the check off."""
    is_compressed: bool = msgspec.field(name="compressed", default=False)
    heartbeat_timeout_ms: Int64 | None = msgspec.field(name="heartbeatTimeoutMillis", default=None)
    enable_acting_master: bool | None = None


class RegisterBrokerResponse(Header, frozen=True, kw_only=True):
    """Tells a slave where its master is, if one is alive."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class BrokerIdentityRequest(Header, frozen=True, kw_only=True):
    """One replica, by all its names."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionResponse(Header, frozen=True, kw_only=True):
    """Whether the name server holds another version of the broker's topics."""

    is_changed: bool = msgspec.field(name="changed")


class BrokerMemberGroupRequest(Header, frozen=True, kw_only=True):
    """Asks which replicas of a group are alive."""

    cluster_name: str
    broker_name: str


class NotifyMinBrokerIdRequest(Header, frozen=True, kw_only=True):
    """Tells a broker that the smallest live id of its group has changed."""

    min_broker_id: Int64 | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
