"""What Spark would read from brokers, without Spark: planned and pulled as its driver and workers do it."""

from typing import Any

from tanist.spark.columns import COLUMNS
from tanist.spark.rocketmq.cluster import look_up
from tanist.spark.rocketmq.offsets import make_ranges, split
from tanist.spark.rocketmq.options import for_batch, read_options
from tanist.spark.rocketmq.source import read_range


def pull_rows(namesrv: str, **given: str) -> list[dict[str, Any]]:
    """All rows of a read with these options, in the order of queues and their offsets."""
    options = for_batch(read_options({"namesrv": namesrv} | given))
    assert options.start is not None
    assert options.end is not None
    ranges = make_ranges(look_up(options), options.start, options.end, fails_on_loss=options.fails_on_loss)
    rows: list[dict[str, Any]] = []
    for span in split(ranges, options.min_partitions):
        for batch in read_range(span, COLUMNS, options):
            rows += batch.to_pylist()
    return rows
