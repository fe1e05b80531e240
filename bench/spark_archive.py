"""The archive over a store's files, end to end: walk, decode, hash, Parquet with zstd by topic and day.

``--sizes 1,2,4`` are the GiB of log that are archived, each from a store of its own. When the first time
begins Spark is up and its Python workers are not: it is told apart from the median of those that follow.
"""

import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.spark_commitlog import PeakMemory, growth_row, memory_row, shown_rate, write_store
from bench.table import Row
from tanist.spark.archive.folder import new_about, open_for_writing
from tanist.spark.archive.from_store import StoreSource
from tanist.spark.archive.job import ArchiveReport, archive
from tanist.spark.archive.records import STORE
from tanist.spark.running import Workers, spark_workers

DEFAULT_SIZES = "2"
_GIB = 1 << 30
_CORES = 2
_ROUNDS = 3
_LEAST_RATE = 150e6


def run(sizes: str | None = None) -> list[Row]:
    gib = sorted(float(size) for size in (sizes or DEFAULT_SIZES).split(","))
    measured: list[_Measured] = []
    with (
        tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder,
        spark_workers(f"local[{_CORES}]", job="bench") as workers,
        PeakMemory() as memory,
    ):
        for size in gib:
            store = Path(folder) / "store"
            print(f"writing {size:g} GiB …", file=sys.stderr)
            write_store(store, int(size * _GIB))
            measured.append(_measure(store, workers))
            shutil.rmtree(store)
    growth = [_growth(before, after) for before, after in pairwise(measured)]
    return [*map(_row, measured), *growth, memory_row(memory)]


@dataclass(frozen=True, slots=True)
class _Measured:
    """The archive of one store: what it came to, the first time, and the median of the others."""

    report: ArchiveReport
    first_s: float
    median_s: float


def _measure(store: Path, workers: Workers) -> _Measured:
    reports: list[ArchiveReport] = []
    times: list[float] = []
    for number in range(1 + _ROUNDS):
        root = store.parent / f"archive-{number}"
        started = time.perf_counter()
        reports.append(_archive(root, store, workers))
        times.append(time.perf_counter() - started)
        shutil.rmtree(root)
    return _Measured(reports[-1], times[0], statistics.median(times[1:]))


def _archive(root: Path, store: Path, workers: Workers) -> ArchiveReport:
    with open_for_writing(root, new_about(STORE)) as folder:
        return archive(folder, StoreSource(str(store), broker="bench"), workers.run, tasks=workers.tasks)


def _row(measured: _Measured) -> Row:
    report, seconds = measured.report, measured.median_s
    rate = report.bytes / seconds
    sizes = f"{report.bytes / 1e6:.0f} MB of log to {report.file_bytes / 1e6:.0f} MB in {report.files} files"
    return Row(
        f"archive of a store, {sizes}",
        f"{shown_rate(rate)}, {report.rows / seconds / 1e3:.0f} k messages/s",
        f"first time {shown_rate(report.bytes / measured.first_s)}",
        None,
        "≥ 150 MB/s",
        rate >= _LEAST_RATE,
    )


def _growth(before: _Measured, after: _Measured) -> Row:
    larger = after.report.bytes / before.report.bytes
    return growth_row(f"archive of {larger:.1f} times the log", before.median_s, after.median_s, larger)
