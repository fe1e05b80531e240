"""What Spark sees of ``rocketmq``: it plans on the driver and pulls in the Python workers.

No filters of Spark's are taken: tanist.spark.commitlog.source says why.
"""

from collections.abc import Iterator

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tanist.spark.arrow import RecordBatch
from tanist.spark.columns import COLUMNS, EPOCH, Column, chosen
from tanist.spark.rocketmq.cluster import connected, look_up
from tanist.spark.rocketmq.groups import commit
from tanist.spark.rocketmq.offsets import PullRange, make_ranges, split
from tanist.spark.rocketmq.options import RocketMQOptions, for_batch
from tanist.spark.rocketmq.pulling import Puller, pull_batches
from tanist.spark.rocketmq.readable import check_readable


class QueuePiece(InputPartition):
    """What one task pulls."""

    def __init__(self, span: PullRange) -> None:
        super().__init__(None)
        self.span = span


class RocketMQReader(DataSourceReader):
    """Reads queues from where to where they were when the read was planned."""

    def __init__(self, options: RocketMQOptions, schema: StructType) -> None:
        self._options = for_batch(options)
        self._columns = columns_of(schema)

    def partitions(self) -> list[InputPartition]:
        options = self._options
        assert options.start is not None
        assert options.end is not None
        states = look_up(options, with_epochs=wants_epochs(self._columns))
        ranges = make_ranges(states, options.start, options.end, fails_on_loss=options.fails_on_loss)
        check_readable(states, options)
        return [QueuePiece(span) for span in split(ranges, options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """The batches of a partition. Spark makes one up, which is none of ours, if there are none."""
        if isinstance(partition, QueuePiece):
            yield from read_range(partition.span, self._columns, self._options, commits=self._options.commits)


def columns_of(schema: StructType) -> tuple[Column, ...]:
    return chosen(COLUMNS, ((one.name, one.dataType.simpleString()) for one in schema.fields))


def wants_epochs(columns: tuple[Column, ...]) -> bool:
    return any(column.name == EPOCH for column in columns)


def read_range(
    span: PullRange, columns: tuple[Column, ...], options: RocketMQOptions, *, commits: bool = False
) -> Iterator[RecordBatch]:
    """Pull a range over connections that last as long; then, if asked, commit that the group has read it."""
    with connected(options) as (loop, wire):
        yield from pull_batches(loop, Puller(wire, options), span, columns, options)
        if commits:
            # Whoever reads asked for more than the last batch: it has taken them all. A frame that is read
            # again commits again, when the group may be further for long.
            loop.run_until_complete(
                commit(wire, options.group, span.queue, span.end, span.addresses, only_forward=True)
            )
