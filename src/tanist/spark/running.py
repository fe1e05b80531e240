"""Has something done with every part of a job: by this process in turn, or by the workers of a session."""

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tanist.spark.errors import SparkError
from tanist.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Part = TypeVar("_Part")
_Found = TypeVar("_Found")

_LOOK_S = 1.0
_SETTINGS = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
_OF_SPARK = ("pyspark", "py4j")
_PY4J_SAYS = "An error occurred while calling"
# What the last line of a Python traceback looks like in what Java makes of it.
_OUR_ERROR = re.compile(r"^(?:tanist\.[\w.]+|OSError|\w+Error): (?P<text>.+)$", re.MULTILINE)


class Run(Protocol):
    """Does ``work`` with every part, and gives what came of them in the same order."""

    def __call__(self, work: Callable[[_Part], _Found], parts: Sequence[_Part]) -> list[_Found]: ...


def in_turn(work: Callable[[_Part], _Found], parts: Sequence[_Part]) -> list[_Found]:
    """Have nobody else do it."""
    return [work(part) for part in parts]


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work of a job: a session of Spark's, and how many tasks it runs at once."""

    session: "SparkSession"
    run: Run
    tasks: int


@contextlib.contextmanager
def spark_workers(master: str, *, job: str, settings: Mapping[str, str] | None = None) -> Generator[Workers]:
    """Workers that last as long as the job. What Spark says goes wrong meanwhile is one line."""
    session = spark_session(master, app_name=f"tanist {job}", settings=_SETTINGS | dict(settings or {}))
    try:
        with clear_errors():
            yield Workers(session, on_spark(session), session.sparkContext.defaultParallelism)
    finally:
        session.stop()


@contextlib.contextmanager
def clear_errors() -> Generator[None]:
    """Make one line of what Spark raises, which is a traceback of Java's. Other errors stay as they are."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _OF_SPARK:
            raise
        raise SparkError(f"Spark could not do it: {_cause(str(error))}") from error


def on_spark(spark: "SparkSession", what: str | None = None) -> Run:
    """Have the workers of a session do it. What goes wrong there is one line here.

    With ``what`` as its name, progress goes to standard error.
    """

    def run(work: Callable[[_Part], _Found], parts: Sequence[_Part]) -> list[_Found]:
        # PySpark tells no types of what goes through it.
        context: Any = spark.sparkContext
        todo = context.parallelize(parts, max(1, len(parts))).map(work)
        watched = what is not None and bool(parts)
        with _Progress(context, what or "", len(parts)) if watched else contextlib.nullcontext():
            try:
                return todo.collect()
            except Exception as error:
                raise SparkError(f"a task failed: {_cause(str(error))}") from error

    return run


def _cause(text: str) -> str:
    """What Python said, out of all that Java says around it."""
    found = _OUR_ERROR.findall(text)
    if found:
        return found[-1]
    lines = [line.removeprefix(": ") for line in text.strip().splitlines()] or ["it does not say why"]
    return lines[1] if lines[0].startswith(_PY4J_SAYS) and len(lines) > 1 else lines[0]


class _Progress:
    """Says every second how many parts are done, and how long the others will take at that rate."""

    def __init__(self, context: Any, what: str, count: int) -> None:
        self._tracker = context.statusTracker()
        self._what, self._count = what, count
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._started_s = time.monotonic()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_exc: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_LOOK_S):
            finished = sum(self._finished_of(stage) for stage in self._tracker.getActiveStageIds())
            sys.stderr.write(
                progress_line(self._what, finished, self._count, time.monotonic() - self._started_s) + "\n"
            )

    def _finished_of(self, stage: int) -> int:
        told = self._tracker.getStageInfo(stage)
        return 0 if told is None else told.numCompletedTasks


def progress_line(what: str, finished: int, count: int, elapsed_s: float) -> str:
    """What is said of a job while it runs."""
    line = f"{what} {finished} of {count} parts, {100 * finished // count} %, {elapsed_s:.0f} s"
    return line if not finished else f"{line}, {elapsed_s / finished * (count - finished):.0f} s left"
