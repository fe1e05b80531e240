"""Replays: says what would be done, does it, and goes on where it was if it was broken off."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from tanist.admin.asking import Access
from tanist.errors import MQError
from tanist.model.route import MessageQueue
from tanist.spark.access import cluster_options
from tanist.spark.errors import SparkError
from tanist.spark.progress import Progress
from tanist.spark.replay.selecting import PARTITIONS, SHARD, Wanted, prepare, select, share_rate
from tanist.spark.rocketmq.cluster import look_up, wired
from tanist.spark.rocketmq.options import read_options
from tanist.spark.sink.brokers import Brokers
from tanist.spark.sink.options import SinkOptions, read_sink_options
from tanist.spark.watching import telling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


class QueueToReplay(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is replayed of one queue."""

    broker_name: str
    queue_id: int
    rows: int
    first_offset: int
    last_offset: int


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a replay would do, or has done."""

    replay_id: str
    topic: str
    target: str
    rows: int
    bytes: int
    first: datetime | None
    last: datetime | None
    queues: list[QueueToReplay]
    expired: int
    """Of these the brokers have deleted: they are in the archive alone."""
    already_there: int
    """Written by this replay before, so not again."""
    is_exactly_once: bool
    is_applied: bool = False
    seconds: float = 0.0


def plan_replay(
    archive: "DataFrame", wanted: Wanted, namesrv: str, *, access: Access | None = None
) -> ReplayReport:
    """What a replay would do. Nothing is written."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - it may not be installed.

    cluster = cluster_options(namesrv, access)
    options = read_sink_options(cluster | {"topic": wanted.target})
    there, is_exactly_once = asyncio.run(_written(options, wanted.query))
    mins = _min_offsets(wanted.topic, cluster)
    selected = select(archive, wanted)
    expired = f.lit(0)
    for queue, min_offset in mins.items():
        is_gone = (
            (f.col("brokerName") == queue.broker_name)
            & (f.col("queueId") == queue.queue_id)
            & (f.col("queueOffset") < min_offset)
        )
        expired = f.when(is_gone, 1).otherwise(expired)
    found = (
        selected.groupBy("brokerName", "queueId")
        .agg(
            f.count("*").alias("rows"),
            f.min("queueOffset").alias("first_offset"),
            f.max("queueOffset").alias("last_offset"),
            f.sum(f.length("body")).alias("bytes"),
            f.min("storeTimestamp").alias("first"),
            f.max("storeTimestamp").alias("last"),
            f.sum(expired).alias("expired"),
        )
        .orderBy("brokerName", "queueId")
        .collect()
    )
    return ReplayReport(
        replay_id=wanted.replay_id,
        topic=wanted.topic,
        target=wanted.target,
        rows=sum(row["rows"] for row in found),
        bytes=sum(row["bytes"] for row in found),
        first=min((row["first"] for row in found), default=None),
        last=max((row["last"] for row in found), default=None),
        queues=[
            QueueToReplay(
                broker_name=row["brokerName"],
                queue_id=row["queueId"],
                rows=row["rows"],
                first_offset=row["first_offset"],
                last_offset=row["last_offset"],
            )
            for row in found
        ],
        # What a topic that is gone had is gone too.
        expired=sum(row["expired"] for row in found) if mins else sum(row["rows"] for row in found),
        already_there=there,
        is_exactly_once=is_exactly_once,
    )


def replay(
    archive: "DataFrame",
    wanted: Wanted,
    namesrv: str,
    *,
    access: Access | None = None,
    rows_per_s: int | None = None,
    tell: Callable[[Progress], None] = lambda _progress: None,
) -> ReplayReport:
    """Do it. Called again with the same id within a week it writes what is missing, and nothing twice."""
    task_rate = None if rows_per_s is None else share_rate(rows_per_s)
    report = plan_replay(archive, wanted, namesrv, access=access)
    if not report.is_exactly_once:
        _log.warning(
            "the replay is written at least once: not all brokers of %s keep track of writes", wanted.target
        )
    given = cluster_options(namesrv, access)
    given |= {"topic": wanted.target, "queryId": wanted.query, "shardingKey": SHARD}
    if task_rate is not None:
        given["maxRowsPerSecond"] = str(task_rate)
    started_s = time.monotonic()
    _log.info("replay begins id=%s rows=%d there=%d", wanted.replay_id, report.rows, report.already_there)
    with _telling(read_sink_options(given), wanted.query, report, tell):
        prepared = prepare(select(archive, wanted), wanted)
        prepared.write.format("rocketmq").options(**given).mode("append").save()
    seconds = time.monotonic() - started_s
    _log.info(
        "replay is done id=%s read_rows=%d written_rows=%d seconds=%.1f",
        wanted.replay_id, report.rows, report.rows - report.already_there, seconds,
    )  # fmt: skip
    return msgspec.structs.replace(report, is_applied=True, seconds=seconds)


async def _written(options: SinkOptions, query: str) -> tuple[int, bool]:
    """How many rows of a query are there, and whether all brokers can tell."""
    async with wired(options.client_settings) as wire:
        brokers = Brokers(options, wire)
        names = sorted(await brokers.find())
        if not names:
            raise SparkError(
                f"topic {options.topic} has no queue that takes messages; is it write-protected?"
            )
        total, can_all_tell = 0, True
        for partition in range(PARTITIONS):
            last = -1
            for name in names:
                progress = await brokers.progress(name, query, partition)
                can_all_tell = can_all_tell and progress is not None
                marks = [] if progress is None else progress.marks
                last = max([last, *(mark.index for mark in marks)])
            total += last + 1
        return total, can_all_tell


def _min_offsets(topic: str, cluster: Mapping[str, str]) -> Mapping[MessageQueue, int]:
    """From where on brokers have the topic's queues; nothing if it is gone."""
    try:
        states = look_up(read_options({**cluster, "subscribe": topic}))
    except SparkError:
        return {}
    return {state.queue: state.min_offset for state in states}


def _telling(
    options: SinkOptions, query: str, report: ReplayReport, tell: Callable[[Progress], None]
) -> AbstractContextManager[None]:
    """Tell now and then how much is written, as the brokers know it."""
    seen = Progress(time.monotonic())
    body_bytes = report.bytes / max(1, report.rows)

    def look() -> Progress:
        nonlocal seen
        with suppress(MQError):
            there, _ = asyncio.run(_written(options, query))
            done = max(0, there - report.already_there)
            left_rows = max(0, report.rows - there)
            seen = Progress(seen.started_s, rows=done, bytes=int(done * body_bytes), left_rows=left_rows)
        return seen

    return telling(tell, look)
