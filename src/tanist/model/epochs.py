"""Epochs: which master wrote which part of the log.

An entry says where an epoch begins; it ends where the next begins, the last one at the log's end.
Epochs and starts only grow.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
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
    def first(self) -> Epoch | None:
        return self._epochs[0] if self._epochs else None

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
        index = self._index_at(log_offset)
        return self._epochs[index] if index >= 0 else None

    def end_at(self, log_offset: int) -> LogOffset | None:
        """Where the epoch ends that wrote a byte; None if it is the last, which ends with the log."""
        following = self._index_at(log_offset) + 1
        return self._epochs[following].start if following < len(self._epochs) else None

    def cut(self, log_offset: int) -> None:
        """Forget the epochs that begin at or behind the new end of the log."""
        while self._epochs and self._epochs[-1].start >= log_offset:
            self._epochs.pop()

    def raise_start(self, log_start: int) -> None:
        """Forget the epochs whose every byte the log has deleted."""
        while len(self._epochs) > 1 and self._epochs[1].start <= log_start:
            self._epochs.pop(0)

    def _index_at(self, log_offset: int) -> int:
        """Which epoch wrote a byte: -1 for those that are older than all that is known."""
        return bisect_right(self._epochs, log_offset, key=_START) - 1


def consistent_point(
    own: EpochHistory, own_end: int, master: Sequence[Epoch], master_end: int
) -> LogOffset | None:
    """Up to where our log is the master's too; None if no epoch tells.

    One master writes the bytes of an epoch, in one order: who has an epoch with the same start has them from
    there on, up to where its own part of the epoch ends. The newest epoch that both have decides. The master
    may tell its newest epochs only.
    """
    master_ends = _ends(master, master_end)
    for epoch, own_epoch_end in reversed(_ends(own.epochs, own_end).items()):
        point = min(own_epoch_end, master_ends.get(epoch, -1))
        # An epoch that begins behind the end of a log tells nothing of it.
        if point >= epoch.start:
            return LogOffset(point)
    return None


def _ends(epochs: Sequence[Epoch], log_end: int) -> dict[Epoch, int]:
    """Where each epoch ends."""
    ends = [*(epoch.start for epoch in epochs[1:]), log_end]
    return dict(zip(epochs, ends, strict=False))


def epochs_text(epochs: Sequence[Epoch], *, most: int = 20) -> str:
    """The newest of these epochs, for people: ``{..., 3@500, 4@900}``."""
    newest = ", ".join(f"{epoch}@{start}" for epoch, start in epochs[-most:])
    return f"{{{'..., ' if len(epochs) > most else ''}{newest}}}"


_START = attrgetter("start")
