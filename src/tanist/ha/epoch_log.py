"""The log of a master that a controller has named, as the ends of its links see it. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from tanist.model.epochs import Epoch, EpochHistory
from tanist.protocol.ha_hello import MAX_EPOCHS


@dataclass(frozen=True, slots=True)
class EpochLog:
    """A master's log by epochs, in one of its own. With fixed roles there are none."""

    epoch: int
    epochs: Callable[[], EpochHistory]
    """What its log is made of."""
    confirmed_to: Callable[[], int]
    """Up to where all replicas in step hold it."""

    @property
    def newest_epochs(self) -> tuple[Epoch, ...]:
        """As many as a slave can be told."""
        return self.epochs().epochs[-MAX_EPOCHS:]

    def epoch_at(self, log_offset: int) -> int:
        """Who wrote a byte: 0 for those that are older than all epochs that are known."""
        found = self.epochs().at(log_offset)
        return found.epoch if found is not None else 0

    def bytes_left(self, log_offset: int, max_bytes: int) -> int:
        """How many bytes from here on are of one epoch, if not more than ``max_bytes``."""
        end = self.epochs().end_at(log_offset)
        return max_bytes if end is None else min(max_bytes, end - log_offset)
