"""Consumer groups: how far each is, queue by queue, and who its members are."""

from collections.abc import Mapping
from typing import NamedTuple

from tanist.broker.groups import SYSTEM_GROUPS
from tanist.console.views.base import Level, View
from tanist.console.watching.snapshot import Snapshot
from tanist.model.groups import TRANSACTION_GROUP, SubscriptionGroupConfig
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.client import ConsumerConnections
from tanist.protocol.bodies.stats import QueueConsumeStats
from tanist.protocol.codes import Version

_SYSTEM_GROUPS = frozenset({*SYSTEM_GROUPS, TRANSACTION_GROUP})
_BEHIND_MS = 60_000
"""A group whose next message is older asks for an operator."""


class GroupRow(View, frozen=True, kw_only=True):
    """One group in the list."""

    group: str
    topics: list[str]
    queue_count: int
    backlog: int
    """Messages that it has not consumed."""
    per_second: float
    is_enabled: bool
    level: Level


class Groups(View, frozen=True, kw_only=True):
    """The consumer groups of a cluster."""

    taken_ms: int
    total_count: int
    groups: list[GroupRow]


class QueueProgress(View, frozen=True, kw_only=True):
    """One queue, as a group stands in it."""

    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    backlog: int
    consumed_to_ms: int
    """When the last message came that it has consumed; 0 for none."""


class ClientRow(View, frozen=True, kw_only=True):
    """One member."""

    client_id: str
    address: str
    language: str
    version: str
    brokers: list[str]


class GroupPage(View, frozen=True, kw_only=True):
    """One group."""

    taken_ms: int
    group: GroupRow
    message_model: str | None
    consume_type: str | None
    consume_from: str | None
    retry_max_times: int | None
    is_consumed_orderly: bool
    subscriptions: dict[str, str]
    queues: list[QueueProgress]
    clients: list[ClientRow]
    client_notes: list[str]
    """What brokers say who name no members."""


class _Entry(NamedTuple):
    """One queue of a group, and the group's rate in the queue's topic."""

    queue: MessageQueue
    stats: QueueConsumeStats
    rate: float


_Configs = dict[str, SubscriptionGroupConfig]


def groups_view(snapshot: Snapshot, *, search: str = "", are_all_shown: bool = False) -> Groups:
    """Those that hold ``search`` in their name, those first that are furthest behind.

    Without ``are_all_shown`` those are left out that every broker has from the beginning.
    """
    entries = _entries(snapshot)
    configs = {
        group: found
        for group, found in _configs(snapshot, entries).items()
        if are_all_shown or group not in _SYSTEM_GROUPS
    }
    found = [
        _row(group, configs[group], _progress(entries.get(group, [])), snapshot.taken_ms)
        for group in configs
        if search.lower() in group.lower()
    ]
    return Groups(
        taken_ms=snapshot.taken_ms,
        total_count=len(configs),
        groups=sorted(found, key=lambda row: (-row.backlog, row.group)),
    )


def is_known_group(snapshot: Snapshot, group: str) -> bool:
    """Whether any broker knows the group."""
    return group in _configs(snapshot, _entries(snapshot))


def group_page(
    snapshot: Snapshot, group: str, members: Mapping[str, ConsumerConnections | str]
) -> GroupPage | None:
    """One group with the members that each replica group names, or why it names none. None if unknown."""
    entries = _entries(snapshot)
    configs = _configs(snapshot, entries).get(group)
    if configs is None:
        return None
    progress = _progress(entries.get(group, []))
    config = next(iter(configs.values()))
    found = [table for table in members.values() if not isinstance(table, str)]
    first = found[0] if found else ConsumerConnections()
    return GroupPage(
        taken_ms=snapshot.taken_ms,
        group=_row(group, configs, progress, snapshot.taken_ms),
        message_model=first.message_model and first.message_model.value,
        consume_type=first.consume_type and first.consume_type.value,
        consume_from=first.consume_from_where and first.consume_from_where.value,
        retry_max_times=config.retry_max_times,
        is_consumed_orderly=config.is_consumed_orderly,
        subscriptions={
            topic: data.expression for table in found for topic, data in table.subscription_table.items()
        },
        queues=sorted(progress.queues, key=lambda queue: (queue.topic, queue.broker_name, queue.queue_id)),
        clients=_clients(members),
        client_notes=[f"{name}: {text}" for name, text in members.items() if isinstance(text, str)],
    )


def groups_of_topic(snapshot: Snapshot, topic: str) -> list[str]:
    """The groups that have offsets in a topic."""
    return sorted(
        group
        for group, found in _entries(snapshot).items()
        if any(entry.queue.topic == topic for entry in found)
    )


def _entries(snapshot: Snapshot) -> dict[str, list[_Entry]]:
    """Every queue of every group."""
    entries: dict[str, list[_Entry]] = {}
    for look in snapshot.speakers():
        for table in () if look.tables.consume is None else look.tables.consume.consume_stats_list:
            for group, parts in table.items():
                entries.setdefault(group, []).extend(
                    _Entry(queue, stats, part.consume_tps)
                    for part in parts
                    for queue, stats in part.offset_table.items()
                )
    return entries


def _configs(snapshot: Snapshot, entries: Mapping[str, list[_Entry]]) -> dict[str, _Configs]:
    """By group, its settings on each replica group; groups too of which there are offsets alone."""
    configs: dict[str, _Configs] = {}
    for look in snapshot.speakers():
        for group, config in look.tables.groups.items():
            configs.setdefault(group, {})[look.name] = config
    for group, found in entries.items():
        if found and group not in configs:
            configs[group] = {found[0].queue.broker_name: SubscriptionGroupConfig(group_name=group)}
    return configs


class _Progress(NamedTuple):
    """The queues of a group, and how fast it is in all of them."""

    queues: list[QueueProgress]
    per_second: float


def _progress(entries: list[_Entry]) -> _Progress:
    queues = [
        QueueProgress(
            topic=queue.topic,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            broker_offset=stats.broker_offset,
            consumer_offset=stats.consumer_offset,
            backlog=max(0, stats.broker_offset - stats.consumer_offset),
            consumed_to_ms=stats.last_timestamp_ms,
        )
        for queue, stats, _ in entries
    ]
    rates = {(entry.queue.broker_name, entry.queue.topic): entry.rate for entry in entries}
    return _Progress(queues, sum(rates.values()))


def _row(group: str, configs: _Configs, progress: _Progress, now_ms: int) -> GroupRow:
    queues = progress.queues
    is_enabled = all(config.is_consume_enabled for config in configs.values())
    is_late = any(
        queue.backlog and queue.consumed_to_ms and now_ms - queue.consumed_to_ms > _BEHIND_MS
        for queue in queues
    )
    return GroupRow(
        group=group,
        topics=sorted({queue.topic for queue in queues}),
        queue_count=len(queues),
        backlog=sum(queue.backlog for queue in queues),
        per_second=progress.per_second,
        is_enabled=is_enabled,
        level=Level.WARN if is_late or not is_enabled else Level.GOOD,
    )


def _clients(members: Mapping[str, ConsumerConnections | str]) -> list[ClientRow]:
    """Each member once, with the replica groups that it is connected to."""
    rows: dict[str, ClientRow] = {}
    for name, table in members.items():
        for client in () if isinstance(table, str) else table.connections:
            known = rows.get(client.client_id)
            brokers = [name] if known is None else [*known.brokers, name]
            rows[client.client_id] = ClientRow(
                client_id=client.client_id,
                address=client.client_addr,
                language=client.language,
                version=_version(client.version),
                brokers=brokers,
            )
    return [rows[client_id] for client_id in sorted(rows)]


def _version(number: int) -> str:
    try:
        return Version(number).name.removeprefix("V").replace("_", ".")
    except ValueError:
        return str(number)
