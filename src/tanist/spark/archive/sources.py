"""What comes next, out of a cluster's queues or a store's log: planned on the driver, read in workers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tanist.spark.archive.records import Positions, TaskResult

Work = Callable[[Any], TaskResult]


@dataclass(frozen=True, slots=True)
class Planned:
    """A batch: its parts, what to do with each, and where the archive stands when that is done."""

    parts: list[Any]
    work: Work
    positions: Positions
    left: int
    """How much is known to be waiting behind it, in what the source counts in."""


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch that is to be planned: its number, where its files are written, how many tasks run at once."""

    number: int
    staging: Path
    tasks: int


class Source(Protocol):
    """Where messages come from."""

    kind: str
    unit: str
    """What ``left`` counts: ``messages`` or ``bytes``."""

    def check(self, positions: Positions) -> None:
        """Raise SparkError if an archive that stands there can not go on with this source."""

    def next_batch(self, positions: Positions, batch: NewBatch) -> Planned | None:
        """What a batch takes from there on; None if there is nothing now."""
