"""What a stream in a real session does while its brokers fail: checks of test_spark.py, in its session."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tanist.spark.rocketmq.progress import behind_latest
from tanist.sync import Message, Producer
from tests.support.fixed_pair import FixedPair
from tests.support.requests import TOPIC
from tests.support.tanist_group import GroupProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNT = 40
_BODY = b"x" * (256 << 10)
"""So large that a batch of Arrow's holds a few messages: most of them are read after the failover."""
_DEADLINE_S = 240.0


def a_stream_goes_on_at_the_slave_of_a_master_with_fixed_roles(spark: "SparkSession", folder: Path) -> None:
    with FixedPair(folder / "fixed", slaveConsumeChecks=2, brokerStandInMills=0) as pair:
        _stream_over(spark, folder / "fixed", pair.names.address, pair.kill_master)


def a_stream_goes_on_at_the_slave_that_became_master(spark: "SparkSession", folder: Path) -> None:
    with GroupProcess(folder / "switch") as group:
        _stream_over(spark, folder / "switch", group.names.address, lambda: group.master().kill())


def _stream_over(spark: "SparkSession", folder: Path, namesrv: str, fail: Callable[[], None]) -> None:
    """Have the brokers fail when the first rows of a batch are through, and the rest of it are not."""
    with Producer(group="test", namesrv=namesrv) as producer:
        for number in range(_COUNT):
            producer.send(Message(TOPIC, b"%d " % number + _BODY))
    stream = spark.readStream.format("rocketmq").options(
        namesrv=namesrv, subscribe=TOPIC, startingOffsets="earliest", maxOffsetsPerTrigger=_COUNT - 4
    )
    begun, failed = folder / "begun", folder / "failed"
    frame = stream.load()
    held = frame.mapInArrow(_held(str(begun), str(failed)), frame.schema)
    written = held.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = written.trigger(availableNow=True).start(str(folder / "parquet"))
    deadline_s = time.monotonic() + _DEADLINE_S
    while not begun.exists():
        assert time.monotonic() < deadline_s, "no row came through"
        if (failure := query.exception()) is not None:
            # Spark gives the process of a stream ten seconds to start, and no setting changes that.
            assert "Python worker failed to connect back" in str(failure)
            query = written.trigger(availableNow=True).start(str(folder / "parquet"))
        time.sleep(0.05)
    fail()
    failed.touch()
    query.awaitTermination()

    rows = spark.read.parquet(str(folder / "parquet")).select("queueId", "queueOffset").collect()
    offsets: dict[int, list[int]] = {}
    for row in rows:
        offsets.setdefault(row["queueId"], []).append(row["queueOffset"])
    assert len(rows) == _COUNT
    assert all(sorted(found) == list(range(len(found))) for found in offsets.values())
    behind = [sum(behind_latest(one["sources"][0]).values()) for one in query.recentProgress]
    assert behind[-1] == 0
    assert max(behind) > 0, "the first batch leaves something for the next, and its progress says so"


def _held(begun: str, failed: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows as they come, the first of them when there is a file that says so.

    Spark ships it by value, so it names nothing of this module, which its workers do not find.
    """

    def hold(batches: Iterator[Any]) -> Iterator[Any]:
        import time  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        for batch in batches:
            Path(begun).touch()
            while not Path(failed).exists():
                time.sleep(0.05)
            yield batch

    return hold


STREAM_CHECKS: tuple[Callable[["SparkSession", Path], None], ...] = (
    a_stream_goes_on_at_the_slave_of_a_master_with_fixed_roles,
    a_stream_goes_on_at_the_slave_that_became_master,
)
