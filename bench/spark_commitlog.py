"""Spark over a store's files: beside the same source yielding tuples, and as the log grows.

``--sizes 1,2,4`` are the GiB of log that are read. One store holds the largest; others are its first part.
"""

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bench.table import Row
from pyspark_commitlog import DefaultSource
from tanist.model.host import host_and_port, unpack_host
from tanist.model.message import Message
from tanist.protocol.properties import decode_properties, encode_properties
from tanist.protocol.record import decode_record
from tanist.spark.columns import FILE_COLUMNS, PROPERTIES
from tanist.spark.commitlog.files import StoreFiles
from tanist.spark.commitlog.source import CommitLogReader, StorePiece
from tanist.spark.commitlog.walking import WINDOW_BYTES, FileRange, walk_range
from tanist.spark.decoding import Located, have_sound_bodies, locate, walk
from tanist.spark.making import Origin, make_batch
from tanist.spark.session import spark_session
from tanist.store import MessageStore, StoreSettings

DEFAULT_SIZES = "1,2,4"
_GIB = 1 << 30
_BODY_BYTES = 1024
_ROUNDS = 3
_CORES = 2
_THREE = "queueId int, queueOffset bigint, storeTimestamp timestamp"
_SAMPLE_S = 0.05
_DECODED_BYTES = 64 << 20
_DECODED_ROUNDS = 7


class TupleReader(CommitLogReader):
    """The same read, one Python tuple a message."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, StorePiece):
            return
        files = StoreFiles(partition.plan.root, partition.plan.segment_bytes)
        for span in partition.piece:
            assert isinstance(span, FileRange)
            for found in walk_range(files.reader_of(span.path), span, checks_bodies=True):
                assert isinstance(found, Located)
                for start in found.starts.tolist():
                    yield _as_tuple(found.raw.data, start)


class TupleSource(DefaultSource):
    @classmethod
    def name(cls) -> str:
        return "commitlog-tuples"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TupleReader(self._options, schema)


def run(sizes: str | None = None) -> list[Row]:
    gib = sorted(float(size) for size in (sizes or DEFAULT_SIZES).split(","))
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
        store = Path(folder) / "store"
        print(f"writing {gib[-1]:g} GiB …", file=sys.stderr)
        write_store(store, int(gib[-1] * _GIB))
        # The Python workers are other processes, and have to find this module.
        os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
        settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.log.level": "ERROR"}
        spark = spark_session(f"local[{_CORES}]", settings=settings)
        spark.dataSource.register(TupleSource)
        try:
            return [_decode(store), *_reads(spark, str(store), gib)]
        finally:
            spark.stop()


def _reads(spark: SparkSession, store: str, gib: list[float]) -> list[Row]:
    def first(size: float, name: str = "commitlog") -> DataFrame:
        return spark.read.format(name).option("endingLogOffset", int(size * _GIB)).load(store)

    smallest = gib[0]
    numeric = spark.read.format("commitlog").schema(_THREE).load(store)
    with PeakMemory() as memory:
        three = _best(lambda: _drain(numeric))
        timed = [_best(lambda size=size: _drain(first(size))) for size in gib]
    tuples = _best(lambda: _drain(first(smallest, "commitlog-tuples")), rounds=1)
    arrow_rate, three_rate = smallest * _GIB / timed[0].seconds, gib[-1] * _GIB / three.seconds
    tuple_rate = smallest * _GIB / tuples.seconds
    rows = [
        Row(
            f"all columns, {smallest:g} GiB to noop",
            f"{shown_rate(arrow_rate)}, {timed[0].cpu_s / smallest:.1f} cpu-s a GiB",
            f"tuples {shown_rate(tuple_rate)}, {tuples.cpu_s / smallest:.1f} cpu-s a GiB",
            arrow_rate / tuple_rate,
            "≥ 450 MB/s, ≥ 2.5",
            arrow_rate >= 450e6 and arrow_rate >= 2.5 * tuple_rate,
        ),
        Row(
            f"three numeric columns, {gib[-1]:g} GiB to noop",
            f"{shown_rate(three_rate)}, {three.cpu_s / gib[-1]:.1f} cpu-s a GiB",
            "",
            None,
            "≥ 800 MB/s",
            three_rate >= 800e6,
        ),
    ]
    seconds = [one.seconds for one in timed]
    for (small, large), (before, after) in zip(pairwise(gib), pairwise(seconds), strict=True):
        what = f"time for {large:g} GiB beside {small:g} GiB, by their sizes"
        rows.append(growth_row(what, before, after, large / small))
    return [*rows, memory_row(memory)]


def _decode(store: Path) -> Row:
    """Decoding alone, on one core and in its own time: window by window as a task does it, without the
    checksums of bodies and with them.
    """
    raw = StoreFiles(str(store), _GIB).read_log(0, _DECODED_BYTES)
    starts = walk(raw, 0, len(raw)).starts
    cuts = [
        int(starts[np.searchsorted(starts, at)]) for at in range(0, len(raw) - WINDOW_BYTES, WINDOW_BYTES)
    ]
    windows = [(start, raw[start:end]) for start, end in pairwise(cuts)]
    columns = [column for column in FILE_COLUMNS if column.name != PROPERTIES]

    def decode(*, checks_bodies: bool) -> float:
        started = time.process_time()
        for log_offset, window in windows:
            walked = walk(window, 0, len(window))
            located, _ = locate(window, walked.starts, walked.starts + log_offset)
            if checks_bodies:
                have_sound_bodies(located)
            make_batch(located, columns, Origin())
        return time.process_time() - started

    size = cuts[-1] - cuts[0]
    bare, checked = (
        size / statistics.median(decode(checks_bodies=is_checked) for _ in range(_DECODED_ROUNDS))
        for is_checked in (False, True)
    )
    return Row(
        "decoding alone, all columns",
        shown_rate(bare),
        f"with checksums {shown_rate(checked)}",
        None,
        "≥ 1000 MB/s a core",
        bare >= 1e9,
    )


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


class _Timed(NamedTuple):
    """How long something took, and of how many cores' time: of the two the second bears a busy machine."""

    seconds: float
    cpu_s: float


def _best(action: Callable[[], None], *, rounds: int = _ROUNDS) -> _Timed:
    found: list[_Timed] = []
    for _ in range(rounds):
        started, before = time.perf_counter(), _cpu_s()
        action()
        found.append(_Timed(time.perf_counter() - started, _cpu_s() - before))
    return min(found)


def _cpu_s() -> float:
    """What Spark's Java and its Python workers have used."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            used = process.cpu_times()
            total += used.user + used.system + used.children_user + used.children_system
    return total


class PeakMemory:
    """The most memory that a Python worker of Spark had, its share of the daemon's pages included."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_SAMPLE_S):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "pyspark" in " ".join(process.cmdline()) and "java" not in process.name():
                        self.peak_bytes = max(self.peak_bytes, process.memory_info().rss)
                except psutil.Error:
                    continue


def growth_row(what: str, before_s: float, after_s: float, larger: float) -> Row:
    """Whether so many times the data takes so many times as long."""
    growth = after_s / before_s / larger
    return Row(what, f"{after_s:.2f} s", f"{before_s:.2f} s", growth, "1.0 ± 0.2", abs(growth - 1) <= 0.2)


def memory_row(memory: PeakMemory) -> Row:
    peak_mb = memory.peak_bytes / 1e6
    return Row("memory of a Python worker", f"{peak_mb:.0f} MB", "", None, "≤ 300 MB", peak_mb <= 300)


def write_store(root: Path, size_bytes: int) -> None:
    """A store with so many bytes of log, of messages with bodies of 1 KiB in four topics."""
    body = os.urandom(1 << 20)
    with MessageStore.open(root, StoreSettings()) as store:
        number = 0
        while store.log.log_end < size_bytes:
            start = number * 37 % (len(body) - _BODY_BYTES)
            store.append(
                Message(
                    topic=f"BenchTopic{number % 4}",
                    queue_id=number // 4 % 4,
                    body=body[start : start + _BODY_BYTES],
                    properties=encode_properties(
                        {
                            "KEYS": f"order-{number}",
                            "UNIQ_KEY": f"{number:032X}",
                            "TAGS": "paid",
                            "WAIT": "true",
                        }
                    ),
                    born_timestamp_ms=1_700_000_000_000 + number,
                )
            )
            number += 1
            if number % 2000 == 0:
                store.dispatch()
        store.flush()
        store.dispatch()


def _as_tuple(view: memoryview, start: int) -> tuple[Any, ...]:
    record = decode_record(view, start)
    properties = decode_properties(record.properties)
    times = (record.born_timestamp_ms, record.store_timestamp_ms)
    hosts = (host_and_port(*unpack_host(record.born_host)), host_and_port(*unpack_host(record.store_host)))
    return (
        record.topic,
        None,
        record.queue_id,
        record.queue_offset,
        record.log_offset,
        record.size_bytes,
        None,
        *(datetime.fromtimestamp(at / 1000, UTC) for at in times),
        *hosts,
        properties.get("UNIQ_KEY"),
        properties.get("TAGS"),
        properties.get("KEYS"),
        record.sys_flag,
        record.flag,
        record.body_crc,
        record.reconsume_times,
        record.prepared_transaction_offset,
        bytes(record.body),
        None,
    )


def shown_rate(rate: float) -> str:
    return f"{rate / 1e6:.0f} MB/s"
