"""Is anything lost, and what was delivered twice? The books of a topic and its groups, closed by Spark."""

import asyncio
import bisect
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tanist.admin.asking import Access
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.slave_consume import LedgerEntry, LedgerEvent
from tanist.protocol.java_json import BAD_JSON
from tanist.spark.access import cluster_options
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import look_up, wired
from tanist.spark.rocketmq.options import read_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_SHOWN = 1000
_LAST_ENTRIES = 1000
_HANDED_OVER = (LedgerEvent.SWITCH, LedgerEvent.HAND_BACK, LedgerEvent.RESUMED, LedgerEvent.ENDED_BY_OPERATOR)
"""After these another broker was read."""


class Delivered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A message that a group got more than once, or was not seen to get."""

    msg_id: str
    place: str
    times: int
    first_ms: int | None = None
    last_ms: int | None = None
    because: str | None = None
    """What the ledgers have between its deliveries; None: nothing, so a consumer went or was started anew."""


class GroupAccount(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The books of one group."""

    group: str
    messages: int
    consumed: int
    waiting: int
    """Not acknowledged yet."""
    lost: int | None
    """Acknowledged, and delivered to nobody; None: nobody told what was delivered."""
    twice: int | None
    twice_at_most: int | None
    """By the ledgers of slave consumption; None: an entry has no bound."""
    lost_messages: list[Delivered]
    twice_messages: list[Delivered]


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The books of a topic."""

    topic: str
    messages: int
    stored_twice: int
    """Messages whose id the topic has more than once: their producer sent them again."""
    entries: int
    groups: list[GroupAccount]
    seconds: float

    @property
    def is_clean(self) -> bool:
        return not any(group.lost for group in self.groups)


def account(
    messages: "DataFrame",
    deliveries: "DataFrame | None",
    *,
    topic: str,
    offsets: Mapping[str, Mapping[MessageQueue, int]],
    entries: Sequence[LedgerEntry],
) -> LedgerReport:
    """Close the books. ``offsets`` are where each group stands, by queue: all before them is acknowledged."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - it may not be installed.

    started_s = time.monotonic()
    place = f.concat_ws("/", "brokerName", "queueId", "queueOffset")
    held = (
        messages.where(f.col("topic") == topic)
        .withColumn("place", place)
        .groupBy("msgId")
        .agg(
            f.count("*").alias("stored"),
            f.min(f.struct("storeTimestamp", "place", "brokerName", "queueId", "queueOffset")).alias("first"),
        )
        .cache()
    )
    totals = held.agg(f.count("*"), f.sum(f.when(f.col("stored") > 1, 1).otherwise(0))).first()
    assert totals is not None
    groups = [
        _account_of(held, deliveries, group, offsets[group], entries, messages=totals[0])
        for group in sorted(offsets)
    ]
    held.unpersist()
    return LedgerReport(
        topic=topic,
        messages=totals[0],
        stored_twice=totals[1] or 0,
        entries=len(entries),
        groups=groups,
        seconds=time.monotonic() - started_s,
    )


def _account_of(
    held: "DataFrame",
    deliveries: "DataFrame | None",
    group: str,
    offsets: Mapping[MessageQueue, int],
    entries: Sequence[LedgerEntry],
    *,
    messages: int,
) -> GroupAccount:
    from pyspark.sql import functions as f  # noqa: PLC0415

    acknowledged = f.lit(False)
    for queue, offset in offsets.items():
        acknowledged = acknowledged | (
            (f.col("first.brokerName") == queue.broker_name)
            & (f.col("first.queueId") == queue.queue_id)
            & (f.col("first.queueOffset") < offset)
        )
    marked = held.withColumn("acknowledged", acknowledged)
    bound = at_most(entries, group)
    if deliveries is None:
        consumed = marked.where("acknowledged").count()
        return GroupAccount(
            group=group,
            messages=messages,
            consumed=consumed,
            waiting=messages - consumed,
            lost=None,
            twice=None,
            twice_at_most=bound,
            lost_messages=[],
            twice_messages=[],
        )
    times = (
        deliveries.where(f.col("group") == group)
        .groupBy("msgId")
        .agg(
            f.count("*").alias("times"), f.min("deliveredAt").alias("from"), f.max("deliveredAt").alias("to")
        )
    )
    joined = marked.join(times, "msgId", "left").select(
        "msgId",
        f.col("first.place").alias("place"),
        f.coalesce("times", f.lit(0)).alias("times"),
        "stored",
        "acknowledged",
        f.unix_millis("from").alias("from"),
        f.unix_millis("to").alias("to"),
    )
    joined = joined.cache()
    is_lost, is_twice = "acknowledged AND times = 0", "times > stored"
    consumed = joined.where("acknowledged OR times > 0").count()
    explain = Explained(entries)
    found = {
        condition: (
            joined.where(condition).count(),
            [
                Delivered(
                    msg_id=row["msgId"],
                    place=row["place"],
                    times=row["times"],
                    first_ms=row["from"],
                    last_ms=row["to"],
                    because=explain.between(row["from"], row["to"]),
                )
                for row in joined.where(condition).orderBy("place").limit(_MOST_SHOWN).collect()
            ],
        )
        for condition in (is_lost, is_twice)
    }
    joined.unpersist()
    return GroupAccount(
        group=group,
        messages=messages,
        consumed=consumed,
        waiting=messages - consumed,
        lost=found[is_lost][0],
        twice=found[is_twice][0],
        twice_at_most=bound,
        lost_messages=found[is_lost][1],
        twice_messages=found[is_twice][1],
    )


def at_most(entries: Iterable[LedgerEntry], group: str) -> int | None:
    """How many messages a group may have got twice by what the ledgers tell; None: they tell no bound.

    Master and slave both write a hand-back down; it counts once.
    """
    bounds: dict[tuple[str, int, int, LedgerEvent], int] = {}
    for entry in entries:
        if entry.event not in _HANDED_OVER:
            continue
        if entry.duplicates_at_most is None and group in entry.reason:
            return None
        key = (entry.group, entry.term, entry.round, entry.event)
        bounds[key] = max(bounds.get(key, 0), entry.duplicates.get(group, 0))
    return sum(bounds.values())


class Explained:
    """Finds the change of reader that lies between two deliveries. Pure."""

    def __init__(self, entries: Iterable[LedgerEntry]) -> None:
        changes = sorted(
            (entry for entry in entries if entry.event in _HANDED_OVER), key=lambda entry: entry.at_ms
        )
        self._times = [entry.at_ms for entry in changes]
        self._changes = changes

    def between(self, first_ms: int | None, last_ms: int | None) -> str | None:
        if first_ms is None or last_ms is None or first_ms == last_ms:
            return None
        position = bisect.bisect_right(self._times, last_ms) - 1
        if position < 0 or self._times[position] < first_ms:
            return None
        entry = self._changes[position]
        return f"{entry.event} of {entry.group} in term {entry.term}: {entry.reason}"


def read_ledger_file(path: Path) -> list[LedgerEntry]:
    """The entries of a ``slaveConsumeLedger.jsonl``. Lines that are no entries are left out."""
    entries: list[LedgerEntry] = []
    for line in path.read_bytes().splitlines():
        try:
            entries.append(msgspec.json.decode(line, type=LedgerEntry))
        except BAD_JSON:
            continue
    if not entries and path.stat().st_size:
        raise SparkError(
            f"{path} has no entry of a ledger; it is slaveConsumeLedger.jsonl of a store's config"
        )
    return entries


def ask_ledgers(addresses: Sequence[str], namesrv: str, access: Access | None = None) -> list[LedgerEntry]:
    """The last entries of these brokers."""
    from tanist.admin.slave_consume import slave_consume_ledger  # noqa: PLC0415 - few need it.

    settings = read_options(cluster_options(namesrv, access) | {"subscribe": "-"}).client_settings

    async def ask() -> list[LedgerEntry]:
        async with wired(settings) as wire:
            found = [await slave_consume_ledger(wire, address, _LAST_ENTRIES) for address in addresses]
        return [entry for ledger in found for entry in ledger.entries]

    return asyncio.run(ask())


def group_offsets(
    topic: str, groups: Iterable[str], namesrv: str, access: Access | None = None
) -> dict[str, dict[MessageQueue, int]]:
    """Where groups stand, as brokers have it."""
    found: dict[str, dict[MessageQueue, int]] = {}
    for group in groups:
        asked = {"subscribe": topic, "group": group, "startingOffsets": "group"}
        states = look_up(read_options(cluster_options(namesrv, access) | asked))
        found[group] = {state.queue: state.group_offset or 0 for state in states}
    return found
