"""Makes a plan: reads where the group stands, works out where it is to go, and says what to think of first.

Nothing is changed on any broker.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.aiming import Aimed, Found, Goal, QueueFacts, aim, name_of, shown_queue
from tanist.admin.resets.cautions import GroupFacts, client_cautions, group_cautions
from tanist.admin.resets.client_versions import version_name
from tanist.admin.resets.finding import find_by_id, find_by_key
from tanist.admin.resets.orders import knows_orders
from tanist.admin.resets.places import Places, find_places
from tanist.admin.resets.plan import END, Plan, PlannedClient, planned
from tanist.admin.resets.plan_file import read_plan
from tanist.admin.resets.reading import GroupReader, model_of
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import (
    AtKey,
    AtMessage,
    AtOffsets,
    AtTime,
    Latest,
    LikeGroup,
    LikePlan,
    QueueName,
    Target,
)
from tanist.client.session.wire import Wire
from tanist.model.groups import MessageModel
from tanist.model.route import MessageQueue
from tanist.model.topics import retry_topic
from tanist.protocol.bodies.client import Connection, ConsumerConnections
from tanist.protocol.bodies.stats import QueueStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an operator asks for."""

    name_server: str
    topic: str
    group: str
    target: Target
    words: str
    """The target as it was typed."""
    caller: str
    now_ms: int
    reason: str = ""
    queues: frozenset[QueueName] = frozenset()
    """Only these; none means all."""
    is_forward_allowed: bool = True


class _Aim(NamedTuple):
    """A target of which everything is known."""

    goal: Goal
    message: Found | None = None
    cautions: tuple[str, ...] = ()


async def make_plan(wire: Wire, wish: Wish) -> Plan:
    """What would become of this wish. Raises ResetRefused for one that makes no sense.

    >>> wish = Wish(name_server="127.0.0.1:9876", topic="OrderTopic", group="billing", target=Earliest(),
    ...             words="earliest", caller="ann", now_ms=1_700_000_000_000)
    >>> async with asking() as wire:
    ...     plan = await make_plan(wire, wish)
    """
    places = await find_places(wire, wish.name_server, wish.topic)
    reader = GroupReader(wire, places, wish.group)
    queues = _chosen(places, wish.queues)
    online = await reader.connections()
    aimed_at = await _settle(wire, reader, wish, queues)
    goal = aimed_at.goal
    facts = await reader.facts(queues, at_ms=goal.at_ms if isinstance(goal, AtTime) else None)
    await _check_group(wire, wish, online, facts)
    models = model_of(online.values())
    model = min(models) if models else None
    is_broadcast = model is MessageModel.BROADCASTING
    if is_broadcast:
        facts = await _with_stands(reader, online, facts)
    aimed = aim(
        facts, goal, is_forward_allowed=wish.is_forward_allowed or is_broadcast, message=aimed_at.message
    )
    about = await _about_group(wire, reader, wish, online)
    return _plan(wish, places, about, aimed, aimed_at)


def new_plan_id(now_ms: int) -> str:
    """A name for one reset, which sorts by time."""
    return f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _plan(wish: Wish, places: Places, about: GroupFacts, aimed: list[Aimed], aimed_at: _Aim) -> Plan:
    queues = planned(aimed)
    goal, is_whole = aimed_at.goal, not wish.queues and aimed_at.message is None
    at_ms = goal.at_ms if isinstance(goal, AtTime) else END if isinstance(goal, Latest) else None
    return Plan(
        plan_id=new_plan_id(wish.now_ms),
        created_ms=wish.now_ms,
        created_by=wish.caller,
        reason=wish.reason,
        name_server=wish.name_server,
        clusters=places.clusters,
        brokers=places.names,
        topic=wish.topic,
        group=wish.group,
        model=about.model,
        target=wish.words,
        at_ms=at_ms if is_whole else None,
        is_forward_allowed=wish.is_forward_allowed,
        queues=queues,
        clients=_clients(about),
        warnings=[*aimed_at.cautions, *group_cautions(about, queues, wish.group)],
    )


def _chosen(places: Places, wanted: frozenset[QueueName]) -> list[MessageQueue]:
    known = {name_of(queue) for queue in places.queues}
    if unknown := sorted(wanted - known):
        shown = ", ".join(map(shown_queue, sorted(known)[:8]))
        raise ResetRefused(f"{places.topic} has no queue {shown_queue(unknown[0])}; it has {shown}")
    if not known:
        raise ResetRefused(f"no broker has queues of {places.topic} that may be read")
    return [queue for queue in places.queues if not wanted or name_of(queue) in wanted]


async def _settle(wire: Wire, reader: GroupReader, wish: Wish, queues: Sequence[MessageQueue]) -> _Aim:
    """Look up what a target names: a message, another group, a plan."""
    match wish.target:
        case AtMessage(message_id):
            found = await find_by_id(wire, reader.places, message_id)
            return _Aim(AtTime(found.stored_ms), found)
        case AtKey(key):
            found, count = await find_by_key(wire, reader.places, key)
            several = (f"{count} messages have the key {key!r}: the oldest counts",) if count > 1 else ()
            return _Aim(AtTime(found.stored_ms), found, several)
        case LikeGroup(group):
            return _like_group(group, await reader.offsets(queues, group))
        case LikePlan(path):
            other = read_plan(path)
            if other.topic != wish.topic:
                raise ResetRefused(f"{path} is a plan for topic {other.topic}, not for {wish.topic}")
            offsets = {queue.name: queue.target for queue in other.queues}
            return _Aim(AtOffsets(_only(offsets, wish.queues)))
        case AtOffsets(offsets):
            return _Aim(AtOffsets(_only(offsets, wish.queues)))
        case goal:
            return _Aim(goal)


def _only(offsets: Mapping[QueueName, int], wanted: frozenset[QueueName]) -> dict[QueueName, int]:
    return {name: offset for name, offset in offsets.items() if not wanted or name in wanted}


def _like_group(group: str, offsets: Mapping[MessageQueue, int | None]) -> _Aim:
    there = {name_of(queue): offset for queue, offset in offsets.items() if offset is not None}
    if not there:
        raise ResetRefused(f"group {group} has no offset in these queues, so there is nothing to go to")
    missing = len(offsets) - len(there)
    caution = f"in {missing} queues group {group} has no offset: they stay as they are"
    return _Aim(AtOffsets(there), cautions=(caution,) if missing else ())


async def _check_group(
    wire: Wire, wish: Wish, online: Mapping[str, ConsumerConnections | None], facts: Sequence[QueueFacts]
) -> None:
    """Refuse a group of which nobody has heard: its name may be wrong, and an order would make it."""
    if any(online.values()) or any(each.now is not None for each in facts):
        return
    try:
        await find_places(wire, wish.name_server, retry_topic(wish.group))
    except ResetRefused:
        raise ResetRefused(
            f"no broker of {wish.topic} knows a group {wish.group}: it is not online and has no offsets; "
            "see its name with mqadmin consumerProgress"
        ) from None


async def _with_stands(
    reader: GroupReader, online: Mapping[str, ConsumerConnections | None], facts: Sequence[QueueFacts]
) -> list[QueueFacts]:
    """Clients of a broadcasting group keep their offsets themselves, so they are asked."""
    names = [name for name, there in online.items() if there]
    stands: dict[MessageQueue, dict[str, int]] = {}
    for told in await in_parallel(names, reader.stands):
        for client_id, offsets in told.items():
            for queue, offset in offsets.items():
                stands.setdefault(queue, {})[client_id] = offset
    return [
        QueueFacts(
            queue=each.queue,
            now=each.now,
            min_offset=each.min_offset,
            max_offset=each.max_offset,
            oldest_ms=each.oldest_ms,
            at_time=each.at_time,
            stands=stands.get(each.queue, {}),
        )
        for each in facts
    ]


async def _about_group(
    wire: Wire, reader: GroupReader, wish: Wish, online: Mapping[str, ConsumerConnections | None]
) -> GroupFacts:
    there = {name: each for name, each in online.items() if each is not None}
    models = model_of(there.values())
    one = next(((name, each.connections[0]) for name, each in there.items() if each.connections), None)
    knowing = await in_parallel(reader.places.brokers, lambda place: knows_orders(wire, place.address))
    return GroupFacts(
        connections={name: [] if each is None else each.connections for name, each in online.items()},
        model=min(models) if models else None,
        models=models,
        consume_type=next((each.consume_type for each in there.values()), None),
        is_orderly=one is not None and await reader.is_orderly(one[0], one[1].client_id),
        subscribed=any(wish.topic in each.subscription_table for each in there.values()) if there else None,
        retry_backlog=await _retry_backlog(reader, wish.group),
        stock_brokers=tuple(
            name for name, knows in zip(reader.places.names, knowing, strict=True) if not knows
        ),
    )


async def _retry_backlog(reader: GroupReader, group: str) -> int:
    bounds = await reader.bounds(retry_topic(group))

    async def behind(item: tuple[MessageQueue, QueueStats]) -> int:
        queue, stats = item
        offset = await reader.offset(queue)
        return max(0, stats.max_offset - max(offset or 0, stats.min_offset))

    return sum(await in_parallel(bounds.items(), behind))


def _clients(about: GroupFacts) -> list[PlannedClient]:
    """Each client once, with all brokers at which it is connected."""
    brokers: dict[str, list[str]] = {}
    connections: dict[str, Connection] = {}
    for name, there in about.connections.items():
        for connection in there:
            connections.setdefault(connection.client_id, connection)
            at = brokers.setdefault(connection.client_id, [])
            if name not in at:
                at.append(name)
    return [
        PlannedClient(
            client_id=client_id,
            address=connection.client_addr,
            language=connection.language,
            version=version_name(connection.version),
            brokers=sorted(brokers[client_id]),
            warnings=client_cautions(connection, about.model),
        )
        for client_id, connection in sorted(connections.items())
    ]
