"""Makes files of messages, in a Python worker: a file a topic and day, each written aside as a whole.

Batches go from the decoder to Parquet without becoming rows of Spark's on the way, which would take longer
than all the rest. What waits for its row group is bounded, so memory does not grow with what is read.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tanist.spark.archive.columns import FILE_COLUMNS, HASH, TOPIC, hashes, schema
from tanist.spark.archive.layout import SUFFIX, US_PER_DAY, day_of, partition
from tanist.spark.archive.records import HOLDS_KEY, Holds, Run, Written
from tanist.spark.arrow import Integers, RecordBatch
from tanist.spark.columns import BODY, COLUMNS

_pa: Any = import_module("pyarrow")

READ_COLUMNS = COLUMNS
"""What a source has to give for every message."""

ROW_GROUP_BYTES = 8 << 20
MOST_WAITING_BYTES = 24 << 20
"""So much waits in all files together before the fullest one gets a row group, small as it may be."""
_FEW_VALUES = [
    *("brokerName", "queueId", "epoch", "bornHost", "storeHost", "tags", "sysFlag", "flag"),
    *("reconsumeTimes", "preparedTransactionOffset", "properties.key_value.key"),
]
_NAMES = [column.name for column in FILE_COLUMNS]
_STATISTICS = [name for name in _NAMES if name not in (BODY, HASH, "properties")]


class PartitionedWriter:
    """Writes messages to files by topic and day. ``name`` is what each of them will be called."""

    def __init__(self, staging: Path, name: str) -> None:
        self._staging = staging
        self._name = name
        self._files: dict[tuple[str, int], _File] = {}
        self._waiting_bytes = 0

    def write(self, batch: RecordBatch) -> None:
        for key, part in _by_topic_and_day(batch):
            file = self._files.get(key)
            if file is None:
                file = self._files[key] = _File(self._staging, *key)
            self._waiting_bytes += file.add(part)
            if file.waiting_bytes >= ROW_GROUP_BYTES:
                self._waiting_bytes -= file.flush()
        while self._waiting_bytes > MOST_WAITING_BYTES:
            fullest = max(self._files.values(), key=lambda one: one.waiting_bytes)
            self._waiting_bytes -= fullest.flush()

    def finish(self) -> list[Written]:
        """Have all files on disk, and say what they are."""
        return [file.finish(self._name) for _, file in sorted(self._files.items())]


class _File:
    def __init__(self, staging: Path, topic: str, day: int) -> None:
        self._topic, self._day = topic, day_of(day)
        self._path = staging / f"{secrets.token_hex(8)}{SUFFIX}"
        self._writer = parquet_writer(self._path)
        self._waiting: list[RecordBatch] = []
        self.waiting_bytes = 0
        self._rows = 0
        self._runs = _Runs()

    def add(self, part: RecordBatch) -> int:
        size = part.nbytes
        self._waiting.append(part)
        self.waiting_bytes += size
        self._rows += part.num_rows
        self._runs.add(part)
        return size

    def flush(self) -> int:
        """Write what waits as one row group; gives how many bytes waited."""
        size, self.waiting_bytes = self.waiting_bytes, 0
        if self._waiting:
            table = _pa.Table.from_batches(self._waiting)
            self._waiting = []
            self._writer.write_table(table, row_group_size=table.num_rows)
            del table
            # Else the memory of what was encoded stays with this process for good.
            _pa.default_memory_pool().release_unused()
        return size

    def finish(self, name: str) -> Written:
        self.flush()
        day = self._day.isoformat()
        runs = self._runs.found()
        close_durably(
            self._writer, self._path, Holds(topic=self._topic, date=day, rows=self._rows, runs=runs)
        )
        return Written(
            staged=f"{self._path.parent.name}/{self._path.name}",
            path=f"{partition(self._topic, self._day)}/{name}",
            rows=self._rows,
            bytes=sum(run.bytes for run in runs),
            file_bytes=self._path.stat().st_size,
        )


def parquet_writer(path: Path) -> Any:
    """A writer of files as an archive has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return import_module("pyarrow.parquet").ParquetWriter(
        str(path),
        schema(),
        compression="zstd",
        compression_level=1,
        use_dictionary=_FEW_VALUES,
        write_statistics=_STATISTICS,
    )


def close_durably(writer: Any, path: Path, holds: Holds) -> None:
    """Have the file say what it holds, and have all of it on disk."""
    writer.add_key_value_metadata({HOLDS_KEY: msgspec.json.encode(holds).decode()})
    writer.close()
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _by_topic_and_day(batch: RecordBatch) -> Iterator[tuple[tuple[str, int], RecordBatch]]:
    """The messages by topic and day, in the order in which they came, with the columns of a file."""
    encoded = batch.column(TOPIC).dictionary_encode()
    topics: list[str] = encoded.dictionary.to_pylist()
    days = np.asarray(batch.column("storeTimestamp").cast(_pa.int64())) // US_PER_DAY
    first_day = int(days.min())
    keys = np.asarray(encoded.indices, np.int64) + (days - first_day) * len(topics)
    hashed = batch.append_column(HASH, hashes(batch.column(BODY))).select(_NAMES)
    kinds = np.unique(keys).tolist()
    for kind in kinds:
        rows = np.flatnonzero(keys == kind)
        # A copy of the few rows: a slice would hold all the others in memory as long as these wait.
        part = hashed if len(kinds) == 1 else hashed.take(_pa.array(rows))
        yield (topics[kind % len(topics)], first_day + kind // len(topics)), part


class _Runs:
    """The runs of offsets that follow each other, of all queues that come by."""

    def __init__(self) -> None:
        self._open: dict[tuple[str | None, int], Run] = {}
        self._closed: list[Run] = []

    def add(self, part: RecordBatch) -> None:
        """Take note of what is here; it is all of one broker, as all is that was read in one go."""
        broker = part.column("brokerName")[0].as_py()
        queue_ids = np.asarray(part.column("queueId"))
        for queue_id in np.unique(queue_ids).tolist():
            self._add_queue(part, broker, queue_id, np.flatnonzero(queue_ids == queue_id))

    def _add_queue(self, part: RecordBatch, broker: str | None, queue_id: int, rows: Integers) -> None:
        offsets = np.asarray(part.column("queueOffset"))[rows]
        sizes = np.asarray(part.column("storeSize"))[rows]
        stored_ms = np.asarray(part.column("storeTimestamp").cast(_pa.int64()))[rows] // 1000
        cuts = [0, *(np.flatnonzero(np.diff(offsets) != 1) + 1).tolist(), len(offsets)]
        for first, end in pairwise(cuts):
            run = Run(
                broker=broker,
                queue_id=queue_id,
                first=int(offsets[first]),
                end=int(offsets[end - 1]) + 1,
                bytes=int(sizes[first:end].sum()),
                first_stored_ms=int(stored_ms[first:end].min()),
                last_stored_ms=int(stored_ms[first:end].max()),
            )
            self._add_run(run)

    def _add_run(self, run: Run) -> None:
        key = (run.broker, run.queue_id)
        before = self._open.get(key)
        if before is not None and before.end == run.first:
            run = joined(before, run)
        elif before is not None:
            self._closed.append(before)
        self._open[key] = run

    def found(self) -> list[Run]:
        return sorted([*self._closed, *self._open.values()], key=_order)


def joined(before: Run, after: Run) -> Run:
    """Two runs of a queue of which the second begins where the first ends."""
    return Run(
        broker=before.broker,
        queue_id=before.queue_id,
        first=before.first,
        end=after.end,
        bytes=before.bytes + after.bytes,
        first_stored_ms=min(before.first_stored_ms, after.first_stored_ms),
        last_stored_ms=max(before.last_stored_ms, after.last_stored_ms),
    )


def in_order(runs: Iterable[Run]) -> list[Run]:
    """Runs of one topic by broker, queue and offset."""
    return sorted(runs, key=_order)


def _order(run: Run) -> tuple[str, int, int]:
    return run.broker or "", run.queue_id, run.first
