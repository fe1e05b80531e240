"""What Spark sees of ``rocketmq`` as a stream. Its progress lives in Spark's checkpoint and nowhere else."""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tanist.errors import MQError
from tanist.spark.arrow import RecordBatch
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import NoReplica, look_up, look_up_patiently
from tanist.spark.rocketmq.deleted import check_not_deleted
from tanist.spark.rocketmq.groups import commit_all
from tanist.spark.rocketmq.offsets import QueueState, check_named, split
from tanist.spark.rocketmq.options import RocketMQOptions, for_stream
from tanist.spark.rocketmq.readable import check_readable
from tanist.spark.rocketmq.source import QueuePiece, columns_of, read_range, wants_epochs
from tanist.spark.rocketmq.streaming import (
    Offsets,
    batch_ranges,
    check_offsets,
    clusters_in,
    first_offsets,
    from_table,
    next_offsets,
    to_checkpoint,
    to_table,
)


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives as long as its query, on the driver; only ``read`` runs in the workers, on a copy."""

    def __init__(self, options: RocketMQOptions, schema: StructType) -> None:
        self._options = for_stream(options)
        self._columns = columns_of(schema)
        self._until: Offsets | None = None
        """What a query that reads what is available now reads up to."""
        self._is_checked = False
        """Whether those that are to be read said that they may be."""
        self._committed: Offsets = {}
        """How far the group is, as brokers were told."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below.
        states = look_up(self._options)
        assert self._options.start is not None
        check_named(self._options.start, {state.queue for state in states})
        first = first_offsets(states, self._options.start, fails_on_loss=self._options.fails_on_loss)
        return to_checkpoint(first, clusters_in({}, states))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = {state.queue: state.max_offset for state in look_up(self._options)}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        offsets = from_table(start)
        states = self._look_up()
        if states is None:
            check_not_deleted(offsets, self._options)
            return start
        clusters = clusters_in(start, states)
        check_offsets(offsets, states, fails_on_loss=self._options.fails_on_loss)
        if self._options.commits:
            self._commit(offsets, states)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return to_checkpoint(next_offsets(offsets, states, most=most, until=self._until), clusters)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        states = self._look_up()
        return None if states is None else to_table({state.queue: state.max_offset for state in states})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        options = self._options
        if start == end:
            return []
        ranges = batch_ranges(
            from_table(start),
            from_table(end),
            look_up_patiently(options, with_epochs=wants_epochs(self._columns)),
            fails_on_loss=options.fails_on_loss,
        )
        return [QueuePiece(span) for span in split(ranges, options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        if isinstance(partition, QueuePiece):
            yield from read_range(partition.span, self._columns, self._options)

    def _commit(self, offsets: Offsets, states: list[QueueState]) -> None:
        """Have the group follow. Spark asks for the next batch when all before it is in the sink."""
        fresh = {queue: at for queue, at in offsets.items() if self._committed.get(queue) != at}
        try:
            commit_all(fresh, states, self._options)
        except MQError as error:
            sys.stderr.write(f"rocketmq stream could not commit group={self._options.group} error={error}\n")
            return
        self._committed.update(fresh)

    def _look_up(self) -> list[QueueState] | None:
        """The queues as they are now; None while nobody answers, for then there is simply nothing new."""
        try:
            states = look_up(self._options)
        except MQError as error:
            if isinstance(error, SparkError) and not isinstance(error, NoReplica):
                raise
            sys.stderr.write(f"rocketmq stream waits for its brokers error={error}\n")
            return None
        if not self._is_checked:
            check_readable(states, self._options)
            self._is_checked = True
        return states
