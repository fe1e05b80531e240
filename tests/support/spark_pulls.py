"""What Spark would read from brokers, without Spark: planned and pulled as its driver and workers do it."""

from collections.abc import Iterator
from typing import Any

from tanist.spark.arrow import RecordBatch
from tanist.spark.columns import COLUMNS
from tanist.spark.rocketmq.cluster import look_up
from tanist.spark.rocketmq.offsets import make_ranges, split
from tanist.spark.rocketmq.options import for_batch, read_options
from tanist.spark.rocketmq.readable import check_readable
from tanist.spark.rocketmq.source import read_range


def pull_rows(namesrv: str, **given: str) -> list[dict[str, Any]]:
    """All rows of a read with these options, in the order of queues and their offsets."""
    return [row for batch in pull_batches(namesrv, **given) for row in batch.to_pylist()]


def pull_batches(namesrv: str, **given: str) -> Iterator[RecordBatch]:
    """The same, in the batches that Spark would be handed."""
    options = for_batch(read_options({"namesrv": namesrv} | given))
    assert options.start is not None
    assert options.end is not None
    states = look_up(options, with_epochs=True)
    ranges = make_ranges(states, options.start, options.end, fails_on_loss=options.fails_on_loss)
    check_readable(states, options)
    for span in split(ranges, options.min_partitions):
        yield from read_range(span, COLUMNS, options, commits=options.commits)
