"""Hours under load with little memory: `make soak`. A broker that needed more would be ended."""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path

import psutil

from bench.load import MB, write_rows
from bench.table import Row
from tanist.check import Verdict, judge_files
from tanist.check.workload import Plan, Workload
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

_CAP_BYTES = 512 << 20
_LOOK_S = 1.0
_RATE = 25.0
"""Of each of four producers: what two hours of it leave fits into the memory of whoever judges it."""
_V2 = Path("/sys/fs/cgroup")
_V1 = Path("/sys/fs/cgroup/memory")


def run(*, minutes: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, _capped() as (within, how):
        root = Path(folder)
        with (
            NameServerProcess(root / "namesrv") as names,
            BrokerProcess(root / "broker", names.address, within) as broker,
        ):
            with _watched(broker.process.pid) as sizes_mb:
                verdict = _work(names.address, root / "history", minutes * 60)
            is_alive = broker.process.is_running
    third = max(len(sizes_mb) // 3, 1)
    middle_mb, last_mb = max(sizes_mb[third : 2 * third]), max(sizes_mb[2 * third :])
    acknowledged = verdict.counts.acknowledged
    anomalies = sum(verdict.anomaly_counts.values())
    return [
        Row(
            f"{minutes:g} min in {_CAP_BYTES >> 20} MiB, by {how}",
            "serves" if is_alive else "ended",
            "",
            None,
            "serves",
            is_alive,
        ),
        Row("  acknowledged", f"{acknowledged:,}", "", None, "> 0", acknowledged > 0),
        Row("  anomalies", str(anomalies), "", None, "0", anomalies == 0),
        Row(
            "  own memory in the last third, beside the middle one",
            f"{last_mb:.0f} MB",
            f"{middle_mb:.0f} MB",
            last_mb / middle_mb,
            "<= 1.1 x",
            last_mb <= 1.1 * middle_mb,
        ),
    ]


def _work(namesrv: str, folder: Path, seconds: float) -> Verdict:
    plan = Plan(namesrv=namesrv, folder=folder, topic="soak", seconds=seconds, rate=_RATE)
    return judge_files(asyncio.run(Workload(plan).run()))


@contextlib.contextmanager
def _watched(pid: int) -> Generator[list[float]]:
    """The memory that a process has of its own, look after look."""
    process = psutil.Process(pid)
    sizes_mb: list[float] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(_LOOK_S):
            with contextlib.suppress(psutil.NoSuchProcess):
                memory = process.memory_info()
                sizes_mb.append((memory.rss - memory.shared) / MB)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield sizes_mb
    finally:
        is_over.set()
        looker.join()


@contextlib.contextmanager
def _capped() -> Generator[tuple[tuple[str, ...], str]]:
    """The command that runs a program with so much memory, and what holds it to that."""
    for root, limit in ((_V2, "memory.max"), (_V1, "memory.limit_in_bytes")):
        group = root / f"tanist-soak-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if not (group / limit).exists():
                continue
            (group / limit).write_text(str(_CAP_BYTES), encoding="ascii")
            enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
            yield ("sh", "-c", enter, "sh"), "a control group"
        finally:
            group.rmdir()
        return
    yield ("prlimit", f"--as={_CAP_BYTES}"), "prlimit, addresses counted"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.load_soak")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--record", type=Path)
    given = parser.parse_args(arguments)
    return write_rows(run(minutes=given.minutes), given.record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
