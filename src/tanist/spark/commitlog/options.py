"""The options of ``commitlog``, checked."""

from collections.abc import Mapping
from dataclasses import dataclass

from tanist.spark.errors import BadOption
from tanist.spark.options import Options

PERMISSIVE = "PERMISSIVE"
FAILFAST = "FAILFAST"

_KNOWN = ("path", "subscribe", "includeProperties", "minPartitions", "mode")


@dataclass(frozen=True, slots=True)
class CommitLogOptions:
    """What to read."""

    path: str
    subscribe: tuple[str, ...]
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
        include_properties=options.flag("includeProperties", default=False),
        min_partitions=options.number("minPartitions", least=1, default=0),
        mode=options.choice("mode", (PERMISSIVE, FAILFAST), default=PERMISSIVE),
    )
