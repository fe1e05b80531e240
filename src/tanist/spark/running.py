"""Has something done with every part of a job: by this process in turn, or by the workers of a session."""

import contextlib
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tanist.spark.errors import SparkError
from tanist.spark.progress import Progress, Tell
from tanist.spark.session import spark_session
from tanist.spark.watching import Look, telling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Part = TypeVar("_Part")
_Found = TypeVar("_Found")

_SETTINGS = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
_OF_SPARK = ("pyspark", "py4j")
_PY4J_SAYS = "An error occurred while calling"
# What the last line of a Python traceback looks like in what Java makes of it.
_OUR_ERROR = re.compile(r"^(?:tanist\.[\w.]+|OSError|\w+Error): (?P<text>.+)$", re.MULTILINE)


class Run(Protocol):
    """Does ``work`` with every part, and gives what came of them in the same order."""

    def __call__(
        self,
        work: Callable[[_Part], _Found],
        parts: Sequence[_Part],
        *,
        size_of: Callable[[_Part], int] | None = None,
    ) -> list[_Found]:
        """``size_of`` says how many bytes a part is, for whoever watches."""
        ...


def in_turn(
    work: Callable[[_Part], _Found],
    parts: Sequence[_Part],
    *,
    size_of: Callable[[_Part], int] | None = None,  # noqa: ARG001 - nobody watches.
) -> list[_Found]:
    """Have nobody else do it."""
    return [work(part) for part in parts]


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work of a job: a session of Spark's, and how many tasks it runs at once."""

    session: "SparkSession"
    run: Run
    tasks: int


@contextlib.contextmanager
def spark_workers(
    master: str, *, job: str, settings: Mapping[str, str] | None = None, tell: Tell | None = None
) -> Generator[Workers]:
    """Workers that last as long as the job. What Spark says goes wrong meanwhile is one line.

    ``tell`` is told how far they are with the parts that they are given to run.
    """
    session = spark_session(master, app_name=f"tanist {job}", settings=_SETTINGS | dict(settings or {}))
    try:
        with clear_errors():
            yield Workers(session, on_spark(session, tell), session.sparkContext.defaultParallelism)
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


def on_spark(spark: "SparkSession", tell: Tell | None = None) -> Run:
    """Have the workers of a session do it. What goes wrong there is one line here."""

    def run(
        work: Callable[[_Part], _Found],
        parts: Sequence[_Part],
        *,
        size_of: Callable[[_Part], int] | None = None,
    ) -> list[_Found]:
        # PySpark tells no types of what goes through it.
        context: Any = spark.sparkContext
        todo = context.parallelize(parts, max(1, len(parts)))
        with contextlib.ExitStack() as watched:
            if tell is not None and parts:
                counted, total = _Counted(context, work, size_of), _total(size_of, parts)
                watched.enter_context(telling(tell, counted.progress(len(parts), total)))
                todo = todo.map(counted.work)
            else:
                todo = todo.map(work)
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


class _Counted:
    """Has workers count what they have done: Spark brings it to the driver when a task ends."""

    def __init__(
        self, context: Any, work: Callable[[Any], Any], size_of: Callable[[Any], int] | None
    ) -> None:
        done_parts, done_bytes = context.accumulator(0), context.accumulator(0)

        def counted(part: Any) -> Any:
            found = work(part)
            done_parts.add(1)
            done_bytes.add(0 if size_of is None else size_of(part))
            return found

        self.work = counted
        self._parts, self._bytes = done_parts, done_bytes

    def progress(self, count: int, total_bytes: int | None) -> Look:
        """How far they are with so many parts, whenever that is asked."""
        started_s = time.monotonic()

        def look() -> Progress:
            # A task that is done again counts again, and no more is left than nothing.
            done = Progress(started_s, bytes=self._bytes.value, done_parts=self._parts.value)
            done.left_parts = max(0, count - done.done_parts)
            done.left_bytes = None if total_bytes is None else max(0, total_bytes - done.bytes)
            return done

        return look


def _total(size_of: Callable[[Any], int] | None, parts: Sequence[Any]) -> int | None:
    return None if size_of is None else sum(map(size_of, parts))
