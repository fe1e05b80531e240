"""Topics: where they live, and what their queues hold."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from tanist.console.views.base import View
from tanist.console.watching.snapshot import Snapshot
from tanist.model.route import TopicRouteData
from tanist.model.topics import (
    DLQ_PREFIX,
    REPLY_SUFFIX,
    RETRY_PREFIX,
    SYSTEM_PREFIX,
    SYSTEM_TOPICS,
    TRACE_TOPIC,
    Permission,
    TopicConfig,
)
from tanist.protocol.bodies.stats import TopicStatsTable


class TopicKind(StrEnum):
    """What a topic is for."""

    NORMAL = "normal"
    RETRY = "retry"
    DEAD_LETTERS = "dead letters"
    SYSTEM = "system"


class TopicRow(View, frozen=True, kw_only=True):
    """One topic in the list."""

    topic: str
    kind: TopicKind
    brokers: list[str]
    read_queue_count: int
    """On all brokers together, and so the next."""
    write_queue_count: int
    permission: str
    is_ordered: bool


class Topics(View, frozen=True, kw_only=True):
    """The topics of a cluster."""

    taken_ms: int
    total_count: int
    """Before anything was searched for or left out."""
    topics: list[TopicRow]


class RouteRow(View, frozen=True, kw_only=True):
    """What one replica group offers of a topic, as the name server tells clients."""

    broker_name: str
    read_queue_count: int
    write_queue_count: int
    permission: str
    addresses: dict[int, str]


class QueueRow(View, frozen=True, kw_only=True):
    """One queue: ``[min_offset, max_offset)``."""

    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int
    last_update_ms: int


class TopicPage(View, frozen=True, kw_only=True):
    """One topic."""

    taken_ms: int
    topic: TopicRow
    routes: list[RouteRow]
    route_failure: str | None
    queues: list[QueueRow]
    queue_failures: list[str]
    message_count: int
    groups: list[str]
    """The groups that have offsets in it, or members that want it."""
    producers: list[str]
    """The producer groups that are connected to its brokers; none of them says what it sends to."""


def topics_view(snapshot: Snapshot, *, search: str = "", are_all_shown: bool = False) -> Topics:
    """Those that hold ``search`` in their name; without ``are_all_shown`` only the kind that users made."""
    tables = _tables(snapshot)
    rows = [_row(topic, tables[topic]) for topic in sorted(tables)]
    wanted = [
        row
        for row in rows
        if search.lower() in row.topic.lower() and (are_all_shown or row.kind is TopicKind.NORMAL)
    ]
    return Topics(taken_ms=snapshot.taken_ms, total_count=len(rows), topics=wanted)


def topic_row(snapshot: Snapshot, topic: str) -> TopicRow | None:
    """None if no broker has it."""
    found = _tables(snapshot).get(topic)
    return None if found is None else _row(topic, found)


def topic_page(
    snapshot: Snapshot,
    row: TopicRow,
    route: TopicRouteData | str,
    stats: Mapping[str, TopicStatsTable | str],
    *,
    groups: Sequence[str],
    producers: Sequence[str],
) -> TopicPage:
    """One topic, with its route and what the queues of each broker hold; a text is why that is not known."""
    queues = [
        QueueRow(
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            min_offset=found.min_offset,
            max_offset=found.max_offset,
            last_update_ms=found.last_update_timestamp_ms,
        )
        for table in stats.values()
        if not isinstance(table, str)
        for queue, found in table.offset_table.items()
    ]
    return TopicPage(
        taken_ms=snapshot.taken_ms,
        topic=row,
        routes=[] if isinstance(route, str) else _routes(route),
        route_failure=route if isinstance(route, str) else None,
        queues=sorted(queues, key=lambda queue: (queue.broker_name, queue.queue_id)),
        queue_failures=[f"{name}: {reason}" for name, reason in stats.items() if isinstance(reason, str)],
        message_count=sum(queue.max_offset - queue.min_offset for queue in queues),
        groups=list(groups),
        producers=list(producers),
    )


def kind_of(topic: str) -> TopicKind:
    if topic.startswith(RETRY_PREFIX):
        return TopicKind.RETRY
    if topic.startswith(DLQ_PREFIX):
        return TopicKind.DEAD_LETTERS
    is_system = topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX) or topic.endswith(REPLY_SUFFIX)
    return TopicKind.SYSTEM if is_system or topic == TRACE_TOPIC else TopicKind.NORMAL


def permission_text(perm: int) -> str:
    """``RW``, ``R``, ``W`` or a dash."""
    return ("R" if perm & Permission.READ else "") + ("W" if perm & Permission.WRITE else "") or "-"


def _tables(snapshot: Snapshot) -> dict[str, dict[str, TopicConfig]]:
    """By topic, its settings on each replica group. One named like a group or cluster is a broker's own."""
    own = {look.name for look in snapshot.brokers} | {look.place.cluster for look in snapshot.brokers}
    tables: dict[str, dict[str, TopicConfig]] = {}
    for look in snapshot.speakers():
        for topic, config in look.tables.topics.items():
            if topic not in own:
                tables.setdefault(topic, {})[look.name] = config
    return tables


def _row(topic: str, configs: Mapping[str, TopicConfig]) -> TopicRow:
    perm = 0
    for config in configs.values():
        perm |= config.perm
    return TopicRow(
        topic=topic,
        kind=kind_of(topic),
        brokers=sorted(configs),
        read_queue_count=sum(config.read_queue_count for config in configs.values()),
        write_queue_count=sum(config.write_queue_count for config in configs.values()),
        permission=permission_text(perm),
        is_ordered=any(config.is_ordered for config in configs.values()),
    )


def _routes(route: TopicRouteData) -> list[RouteRow]:
    addresses = {data.broker_name: data.broker_addrs for data in route.broker_datas}
    return [
        RouteRow(
            broker_name=queue.broker_name,
            read_queue_count=queue.read_queue_count,
            write_queue_count=queue.write_queue_count,
            permission=permission_text(queue.perm),
            addresses=dict(sorted(addresses.get(queue.broker_name, {}).items())),
        )
        for queue in sorted(route.queue_datas, key=lambda queue: queue.broker_name)
    ]
