"""Plans the offset reset of many groups at once by time, also to a time before what brokers keep.

Each plan is the one that ``tanist admin resetOffset plan`` makes, in a file that its preview and apply take.
A group can not be sent to what its broker deleted: for that the archive is asked, and it is said how to
replay it.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tanist.admin.cluster import broker_consume_stats, cluster_info
from tanist.admin.resets.plan import Plan, PlannedQueue
from tanist.admin.resets.plan_file import write_plan
from tanist.admin.resets.planning import Wish, make_plan
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import AtTime
from tanist.client.session.wire import Wire
from tanist.model.topics import RETRY_PREFIX
from tanist.spark.archive.catalogue import shown_time
from tanist.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

GroupTopic = tuple[str, str]
QueueKey = tuple[str, str, int]
"""Topic, broker and queue."""


@dataclass(frozen=True, slots=True)
class Archived:
    """What an archive has of a queue that its broker has no more: ``rows`` messages of ``[first, end)``."""

    first: int
    end: int
    rows: int


class OnlyArchived(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What of one queue a reset can not bring back, because only the archive has it."""

    broker: str
    queue_id: int
    first: int
    end: int
    """One past the last of them: the broker has what follows."""
    rows: int
    missing: int
    """So many of the range are not in the archive either."""


class PlanMade(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """One plan."""

    group: str
    topic: str
    file: str
    replayed: int
    skipped: int
    warnings: list[str]
    only_archived: list[OnlyArchived]
    replay: str | None = None
    """What to run for what only the archive has."""


class NotPlanned(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    group: str
    topic: str
    reason: str


class PlansReport(msgspec.Struct, kw_only=True, rename="camel"):
    """All plans for one time."""

    at: str
    plans: list[PlanMade]
    refused: list[NotPlanned]


async def find_pairs(
    wire: Wire, name_server: str, *, groups: Iterable[str], topics: Iterable[str]
) -> list[GroupTopic]:
    """Which groups consume what, as all brokers tell: of these groups and topics; none stands for all."""
    wanted_groups, wanted_topics = frozenset(groups), frozenset(topics)
    found: set[GroupTopic] = set()
    for broker in (await cluster_info(wire, name_server)).broker_addr_table.values():
        if broker.master_addr is None:
            continue
        for listed in (await broker_consume_stats(wire, broker.master_addr)).consume_stats_list:
            found |= {
                (group, queue.topic)
                for group, stats in listed.items()
                for each in stats
                for queue in each.offset_table
                if not queue.topic.startswith(RETRY_PREFIX)
            }
    known = {group for group, _ in found}
    if unknown := sorted(wanted_groups - known):
        raise SparkError(
            f"no broker knows a group {unknown[0]} that consumes; there is {', '.join(sorted(known))}"
        )
    return sorted(
        (group, topic)
        for group, topic in found
        if (not wanted_groups or group in wanted_groups) and (not wanted_topics or topic in wanted_topics)
    )


async def make_plans(
    wire: Wire,
    name_server: str,
    pairs: Sequence[GroupTopic],
    *,
    at_ms: int,
    words: str,
    caller: str,
    now_ms: int,
) -> tuple[list[Plan], list[NotPlanned]]:
    """A plan for every pair of which one can be made. Nothing is changed on any broker."""
    plans: list[Plan] = []
    refused: list[NotPlanned] = []
    for group, topic in pairs:
        wish = Wish(
            name_server=name_server,
            topic=topic,
            group=group,
            target=AtTime(at_ms),
            words=words,
            caller=caller,
            now_ms=now_ms,
        )
        try:
            plans.append(await make_plan(wire, wish))
        except ResetRefused as error:
            refused.append(NotPlanned(group=group, topic=topic, reason=str(error)))
    return plans, refused


def write_plans(
    plans: Iterable[Plan],
    folder: Path,
    archived: Mapping[QueueKey, Archived],
    *,
    archive: Path | None,
    at_ms: int,
) -> list[PlanMade]:
    """Put each plan into a file of its own, and say what is beyond it."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[PlanMade] = []
    for plan in plans:
        path = folder / f"{_safe(plan.group)}@{_safe(plan.topic)}.plan.json"
        only = [one for queue in plan.queues for one in _only_archived(plan.topic, queue, archived)]
        noted = _with_notes(plan, only, archive)
        write_plan(path, noted)
        made.append(
            PlanMade(
                group=plan.group,
                topic=plan.topic,
                file=str(path),
                replayed=plan.replayed,
                skipped=plan.skipped,
                warnings=noted.all_warnings,
                only_archived=only,
                replay=_replay_command(plan, only, archive, at_ms) if only else None,
            )
        )
    _log.info("plans written count=%d folder=%s", len(made), folder)
    return made


def expired_queues(plans: Iterable[Plan], at_ms: int) -> dict[QueueKey, int]:
    """The queues in which the time lies before what is kept, and from where on they are kept."""
    return {
        (plan.topic, queue.broker_name, queue.queue_id): queue.min_offset
        for plan in plans
        for queue in plan.queues
        if queue.min_offset > 0 and (queue.oldest_ms is None or at_ms < queue.oldest_ms)
    }


Lookup = Callable[[Mapping[QueueKey, int], int], dict[QueueKey, Archived]]


def lookup_in(spark: "SparkSession", archive: Path) -> Lookup:
    """Asks an archive, with Spark, for what was stored from a time on and lies before what is kept."""

    def look(kept_from: Mapping[QueueKey, int], at_ms: int) -> dict[QueueKey, Archived]:
        from pyspark.sql import functions as fn  # noqa: PLC0415 - it may not be installed.

        from tanist.spark.archive.frames import read_archive  # noqa: PLC0415

        if not kept_from:
            return {}
        schema = "topic string, broker string, queueId int, keptFrom bigint"
        # PySpark tells no types of what a frame is made of.
        session: Any = spark
        queues = session.createDataFrame([(*key, kept) for key, kept in kept_from.items()], schema)
        archived = read_archive(spark, archive).where(
            fn.col("storeTimestamp") >= fn.timestamp_millis(fn.lit(at_ms))
        )
        found = (
            archived.join(fn.broadcast(queues), ["topic", "queueId"])
            # Files of a store whose broker was not named are taken for the broker's that is asked about.
            .where("queueOffset < keptFrom AND (brokerName IS NULL OR brokerName = broker)")
            .groupBy("topic", "broker", "queueId")
            .agg(fn.min("queueOffset").alias("first"), fn.count("*").alias("rows"))
        )
        rows: list[Any] = found.collect()
        return {
            (key := (row["topic"], row["broker"], row["queueId"])): Archived(
                row["first"], kept_from[key], row["rows"]
            )
            for row in rows
        }

    return look


def _only_archived(
    topic: str, queue: PlannedQueue, archived: Mapping[QueueKey, Archived]
) -> Iterable[OnlyArchived]:
    found = archived.get((topic, queue.broker_name, queue.queue_id))
    if found is not None:
        yield OnlyArchived(
            broker=queue.broker_name,
            queue_id=queue.queue_id,
            first=found.first,
            end=found.end,
            rows=found.rows,
            missing=found.end - found.first - found.rows,
        )


def _with_notes(plan: Plan, only: Sequence[OnlyArchived], archive: Path | None) -> Plan:
    notes = [
        f"{one.broker}:{one.queue_id}: {one.rows} messages from {one.first} to {one.end} are only in the "
        f"archive {archive}" + (f", and {one.missing} of them are nowhere" if one.missing else "")
        for one in only
    ]
    return msgspec.structs.replace(plan, warnings=[*plan.warnings, *notes])


def _replay_command(plan: Plan, only: Sequence[OnlyArchived], archive: Path | None, at_ms: int) -> str:
    """How to have it again. Queues are kept from different times on: up to the latest nothing is left out."""
    names = {(one.broker, one.queue_id) for one in only}
    kept = [queue.oldest_ms or plan.created_ms for queue in plan.queues if queue.name in names]
    return (
        f"tanist spark replay {archive} -n {plan.name_server} -t {plan.topic} --from {shown_time(at_ms)} "
        f"--until {shown_time(max(kept))} --to-group {plan.group}"
    )


def _safe(name: str) -> str:
    """A name as a part of a file's. It has no ``@``, which is what parts are told apart by."""
    return re.sub(r"[^\w.-]", "_", name)
