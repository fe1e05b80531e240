"""How much clients may have a broker remember of them. Pure.

A heartbeat stays in memory for as long as its client does, so every part of it is bounded: names by
their length, groups by their number on one connection, members and subscriptions in all.
"""

from collections.abc import Iterable

from tanist.errors import ResponseError
from tanist.model.route import MessageQueue
from tanist.model.subscription import SQL92, SubscriptionData
from tanist.protocol.bodies.client import HeartbeatData
from tanist.protocol.codes import ResponseCode

MAX_GROUPS_PER_CONNECTION = 1_000
"""Groups cost memory, and consumer groups a topic each. No process needs more of them."""
MAX_NEW_GROUPS = 64
"""Groups that one heartbeat makes. The next one makes more; a group that is pulled for comes by itself."""
MAX_MEMBERS = 200_000
"""Members of all groups together; a client is a member of each of its groups."""
MAX_SUBSCRIPTION_BYTES = 64 << 20
"""What the subscriptions of all groups together may take."""
MAX_CLIENT_ID_CHARS = 1_024
MAX_NAME_CHARS = 255
"""More than the name of a topic, a group or a broker has."""

_SUBSCRIPTION_BYTES = 400
_TAG_BYTES = 120
"""What a subscription and a tag of it take beside their text, roughly."""
_SQL_FACTOR = 200
"""So many times its text a compiled expression takes, roughly."""


def subscriptions_bytes(subscriptions: Iterable[SubscriptionData]) -> int:
    """Roughly what these take in memory."""
    return sum(
        _SUBSCRIPTION_BYTES
        + len(one.topic)
        + len(one.expression) * (_SQL_FACTOR if one.expression_type == SQL92 else 1)
        + sum(map(len, one.tags))
        + _TAG_BYTES * max(len(one.tags), len(one.tag_codes))
        for one in subscriptions
    )


def check_heartbeat(heartbeat: HeartbeatData) -> None:
    """Refuse a heartbeat whose names are longer than names are."""
    check_client_id(heartbeat.client_id)
    for producer in heartbeat.producer_data_set:
        _check_name("group", producer.group_name)
    for consumer in heartbeat.consumer_data_set:
        _check_name("group", consumer.group_name)
        for subscription in consumer.subscription_data_set:
            _check_name("topic", subscription.topic)


def check_locks(client_id: str, group: str, queues: Iterable[MessageQueue]) -> None:
    """Refuse locks whose names are longer than names are: a lock outlives its connection."""
    check_client_id(client_id)
    _check_name("group", group)
    for queue in queues:
        _check_name("topic", queue.topic)
        _check_name("broker", queue.broker_name)


def check_client_id(client_id: str) -> None:
    if len(client_id) > MAX_CLIENT_ID_CHARS:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            f"a client id of {len(client_id)} characters: at most {MAX_CLIENT_ID_CHARS} are taken",
        )


def check_group_count(count: int) -> None:
    """Refuse to know one connection by so many groups."""
    if count > MAX_GROUPS_PER_CONNECTION:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            f"{count} groups on one connection: at most {MAX_GROUPS_PER_CONNECTION} are taken",
        )


def check_room(*, member_count: int, subscription_bytes: int) -> None:
    """Refuse what would make all clients together cost too much; they ask again with the next heartbeat."""
    if member_count > MAX_MEMBERS or subscription_bytes > MAX_SUBSCRIPTION_BYTES:
        raise ResponseError(
            ResponseCode.SYSTEM_BUSY,
            f"[OVERLOAD] the groups would have {member_count} members and {subscription_bytes} bytes of "
            f"subscriptions; {MAX_MEMBERS} and {MAX_SUBSCRIPTION_BYTES} are taken",
        )


def _check_name(what: str, name: str) -> None:
    if len(name) > MAX_NAME_CHARS:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            f"a {what} name of {len(name)} characters: at most {MAX_NAME_CHARS} are taken",
        )
