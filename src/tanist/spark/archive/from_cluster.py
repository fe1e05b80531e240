"""Archives the queues of a cluster: each from where the last batch ended to where it ends now."""

import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tanist.admin.asking import Access
from tanist.errors import MQError
from tanist.spark.access import cluster_options
from tanist.spark.archive.layout import file_name
from tanist.spark.archive.records import CLUSTER, Positions, TaskResult
from tanist.spark.archive.sources import NewBatch, Planned
from tanist.spark.archive.writing import READ_COLUMNS, PartitionedWriter
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import NoReplica, look_up, look_up_patiently
from tanist.spark.rocketmq.deleted import check_not_deleted
from tanist.spark.rocketmq.offsets import PullRange, QueueState, queue_name, split
from tanist.spark.rocketmq.options import RocketMQOptions, for_stream, read_options
from tanist.spark.rocketmq.readable import check_readable
from tanist.spark.rocketmq.source import read_range
from tanist.spark.rocketmq.streaming import (
    Offsets,
    batch_ranges,
    check_offsets,
    from_table,
    next_offsets,
    to_table,
)

BATCH_MESSAGES = 500_000
_log = logging.getLogger(__name__)

Part = tuple[PullRange, ...]


class ClusterSource:
    """Topics of a cluster. With ``until_now`` only what is there when it is asked first is taken."""

    kind = CLUSTER
    unit = "messages"

    def __init__(
        self,
        *,
        namesrv: str,
        access: Access | None = None,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        batch_messages: int = BATCH_MESSAGES,
        read_from: str | None = None,
        may_lose: bool = False,
        until_now: bool = False,
    ) -> None:
        given = cluster_options(namesrv, access) | {
            "failOnDataLoss": str(not may_lose).lower(),
            "startingOffsets": "earliest",
        }
        if pattern is not None:
            given["subscribePattern"] = pattern
        else:
            given["subscribe"] = ",".join(topics)
        if read_from is not None:
            given["readFrom"] = read_from
        self._options = for_stream(read_options(given))
        self._batch_messages = batch_messages
        self._until_now = until_now
        self._until: Offsets | None = None

    def clusters(self) -> list[str]:
        """The names of the clusters that the topics lie in."""
        return sorted({state.cluster for state in look_up(self._options)})

    def check(self, positions: Positions) -> None:
        states = look_up(self._options)
        self._check_offsets(from_table(positions), states)
        check_readable(states, self._options)
        if self._until_now:
            self._until = {state.queue: state.max_offset for state in states}

    def next_batch(self, positions: Positions, batch: NewBatch) -> Planned | None:
        begins = from_table(positions)
        states = self._states()
        if states is None:
            check_not_deleted(begins, self._options)
            return None
        self._check_offsets(begins, states)
        ends = next_offsets(begins, states, most=self._batch_messages, until=self._until)
        ranges = batch_ranges(begins, ends, states, fails_on_loss=self._options.fails_on_loss)
        if not ranges:
            return None
        parts = parts_of(ranges, batch.tasks)
        work = partial(archive_queues, self._options, batch.staging, batch.number)
        return Planned(list(parts), work, to_table(ends), _left(ends, states, self._until))

    def _check_offsets(self, begins: Offsets, states: list[QueueState]) -> None:
        """Refuse an archive of another cluster. Of the same one, other topics than before may be taken."""
        asked = {state.queue for state in states}
        if {queue.broker_name for queue in begins} & {queue.broker_name for queue in asked}:
            begins = {queue: offset for queue, offset in begins.items() if queue in asked}
        check_offsets(begins, states, fails_on_loss=self._options.fails_on_loss)

    def _states(self) -> list[QueueState] | None:
        """The queues as they are now; None while nobody answers, for then there is simply nothing new."""
        if self._until is not None:
            return look_up_patiently(self._options, with_epochs=True)
        try:
            return look_up(self._options, with_epochs=True)
        except MQError as error:
            if isinstance(error, SparkError) and not isinstance(error, NoReplica):
                raise
            _log.warning("archive waits for its brokers error=%s", error)
            return None


def parts_of(ranges: list[PullRange], tasks: int) -> list[Part]:
    """About as many parts as there are tasks to do them, each of one topic: small ranges go together."""
    total = sum(one.end - one.first for one in ranges)
    share = -(-total // max(1, tasks))
    parts: list[list[PullRange]] = []
    filled = 0
    for one in split(ranges, tasks):
        count = one.end - one.first
        if parts and parts[-1][-1].queue.topic == one.queue.topic and filled + count <= share:
            parts[-1].append(one)
            filled += count
        else:
            parts.append([one])
            filled = count
    return [tuple(part) for part in parts]


def archive_queues(options: RocketMQOptions, staging: Path, number: int, part: Part) -> TaskResult:
    """What a task does: pull some ranges, and write their messages aside."""
    ranges = [f"{queue_name(span.queue)} {span.first}-{span.end}" for span in part]
    writer = PartitionedWriter(staging, file_name(number, ranges))
    for span in part:
        for batch in read_range(span, READ_COLUMNS, options):
            writer.write(batch)
    return TaskResult(files=writer.finish())


def _left(ends: Offsets, states: Iterable[QueueState], until: Offsets | None) -> int:
    bounds = until or {state.queue: state.max_offset for state in states}
    return sum(max(0, bound - ends.get(queue, 0)) for queue, bound in bounds.items())
