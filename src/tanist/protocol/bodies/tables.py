"""Plain lists and tables that several answers carry."""

import msgspec

from tanist.model.route import BrokerMemberGroup
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.base import Body


class KVTable(Body, frozen=True, kw_only=True):
    """Keys and values: settings of a namespace, the runtime figures of a broker."""

    table: dict[str, str] = msgspec.field(default={})


class TopicList(Body, frozen=True, kw_only=True):
    """Topics, and where the question about system topics can be asked further."""

    topics: frozenset[str] = msgspec.field(name="topicList", default=frozenset())
    broker_addr: str | None = None


class GroupList(Body, frozen=True, kw_only=True):
    """Consumer groups."""

    groups: frozenset[str] = msgspec.field(name="groupList", default=frozenset())


class GroupSubscription(Body, frozen=True, kw_only=True):
    """What a group wants of a topic."""

    group: str
    topic: str | None = None
    subscription_data: SubscriptionData | None = None


class BrokerMemberGroupAnswer(Body, frozen=True, kw_only=True):
    """The live replicas of a group, one level down."""

    broker_member_group: BrokerMemberGroup | None = None
