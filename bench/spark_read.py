"""Spark reads from a broker beside our own client, and what a batch of a stream costs beside its messages."""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.table import Row
from tanist.client import Consumer, Message, Producer, Start
from tanist.spark.session import spark_session
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_TOPIC = "BenchTopic"
_COUNT = 300_000
_BATCH = 100
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
    own = max(asyncio.run(_drain(namesrv, number)) for number in range(_ROUNDS))
    read = spark.read.format("rocketmq").options(namesrv=namesrv, subscribe=_TOPIC).load()
    rates: list[float] = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        read.write.format("noop").mode("overwrite").save()
        rates.append(_COUNT / (time.perf_counter() - started))
    ratio = max(rates) / own
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
            "read of 300,000 messages of 1 KiB, beside our consumer",
            f"{max(rates):,.0f} a second",
            f"{own:,.0f} a second",
            ratio,
            f"≥ {_LEAST}",
            ratio >= _LEAST,
        ),
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


async def _drain(namesrv: str, number: int) -> float:
    """Messages a second, from the first one on."""
    consumer = Consumer(group=f"bench-{number}", namesrv=namesrv, topics={_TOPIC: "*"}, start=Start.FIRST)
    count, started = 0, 0.0
    async with asyncio.timeout(120), consumer:
        async for _message in consumer:
            if not count:
                started = time.perf_counter()
            count += 1
            if count == _COUNT:
                break
    return count / (time.perf_counter() - started)
