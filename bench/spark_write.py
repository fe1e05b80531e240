"""Rows of Spark to a broker: beside our client's own batch sends, and a plain loop over the rows in Spark."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.spark_commitlog import PeakMemory, memory_row
from bench.table import Row, interleaved
from tanist.spark.session import spark_session
from tanist.sync import Message, Producer
from tests.support.requests import send_request
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = 100_000
_BODY_BYTES = 1000
_BATCH = 500
_ROUNDS = 3
_CORES = 2
_TOPIC = "TopicA"
_STORE = {"mappedFileSizeCommitLog": 1 << 30}


def run(count: int = _ROWS, rounds: int = _ROUNDS) -> list[Row]:
    # The Python workers are other processes, and have to find this module.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    with (
        tempfile.TemporaryDirectory(prefix="tanist-bench-") as home,
        NameServerProcess(Path(home) / "names") as names,
        BrokerProcess(Path(home) / "broker", names.address, name="broker-a", **_STORE) as broker,
    ):
        with Wire(broker.address) as wire:
            wire.ask(send_request(b"makes the topic", topic=_TOPIC))
        spark = spark_session(f"local[{_CORES}]", settings=settings)
        try:
            columns = f"rpad(string(id), {_BODY_BYTES}, '.') AS body"
            frame = spark.range(0, count, 1, _CORES).selectExpr(columns).persist()
            frame.count()
            with PeakMemory() as memory:
                ours, client, loop = interleaved(
                    rounds,
                    lambda: _rate(count, lambda: _write(frame, names.address)),
                    lambda: _rate(count, lambda: _send(names.address, count)),
                    lambda: _rate(count, lambda: _loop(frame, names.address)),
                )
        finally:
            spark.stop()
    return [
        Row(
            "write rows/s, beside our client's batches",
            f"{ours:.0f}",
            f"{client:.0f}",
            ours / client,
            "",
            None,
        ),
        Row("write rows/s, beside foreachPartition", f"{ours:.0f}", f"{loop:.0f}", ours / loop, "", None),
        memory_row(memory),
    ]


def _rate(count: int, work: Callable[[], None]) -> float:
    started_s = time.perf_counter()
    work()
    return count / (time.perf_counter() - started_s)


def _write(frame: "DataFrame", namesrv: str) -> None:
    frame.write.format("rocketmq").options(namesrv=namesrv, topic=_TOPIC).mode("append").save()


def _send(namesrv: str, count: int) -> None:
    """As many bodies in one process, each batch acknowledged before the next."""
    with Producer(group="bench", namesrv=namesrv) as producer:
        for first in range(0, count, _BATCH):
            bodies = (
                str(number).encode().ljust(_BODY_BYTES, b".") for number in range(first, first + _BATCH)
            )
            producer.send_batch([Message(_TOPIC, body) for body in bodies])


def _loop(frame: "DataFrame", namesrv: str) -> None:
    """What one writes without a data source: the same batches, from Spark's rows."""

    def send(rows: Iterator[Any]) -> None:
        with Producer(group="bench", namesrv=namesrv) as producer:
            waiting: list[Message] = []
            for row in rows:
                waiting.append(Message(_TOPIC, row["body"].encode()))
                if len(waiting) == _BATCH:
                    producer.send_batch(waiting)
                    waiting = []
            if waiting:
                producer.send_batch(waiting)

    frame.foreachPartition(send)
