"""The track for log bytes that need no second look: checked, appended and acked in one call of C.

Frames with whole and sound records for the end of a slave's log go from the buffer that they came into
straight into the mapped file. All else, wrong bytes included, goes the way through ``SlaveLink``, which has
the last word and says when such bytes may come. Where the C could not be built, or TANIST_ENGINE=python is in
the environment, there is no track, and all goes that way, with the same outcome.
"""

from collections.abc import Callable
from typing import NamedTuple

from tanist.compiled import is_wanted
from tanist.protocol.ha_link import AckKind
from tanist.store.commitlog import CommitLog
from tanist.store.segment import WRITE_BYTES

try:
    from tanist.ha import _track
except ImportError:
    engine = None
else:
    engine = _track if is_wanted else None


class Taken(NamedTuple):
    """What became of the plain frames at the front."""

    used_bytes: int
    log_end: int
    confirmed_to: int
    acked_bytes: int
    """Of the ack for all of them."""


def make_track(log: CommitLog, on_taken: Callable[[int], None]) -> "Track | None":
    """A track if there can be one. ``on_taken`` is told how many bytes it has appended."""
    return None if engine is None else Track(log, on_taken)


class Track:
    """One link's. ``close`` it before the log is closed or cut."""

    def __init__(self, log: CommitLog, on_taken: Callable[[int], None]) -> None:
        assert engine is not None
        self._log = log
        self._on_taken = on_taken
        # What is written as a whole, and not into the mapping, is not for C.
        self._track = engine.Track(log, WRITE_BYTES - 1)

    def take(
        self, buffer: memoryview, start: int, end: int, *, epoch: int, file_number: int, ack_kind: AckKind
    ) -> Taken | None:
        """Take what is plain from ``start`` on, and ack it on this socket, if it is one (-1: none).

        None if the first frame is not plain or there is no room for it.
        """
        track, log = self._track, self._log
        before = log.log_end
        taken = track.take(buffer, start, end, epoch, file_number, ack_kind)
        if taken is None and track.is_full and (window := log.window()) is not None:
            track.open(*window, log.cut_count)
            taken = track.take(buffer, start, end, epoch, file_number, ack_kind)
        if taken is None:
            return None
        self._on_taken(log.log_end - before)
        return Taken(*taken)

    def close(self) -> None:
        """Let go of the log's file."""
        self._track.close()
