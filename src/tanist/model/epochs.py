"""Epochs: which master wrote which part of the log.

An entry says where an epoch begins; it ends where the next begins, the last one at the log's end.
Epochs and starts only grow.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tanist.model.offsets import LogOffset


class Epoch(NamedTuple):
    """One reign of a master: its number and the first byte it wrote."""

    epoch: int
    start: LogOffset


class EpochHistory:
    """All epochs that the log holds bytes of, oldest first."""

    __slots__ = ("_epochs",)

    def __init__(self, epochs: Iterable[Epoch] = ()) -> None:
        self._epochs: list[Epoch] = []
        for epoch, start in epochs:
            self.begin(epoch, start)

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        return tuple(self._epochs)

    @property
    def last(self) -> Epoch | None:
        return self._epochs[-1] if self._epochs else None

    def begin(self, epoch: int, start: int) -> None:
        """A new epoch begins at ``start``.

        Epochs that wrote nothing vanish: if the last one begins at the same byte it is replaced.
        (RocketMQ refuses the new one there, and the new master goes on under the old number.)
        """
        if epoch < 0 or start < 0:
            raise ValueError(f"epoch {epoch} at {start}: neither can be negative")
        last = self.last
        if last is not None and (epoch <= last.epoch or start < last.start):
            raise ValueError(
                f"epoch {epoch} at {start} does not come after epoch {last.epoch} at {last.start}"
            )
        if last is not None and start == last.start:
            self._epochs.pop()
        self._epochs.append(Epoch(epoch, LogOffset(start)))

    def at(self, log_offset: int) -> Epoch | None:
        """The epoch that wrote a byte, or None if it is older than all that is known."""
        return next((epoch for epoch in reversed(self._epochs) if epoch.start <= log_offset), None)

    def cut(self, log_offset: int) -> None:
        """Forget the epochs that begin at or behind the new end of the log."""
        while self._epochs and self._epochs[-1].start >= log_offset:
            self._epochs.pop()

    def raise_start(self, log_start: int) -> None:
        """Forget the epochs whose every byte the log has deleted."""
        while len(self._epochs) > 1 and self._epochs[1].start <= log_start:
            self._epochs.pop(0)
