"""An audit of two logs of 2 GiB beside ``sha256sum`` of both, and one flipped bit that it has to name."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.spark_commitlog import write_store
from bench.table import Row
from tanist.spark.audit.job import audit
from tanist.spark.running import on_spark
from tanist.spark.session import spark_session

_GIB = 1 << 30
_SIZE_BYTES = 2 * _GIB
_LEAST = 0.6


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
        first, second = Path(folder) / "first", Path(folder) / "second"
        print("writing 2 GiB, twice …", file=sys.stderr)
        write_store(first, _SIZE_BYTES)
        shutil.copytree(first, second)
        settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.log.level": "ERROR"}
        spark = spark_session("local[2]", settings=settings)
        try:
            run_on = on_spark(spark)
            hashed_s = _seconds_of_sha256sum(first, second)
            # The first run has Spark start its workers, which is not what is asked.
            audit(str(first), str(second), run=run_on, with_indexes=False)
            started = time.perf_counter()
            equal = audit(str(first), str(second), run=run_on, with_indexes=False)
            audited_s = time.perf_counter() - started
            place = _flip_bit(second)
            different = audit(str(first), str(second), run=run_on, with_indexes=False)
        finally:
            spark.stop()
    ratio = hashed_s / audited_s
    is_found = equal.is_equal and different.first_difference == place
    return [
        Row(
            "audit of 2 x 2 GiB, beside sha256sum",
            f"{audited_s:.2f} s",
            f"{hashed_s:.2f} s",
            ratio,
            f"≥ {_LEAST}",
            ratio >= _LEAST,
        ),
        Row("one flipped bit", f"named at {different.first_difference}", "", None, f"at {place}", is_found),
    ]


def _seconds_of_sha256sum(*stores: Path) -> float:
    files = [str(path) for store in stores for path in sorted((store / "commitlog").iterdir())]
    started = time.perf_counter()
    subprocess.run(["sha256sum", *files], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _flip_bit(store: Path) -> int:
    place = _GIB + _GIB // 3
    with (store / "commitlog" / f"{_GIB:020d}").open("r+b") as file:
        position = place - _GIB
        byte = os.pread(file.fileno(), 1, position)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 4]), position)
    return place
