"""What clients and brokers tell each other about groups, members and queues."""

from contextlib import suppress
from typing import Any, cast

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.integers import Int32, Int64
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.base import Body
from tanist.protocol.java_json import decode_java_json


class ProducerData(Body, frozen=True, kw_only=True):
    """One producer group of a client."""

    group_name: str


class ConsumerData(Body, frozen=True, kw_only=True):
    """One consumer group of a client."""

    group_name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscription_data_set: list[SubscriptionData] = msgspec.field(default=[])
    is_unit_mode: bool = msgspec.field(name="unitMode", default=False)


class HeartbeatData(Body, frozen=True, kw_only=True):
    """All groups of a client. The last two fields belong to the short heartbeats of RocketMQ 5."""

    client_id: str = msgspec.field(name="clientID")
    producer_data_set: list[ProducerData] = msgspec.field(default=[])
    consumer_data_set: list[ConsumerData] = msgspec.field(default=[])
    heartbeat_fingerprint: Int32 = 0
    is_without_sub: bool = msgspec.field(name="withoutSub", default=False)


# Names by their numbers, in the order in which Java has them.
_NAMES_BY_NUMBER = {
    "consumeType": ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"),
    "messageModel": ("BROADCASTING", "CLUSTERING"),
    "consumeFromWhere": (
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ),
}


def decode_heartbeat(data: bytes | memoryview) -> HeartbeatData:
    """Read a heartbeat. Clients written in C++ have numbers in it where Java's have names."""
    try:
        return decode_java_json(data, HeartbeatData)
    except RemoteProtocolError:
        with suppress(RemoteProtocolError):
            raw = decode_java_json(data, dict[str, Any])
            if _name_numbers(raw.get("consumerDataSet")):
                return decode_java_json(msgspec.json.encode(raw), HeartbeatData)
        raise


def _name_numbers(groups: Any) -> bool:
    """Put names in the place of numbers; whether there were any."""
    has_any = False
    for group in cast("list[Any]", groups) if isinstance(groups, list) else []:
        for key, names in _NAMES_BY_NUMBER.items() if isinstance(group, dict) else ():
            number: Any = cast("dict[str, Any]", group).get(key)
            if isinstance(number, int) and 0 <= number < len(names):
                group[key] = names[number]
                has_any = True
    return has_any


class QueueLocks(Body, frozen=True, kw_only=True):
    """Queues that a client wants to lock, or to give up."""

    client_id: str
    consumer_group: str
    queues: list[MessageQueue] = msgspec.field(name="mqSet", default=[])
    is_only_this_broker: bool = msgspec.field(name="onlyThisBroker", default=False)


class LockedQueues(Body, frozen=True, kw_only=True):
    """The queues the client holds now."""

    queues: list[MessageQueue] = msgspec.field(name="lockOKMQSet", default=[])


class ConsumerList(Body, frozen=True, kw_only=True):
    """The members of a group. Every broker of a topic must list the same."""

    client_ids: list[str] = msgspec.field(name="consumerIdList", default=[])


class ClientConfigCheck(Body, frozen=True, kw_only=True):
    """A subscription that is not by tag, to be checked before it is used."""

    client_id: str
    group: str
    subscription_data: SubscriptionData


class AssignmentQuery(Body, frozen=True, kw_only=True):
    """Asks the broker to assign queues, instead of every member working them out."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str = "AVG"
    message_model: MessageModel = MessageModel.CLUSTERING


class QueueAssignment(Body, frozen=True, kw_only=True):
    """One queue of a member. ``mode`` is PULL or POP."""

    queue: MessageQueue = msgspec.field(name="messageQueue")
    mode: str = "PULL"


class Assignments(Body, frozen=True, kw_only=True):
    """All queues of a member."""

    assignments: list[QueueAssignment] = msgspec.field(name="messageQueueAssignments", default=[])


class MessageRequestMode(Body, frozen=True, kw_only=True):
    """How a group gets the messages of a topic. ``mode`` is PULL or POP."""

    topic: str
    consumer_group: str
    mode: str = "PULL"
    pop_share_queue_count: Int32 = msgspec.field(name="popShareQueueNum", default=0)


class Connection(Body, frozen=True, kw_only=True):
    """One connected client. ``language`` is a name."""

    client_id: str
    client_addr: str
    language: str
    version: Int32


class ConsumerConnections(Body, frozen=True, kw_only=True):
    """The members of a consumer group and what they want."""

    connections: list[Connection] = msgspec.field(name="connectionSet", default=[])
    subscription_table: dict[str, SubscriptionData] = msgspec.field(default={})
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None


class ProducerConnections(Body, frozen=True, kw_only=True):
    """The members of a producer group."""

    connections: list[Connection] = msgspec.field(name="connectionSet", default=[])


class ProducerMember(Body, frozen=True, kw_only=True):
    """One producer."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str
    version: Int32
    last_update_timestamp_ms: Int64 = msgspec.field(name="lastUpdateTimestamp")


class ProducerTable(Body, frozen=True, kw_only=True):
    """Every producer of the broker, by group."""

    producers: dict[str, list[ProducerMember]] = msgspec.field(name="data", default={})
