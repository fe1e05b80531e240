"""Changes of offsets that a slave holds back until it has the log up to where they were made.

An offset that is ahead of the log is a lie as soon as the slave becomes master: messages that it never got
would count as delivered, and those that it writes in their place as consumed.

    arrived -> WAITING (one, for the log to reach its end) -> applied
            -> LATER   (all that came since, merged)       -> WAITING when that is applied

Pure. Merging all into one would never let a slave apply anything while the master writes without a pause.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tanist.model.data_version import DataVersion

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[K, V]):
    """What changes in a table: all its entries, or some; None stands for one that is gone."""

    is_whole: bool
    log_end: int
    version: DataVersion
    entries: Mapping[K, V | None]

    def then(self, later: "Change[K, V]") -> "Change[K, V]":
        """Both in one."""
        if later.is_whole:
            return later
        entries: dict[K, V | None] = {**self.entries, **later.entries}
        if self.is_whole:
            # What is not in a whole table is gone: names that came and went would pile up in it.
            for key, value in later.entries.items():
                if value is None:
                    del entries[key]
        return Change(
            is_whole=self.is_whole,
            log_end=max(self.log_end, later.log_end),
            version=later.version,
            entries=entries,
        )


class HeldChanges(Generic[K, V]):
    """The changes of one table that wait for the log."""

    def __init__(self) -> None:
        self._waiting: Change[K, V] | None = None
        self._later: Change[K, V] | None = None

    def add(self, change: Change[K, V]) -> None:
        if self._waiting is None:
            self._waiting = change
        elif self._later is None:
            self._later = change
        else:
            self._later = self._later.then(change)

    def merge(self) -> None:
        """Make one of all changes: none is to be applied without the others."""
        if self._waiting is not None and self._later is not None:
            self._waiting, self._later = self._waiting.then(self._later), None

    def take(self, log_end: int) -> Change[K, V] | None:
        """The next change to apply, of which the log has all; None if there is none."""
        change = self._waiting
        if change is None or change.log_end > log_end:
            return None
        self._waiting, self._later = self._later, None
        return change

    def put_back(self, change: Change[K, V]) -> None:
        """What was taken last could not be applied: it waits for the next time."""
        self._waiting = change if self._waiting is None else change.then(self._waiting)

    def clear(self) -> None:
        """Forget all: they are told again."""
        self._waiting = self._later = None
