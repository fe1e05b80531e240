"""Which records a read wants, as bounds. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tanist.spark import arrow
from tanist.spark.arrow import Booleans
from tanist.spark.decoding import Located

_MAX = (1 << 63) - 1
_MIN = -_MAX - 1
CLOCK_STEP_MS = 60_000
"""Store times grow along a log, unless the broker's clock was set back: by less than this, we trust."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The numbers from ``least`` to ``most``, both of them included."""

    least: int = _MIN
    most: int = _MAX

    @property
    def is_all(self) -> bool:
        return self.least == _MIN and self.most == _MAX

    def narrowed(self, least: int, most: int) -> "Bounds":
        return Bounds(max(self.least, least), min(self.most, most))

    def hold(self, values: Any) -> Booleans:
        return (values >= self.least) & (values <= self.most)


@dataclass(frozen=True, slots=True)
class Wanted:
    """All bounds have to hold. ``None`` stands for every topic, or every queue."""

    topics: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    queue_offsets: Bounds = field(default_factory=Bounds)
    log_offsets: Bounds = field(default_factory=Bounds)
    store_ms: Bounds = field(default_factory=Bounds)

    @property
    def is_all(self) -> bool:
        return self == Wanted()

    def of_topics(self, topics: frozenset[str]) -> "Wanted":
        return replace(self, topics=topics if self.topics is None else self.topics & topics)

    def of_queues(self, queue_ids: frozenset[int]) -> "Wanted":
        found = queue_ids if self.queue_ids is None else self.queue_ids & queue_ids
        return replace(self, queue_ids=found)

    def narrowed(self, name: str, least: int, most: int) -> "Wanted":
        """The same with closer bounds on a number, by the name of its field."""
        bounds: Bounds = getattr(self, name)
        return replace(self, **{name: bounds.narrowed(least, most)})

    @property
    def store_times(self) -> Bounds:
        """The store times outside of which nothing that is wanted lies in the log or in a queue, whatever
        steps its broker's clock took.
        """
        least, most = self.store_ms.least, self.store_ms.most
        return Bounds(
            _MIN if least == _MIN else least - CLOCK_STEP_MS, _MAX if most == _MAX else most + CLOCK_STEP_MS
        )

    def chosen(self, located: Located, deleted: Mapping[str, int]) -> Located:
        """The records that are wanted. ``deleted`` says up to where in the log a topic was deleted."""
        if self.is_all and not deleted:
            return located
        keep = np.ones(len(located), np.bool_)
        if not self.log_offsets.is_all:
            keep &= self.log_offsets.hold(located.log_offsets)
        if not self.queue_offsets.is_all:
            keep &= self.queue_offsets.hold(located.queue_offsets)
        if not self.store_ms.is_all:
            keep &= self.store_ms.hold(located.store_timestamps)
        if self.queue_ids is not None:
            keep &= np.isin(located.queue_ids, list(self.queue_ids))
        if self.topics is not None or deleted:
            keep &= self._of_wanted_topics(located, deleted)
        return located if keep.all() else located.take(keep)

    def _of_wanted_topics(self, located: Located, deleted: Mapping[str, int]) -> Booleans:
        column = arrow.pieces(located.raw, located.topic_starts, located.topic_ends, arrow.STRING)
        encoded = column.dictionary_encode()
        names: list[str] = encoded.dictionary.to_pylist()
        rows = np.asarray(encoded.indices)
        is_wanted = np.array([self.topics is None or name in self.topics for name in names], np.bool_)
        deleted_to = np.array([deleted.get(name, 0) for name in names], np.int64)
        return is_wanted[rows] & (located.log_offsets >= deleted_to[rows])
