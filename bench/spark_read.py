"""Spark reads from a broker beside our client's own pulls, and what a batch costs beside its messages."""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.spark_commitlog import PeakMemory, memory_row
from bench.table import Row, interleaved
from tanist.client import Consumer, Message, Producer, Start
from tanist.spark.rocketmq.cluster import look_up
from tanist.spark.rocketmq.offsets import QueueState
from tanist.spark.rocketmq.options import read_options
from tanist.spark.session import spark_session
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_TOPIC = "BenchTopic"
_COUNT = 300_000
_BATCH = 100
_PULLED = 1024
_ROUNDS = 3
_LEAST = 0.7


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
        root = Path(folder)
        sizes: dict[str, Any] = {
            "mappedFileSizeCommitLog": 1 << 30,
            "mappedFileSizeConsumeQueue": 300_000 * 20,
            "maxHashSlotNum": 5_000_000,
            "maxIndexNum": 20_000_000,
        }
        with (
            NameServerProcess(root / "names") as names,
            BrokerProcess(root / "broker", names.address, **sizes),
        ):
            print(f"sending {_COUNT} messages …", file=sys.stderr)
            asyncio.run(_send(names.address))
            settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.log.level": "ERROR"}
            spark = spark_session("local[2]", settings=settings)
            try:
                return _measure(spark, names.address, root)
            finally:
                spark.stop()


def _measure(spark: SparkSession, namesrv: str, root: Path) -> list[Row]:
    read = spark.read.format("rocketmq").options(namesrv=namesrv, subscribe=_TOPIC).load()

    def spark_rate() -> float:
        started = time.perf_counter()
        read.write.format("noop").mode("overwrite").save()
        return _COUNT / (time.perf_counter() - started)

    with PeakMemory() as memory:
        first = spark_rate()
        rate, own = interleaved(_ROUNDS, spark_rate, lambda: asyncio.run(_pull_all(namesrv)))
    ratio = rate / own
    stream = spark.readStream.format("rocketmq").options(
        namesrv=namesrv, subscribe=_TOPIC, startingOffsets="earliest", maxOffsetsPerTrigger=_COUNT // 40
    )
    written = stream.load().writeStream.format("noop").option("checkpointLocation", str(root / "checkpoint"))
    query = written.trigger(availableNow=True).start()
    query.awaitTermination()
    spent = [progress["durationMs"] for progress in query.recentProgress if progress["numInputRows"]]
    batch_ms = statistics.median(one["triggerExecution"] - one["addBatch"] for one in spent)
    return [
        Row(
            "read of 300,000 messages of 1 KiB, beside our client's pulls",
            f"{rate:,.0f} a second, the first time {first:,.0f}",
            f"{own:,.0f} a second",
            ratio,
            f"≥ {_LEAST}",
            ratio >= _LEAST,
        ),
        memory_row(memory),
        Row(
            f"what Spark adds to a batch of a stream, median of {len(spent)}",
            f"{batch_ms:.0f} ms",
            "",
            None,
            "",
            None,
        ),
    ]


async def _send(namesrv: str) -> None:
    body = random.Random(1).randbytes(1024)
    async with Producer(group="bench", namesrv=namesrv) as producer:
        # The first one makes the topic.
        await producer.send(Message(_TOPIC, body))
        left = _COUNT - 1
        while left:
            size = min(left, _BATCH)
            await producer.send_batch([Message(_TOPIC, body)] * size)
            left -= size


async def _pull_all(namesrv: str) -> float:
    """Messages a second that our client pulls by hand, all queues at once, and decodes."""
    states = await asyncio.to_thread(look_up, read_options({"namesrv": namesrv, "subscribe": _TOPIC}))
    consumer = Consumer(group="bench", namesrv=namesrv, topics={_TOPIC: "*"}, start=Start.LAST)

    async def pull(state: QueueState) -> int:
        offset = state.min_offset
        while offset < state.max_offset:
            found = await consumer.pull(state.queue, offset, max_count=_PULLED)
            offset = found[-1].queue_offset + 1
        return offset - state.min_offset

    async with asyncio.timeout(120), consumer:
        started = time.perf_counter()
        count = sum(await asyncio.gather(*map(pull, states)))
        took_s = time.perf_counter() - started
    assert count == _COUNT
    return count / took_s
