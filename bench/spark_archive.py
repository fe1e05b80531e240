"""The archive over a store's files, end to end: walk, decode, hash, Parquet with zstd by topic and day.

``--sizes 2`` are the GiB of log that are archived. When the time begins Spark is up, its Python workers are
not.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.spark_commitlog import PeakMemory, shown_rate, write_store
from bench.table import Row
from tanist.spark.archive.folder import new_about, open_for_writing
from tanist.spark.archive.from_store import StoreSource
from tanist.spark.archive.job import ArchiveReport, archive
from tanist.spark.archive.records import STORE
from tanist.spark.running import Workers, spark_workers

DEFAULT_SIZES = "2"
_GIB = 1 << 30
_CORES = 2
_LEAST_RATE = 150e6


def run(sizes: str | None = None) -> list[Row]:
    gib = max(float(size) for size in (sizes or DEFAULT_SIZES).split(","))
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
        store = Path(folder) / "store"
        print(f"writing {gib:g} GiB …", file=sys.stderr)
        write_store(store, int(gib * _GIB))
        with spark_workers(f"local[{_CORES}]", job="bench") as workers, PeakMemory() as memory:
            reports: list[ArchiveReport] = []
            times: list[float] = []
            for number in range(2):
                started = time.perf_counter()
                reports.append(_archive(Path(folder) / f"archive-{number}", store, workers))
                times.append(time.perf_counter() - started)
                shutil.rmtree(Path(folder) / f"archive-{number}")
        return _rows(reports[-1], times, memory.peak_bytes)


def _archive(root: Path, store: Path, workers: Workers) -> ArchiveReport:
    with open_for_writing(root, new_about(STORE)) as folder:
        return archive(folder, StoreSource(str(store), broker="bench"), workers.run, tasks=workers.tasks)


def _rows(report: ArchiveReport, times: list[float], peak_bytes: int) -> list[Row]:
    first, best = report.bytes / times[0], report.bytes / min(times)
    peak_mb = peak_bytes / 1e6
    sizes = f"{report.bytes / 1e6:.0f} MB of log to {report.file_bytes / 1e6:.0f} MB in {report.files} files"
    return [
        Row(
            f"archive of a store, {sizes}",
            f"{shown_rate(best)}, {report.rows / min(times) / 1e3:.0f} k messages/s",
            f"first time {shown_rate(first)}",
            None,
            "≥ 150 MB/s",
            best >= _LEAST_RATE,
        ),
        Row("memory of a Python worker", f"{peak_mb:.0f} MB", "", None, "≤ 300 MB", peak_mb <= 300),
    ]
