"""Looks now and then how far a job is, and tells: by what Spark counts while it reads and writes."""

import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tanist.spark.progress import Progress, Tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_LOOK_S = 1.0

Look = Callable[[], Progress]
"""Says how far a job is now."""


@contextmanager
def telling(tell: Tell, look: Look) -> Generator[None]:
    """Tell every second for as long as the block lasts, if something was done since; and once it is done."""
    is_over = threading.Event()

    def watch() -> None:
        told = (0, 0, 0)
        while not is_over.wait(_LOOK_S):
            seen = look()
            if (now := (seen.rows, seen.bytes, seen.done_parts)) != told:
                tell(seen)
                told = now

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
    tell(look())


@contextmanager
def watched(spark: "SparkSession", job: str, tell: Tell) -> Generator[None]:
    """Tell how far Spark is with what the block asks of it, and log what it read and wrote for it."""
    before, started_s = _count(spark), time.monotonic()

    def look() -> Progress:
        now = _count(spark)
        return Progress(
            started_s,
            rows=now.read_rows - before.read_rows,
            bytes=now.read_bytes - before.read_bytes,
            done_parts=now.done_tasks - before.done_tasks,
            left_parts=now.left_tasks,
        )

    with telling(tell, look):
        yield
    now = _count(spark)
    _log.info(
        "%s is done read_rows=%d read_bytes=%d written_rows=%d written_bytes=%d seconds=%.1f",
        job,
        now.read_rows - before.read_rows,
        now.read_bytes - before.read_bytes,
        now.written_rows - before.written_rows,
        now.written_bytes - before.written_bytes,
        time.monotonic() - started_s,
    )


@dataclass(slots=True)
class _Counts:
    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    done_tasks: int = 0
    left_tasks: int = 0
    """Of the stages that run. How many stages will follow only Spark knows."""


def _count(spark: "SparkSession") -> _Counts:
    """What all stages of the session have done. Bytes are those of files: of brokers Spark knows rows alone.

    PySpark's own tracker tells of tasks and nothing else, so this asks Java for what the web page shows.
    """
    context: Any = spark.sparkContext
    none = context._gateway.new_array(context._gateway.jvm.double, 0)  # noqa: SLF001
    stages = context._jsc.sc().statusStore().stageList(None, False, False, none, None)  # noqa: SLF001
    counts = _Counts()
    for number in range(stages.size()):
        stage = stages.apply(number)
        counts.read_rows += stage.inputRecords()
        counts.read_bytes += stage.inputBytes()
        counts.written_rows += stage.outputRecords()
        counts.written_bytes += stage.outputBytes()
        counts.done_tasks += stage.numCompleteTasks()
        if stage.status().toString() == "ACTIVE":
            counts.left_tasks += stage.numTasks() - stage.numCompleteTasks()
    return counts
