"""The options of ``commitlog``, checked."""

from collections.abc import Mapping
from dataclasses import dataclass

from tanist.spark.errors import BadOption, SparkError
from tanist.spark.options import Options
from tanist.spark.wanted import Bounds, Wanted

PERMISSIVE = "PERMISSIVE"
FAILFAST = "FAILFAST"

_RANGES = {"QueueOffset": "queue_offsets", "LogOffset": "log_offsets", "Timestamp": "store_ms"}
"""What an option with ``starting`` or ``ending`` before it is a bound of."""
_KNOWN = (
    "path",
    "subscribe",
    "queueIds",
    *(f"{which}{name}" for name in _RANGES for which in ("starting", "ending")),
    "includeProperties",
    "minPartitions",
    "mode",
)


@dataclass(frozen=True, slots=True)
class CommitLogOptions:
    """What to read."""

    path: str
    subscribe: tuple[str, ...]
    wanted: Wanted
    """What is read, by those topics and the other bounds that were given."""
    include_properties: bool
    min_partitions: int
    mode: str


def read_options(given: Mapping[str, str]) -> CommitLogOptions:
    """Raises for what is unknown, missing or makes no sense."""
    options = Options(given, _KNOWN)
    path = options.text("path")
    if not path:
        raise BadOption(
            "path", path, "the folder that holds commitlog and consumequeue: load('/path/to/store')"
        )
    return CommitLogOptions(
        path=path,
        subscribe=options.words("subscribe"),
        wanted=_wanted(options),
        include_properties=options.flag("includeProperties", default=False),
        min_partitions=options.number("minPartitions", least=1, default=0),
        mode=options.choice("mode", (PERMISSIVE, FAILFAST), default=PERMISSIVE),
    )


def _wanted(options: Options) -> Wanted:
    wanted = Wanted()
    if options.has("subscribe"):
        wanted = wanted.of_topics(frozenset(options.words("subscribe")))
    if options.has("queueIds"):
        wanted = wanted.of_queues(_queue_ids(options))
    for name, bounded in _RANGES.items():
        wanted = wanted.narrowed(bounded, *_bounds(options, f"starting{name}", f"ending{name}"))
    return wanted


def _queue_ids(options: Options) -> frozenset[int]:
    words = options.words("queueIds")
    if not all(word.isdecimal() for word in words):
        raise BadOption("queueIds", options.text("queueIds"), "numbers separated by commas")
    return frozenset(map(int, words))


def _bounds(options: Options, starting: str, ending: str) -> tuple[int, int]:
    """The least and the most of a range whose end is the first that is not read any more."""
    everything = Bounds()
    start = options.number(starting, least=0, default=everything.least)
    end = options.number(ending, least=0, default=everything.most)
    if start > end:
        raise SparkError(
            f"{starting}={start} is behind {ending}={end}: nothing lies between them; "
            f"give the lower one as {starting}"
        )
    return start, end - 1 if options.has(ending) else end
