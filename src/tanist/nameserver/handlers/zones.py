"""Zones: a client that says where it is gets the brokers that are there too."""

import msgspec

from tanist.nameserver.route_table import TopicRoute
from tanist.protocol import Command

_ZONE_NAME = "__ZONE_NAME"
_ZONE_MODE = "__ZONE_MODE"


def zone_of(request: Command) -> str | None:
    """The zone in which the sender says it is."""
    return request.ext.get(_ZONE_NAME)


def wants_own_zone(request: Command) -> bool:
    return request.ext.get(_ZONE_MODE, "").lower() == "true"


def in_zone(found: TopicRoute, zone_name: str) -> TopicRoute:
    """Only the groups of a client's own zone, and those without a master, which anybody may read from."""
    groups = [
        group
        for group in found.broker_datas
        if group.master_addr is None or (group.zone_name or "").lower() == zone_name.lower()
    ]
    names = {group.broker_name for group in groups}
    return msgspec.structs.replace(
        found,
        broker_datas=groups,
        queue_datas=[queues for queues in found.queue_datas if queues.broker_name in names],
    )
