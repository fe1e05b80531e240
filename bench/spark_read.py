"""Spark reads from a broker beside our client's own pulls and its own Kafka source on the same rows.

And what a batch of a stream costs beside its messages. Kafka and its source come from Maven; where they can
not be had that row says so.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bench.kafka import kafka_server, source_jars
from bench.spark_commitlog import PeakMemory, memory_row
from bench.table import Row, interleaved
from tanist.client import Consumer, Message, Producer, Start
from tanist.spark.rocketmq.cluster import look_up
from tanist.spark.rocketmq.offsets import QueueState
from tanist.spark.rocketmq.options import read_options
from tanist.spark.session import spark_session
from tests.support.partners import PartnerMissing
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_TOPIC = "BenchTopic"
_COUNT = 300_000
_BATCH = 100
_PER_TRIGGER = 7_500
_PULLED = 1024
_ROUNDS = 5
_LEAST = 0.7
_CORES = 2
_BESIDE_KAFKA = "the same rows, beside Spark's Kafka source on a broker of Kafka's"
_AS_FAST = "≥ 1.0"


class NumberReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(_CORES)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)


class NumberSource(DataSource):
    """A source that has next to nothing to do."""

    @classmethod
    def name(cls) -> str:
        return "number"

    def schema(self) -> str:
        return "number int"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return NumberReader()


def run(count: int = _COUNT, rounds: int = _ROUNDS) -> list[Row]:
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
            print(f"sending {count} messages …", file=sys.stderr)
            asyncio.run(_send(names.address, count))
            # The Python workers are other processes, and have to find this module.
            os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
            settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.log.level": "ERROR"}
            lack = ""
            try:
                settings["spark.jars"] = source_jars()
            except PartnerMissing as missing:
                lack = str(missing)
            spark = spark_session(f"local[{_CORES}]", settings=settings)
            try:
                bench = _Bench(spark, names.address, root, count, rounds)
                return [*bench.measure(), _lacking(lack) if lack else bench.beside_kafka()]
            finally:
                spark.stop()


def _lacking(lack: str) -> Row:
    return Row(_BESIDE_KAFKA, "", lack.splitlines()[0][:100], None, _AS_FAST, None)


@dataclass(frozen=True, slots=True)
class _Bench:
    spark: SparkSession
    namesrv: str
    root: Path
    count: int
    rounds: int

    def measure(self) -> list[Row]:
        read = self._read()
        with PeakMemory() as memory:
            start_s = self._start_workers()
            first = self._drained(read)
            rate, own = interleaved(
                self.rounds,
                lambda: self._drained(read),
                lambda: asyncio.run(_pull_all(self.namesrv, self.count)),
            )
        ratio = rate / own
        return [
            Row(
                f"read of {self.count:,} messages of 1 KiB, beside our client's pulls",
                f"{rate:,.0f} a second, the first time {first:,.0f} "
                f"(after {start_s:.1f} s in which Spark began with Python)",
                f"{own:,.0f} a second",
                ratio,
                f"≥ {_LEAST}",
                ratio >= _LEAST,
            ),
            memory_row(memory),
            self._batch_cost(),
        ]

    def _start_workers(self) -> float:
        """Seconds that the first read of any source in Python takes in this session."""
        self.spark.dataSource.register(NumberSource)
        started = time.perf_counter()
        self.spark.read.format("number").load().write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started

    def _batch_cost(self) -> Row:
        stream = self.spark.readStream.format("rocketmq").options(
            namesrv=self.namesrv,
            subscribe=_TOPIC,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=_PER_TRIGGER,
        )
        checkpoint = str(self.root / "checkpoint")
        written = stream.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = written.trigger(availableNow=True).start()
        query.awaitTermination()
        spent = [progress["durationMs"] for progress in query.recentProgress if progress["numInputRows"]]
        batch_ms = statistics.median(one["triggerExecution"] - one["addBatch"] for one in spent)
        what = f"what Spark adds to a batch of a stream, median of {len(spent)}"
        return Row(what, f"{batch_ms:.0f} ms", "", None, "", None)

    def beside_kafka(self) -> Row:
        """The same rows in as many partitions, read by Spark's own source."""
        read = self._read()
        with kafka_server(self.root / "kafka", partitions=read.rdd.getNumPartitions()) as address:
            given = {"kafka.bootstrap.servers": address}
            rows = read.selectExpr("msgId AS key", "body AS value", "queueId AS partition")
            rows.write.format("kafka").options(**given, topic=_TOPIC).save()
            theirs = self.spark.read.format("kafka").options(**given, subscribe=_TOPIC).load()
            assert theirs.count() == self.count
            rate, kafka_rate = interleaved(
                self.rounds, lambda: self._drained(read), lambda: self._drained(theirs)
            )
        ratio = rate / kafka_rate
        return Row(
            _BESIDE_KAFKA,
            f"{rate:,.0f} a second",
            f"{kafka_rate:,.0f} a second",
            ratio,
            _AS_FAST,
            ratio >= 1.0,
        )

    def _read(self) -> DataFrame:
        return self.spark.read.format("rocketmq").options(namesrv=self.namesrv, subscribe=_TOPIC).load()

    def _drained(self, frame: DataFrame) -> float:
        """Rows a second."""
        started = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return self.count / (time.perf_counter() - started)


async def _send(namesrv: str, count: int) -> None:
    body = random.Random(1).randbytes(1024)
    async with Producer(group="bench", namesrv=namesrv) as producer:
        # The first one makes the topic.
        await producer.send(Message(_TOPIC, body))
        left = count - 1
        while left:
            size = min(left, _BATCH)
            await producer.send_batch([Message(_TOPIC, body)] * size)
            left -= size


async def _pull_all(namesrv: str, wanted: int) -> float:
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
    assert count == wanted
    return count / took_s
