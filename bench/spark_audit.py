"""An audit of two logs beside ``sha256sum`` of both, and one flipped bit that it has to name.

``--sizes 2`` are the GiB of each log; ``--sizes 10`` looks for one bit in 10 GiB, and takes 20 GiB of disk.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.spark_commitlog import PeakMemory, memory_row, write_store
from bench.table import Row, interleaved
from tanist.spark.audit.job import AuditReport, audit
from tanist.spark.running import Run, on_spark
from tanist.spark.session import spark_session

DEFAULT_SIZES = "2"
_GIB = 1 << 30
_LEAST = 0.6
_ROUNDS = 3


def run(sizes: str | None = None) -> list[Row]:
    rows: list[Row] = []
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.log.level": "ERROR"}
    with PeakMemory() as memory:
        spark = spark_session("local[2]", settings=settings)
        try:
            for size in sorted(float(size) for size in (sizes or DEFAULT_SIZES).split(",")):
                with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
                    rows += _measure(Path(folder), size, on_spark(spark))
        finally:
            spark.stop()
    return [*rows, memory_row(memory)]


def _measure(folder: Path, gib: float, run_on: Run) -> list[Row]:
    first, second = folder / "first", folder / "second"
    print(f"writing {gib:g} GiB, twice …", file=sys.stderr)
    write_store(first, int(gib * _GIB))
    shutil.copytree(first, second)

    def audited() -> AuditReport:
        return audit(str(first), str(second), run=run_on, with_indexes=False)

    # The first run has Spark start its workers, which is not what is asked.
    is_equal = audited().is_equal
    audited_s, hashed_s = interleaved(
        _ROUNDS, lambda: _seconds_of(audited), lambda: _seconds_of_sha256sum(first, second)
    )
    place = _flip_bit(second, int(gib * _GIB) * 2 // 3)
    found = audited().first_difference
    ratio = hashed_s / audited_s
    return [
        Row(
            f"audit of 2 x {gib:g} GiB, beside sha256sum",
            f"{audited_s:.2f} s",
            f"{hashed_s:.2f} s",
            ratio,
            f"≥ {_LEAST}",
            ratio >= _LEAST,
        ),
        Row(
            f"one flipped bit in {gib:g} GiB",
            f"named at {found}",
            "",
            None,
            f"at {place}",
            is_equal and found == place,
        ),
    ]


def _seconds_of(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _seconds_of_sha256sum(*stores: Path) -> float:
    files = [str(path) for store in stores for path in sorted((store / "commitlog").iterdir())]
    command = ["sha256sum", *files]
    return _seconds_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _flip_bit(store: Path, place: int) -> int:
    start = place - place % _GIB
    with (store / "commitlog" / f"{start:020d}").open("r+b") as file:
        byte = os.pread(file.fileno(), 1, place - start)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 4]), place - start)
    return place
