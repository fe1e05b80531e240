"""How a slave's log becomes the beginning of its master's, where a controller names the master. Pure.

Our log may have what no other replica has: we were master ourselves, or followed one that is gone. It is cut
where both logs last agree, once, before anything of the master's is appended. What is confirmed is never cut.
"""

from collections.abc import Sequence

from tanist.errors import RemoteProtocolError
from tanist.ha.actions import BeginEpoch
from tanist.ha.admission import REBUILD, deleted_before
from tanist.model.epochs import Epoch, EpochHistory, consistent_point
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import Refusal, Refused


def align(
    own: EpochHistory,
    master: Sequence[Epoch],
    *,
    log_start: int,
    log_end: int,
    master_start: int,
    master_end: int,
    confirmed_to: int,
) -> LogOffset | Refused:
    """Where our log has to end so that it is the beginning of the master's, or why it can not become that.

    A log without epochs comes from fixed roles: nothing tells what to cut, so all is kept, and the master
    judges it by its bytes.
    """
    if log_end == 0 or own.last is None:
        return LogOffset(log_end)
    point = consistent_point(own, log_end, master, master_end)
    if point is None and log_end < master_start:
        # With the bytes that would follow ours the master has forgotten whose they were.
        return deleted_before(log_end)
    if point is None:
        return Refused(Refusal.DIVERGED_LOG, f"its log and the master's have no epoch in common: {REBUILD}")
    if point < log_start:
        return Refused(
            Refusal.DIVERGED_LOG,
            f"the logs agree up to {point}, and its own begins at {log_start}: {REBUILD}",
        )
    if point < min(confirmed_to, log_end):
        return Refused(
            Refusal.DIVERGED_LOG,
            f"the logs agree up to {point}, it is confirmed up to {confirmed_to}: {REBUILD}",
        )
    return point


class FollowedEpochs:
    """The epochs of our log while it grows as the master's does."""

    def __init__(self, own: EpochHistory, master: Sequence[Epoch] = ()) -> None:
        self._own = EpochHistory(own.epochs)
        self._master = EpochHistory(master)

    def is_cut_at(self, log_offset: int, log_end: int) -> bool:
        """Whether something has to go so that our log ends here: bytes, or an epoch that wrote none."""
        last = self._own.last
        is_foreign = last is not None and last.start >= log_offset and last not in self._master.epochs
        return log_offset < log_end or is_foreign

    def cut(self, log_offset: int) -> None:
        """Our log was cut here."""
        self._own.cut(log_offset)

    def catch_up(self, log_end: int) -> list[BeginEpoch]:
        """What to write down of the bytes that we hold already, if we know nothing of their epochs."""
        if self._own.last is not None:
            return []
        return [self._begin(*epoch) for epoch in self._master.epochs if epoch.start < log_end]

    def on_data(self, epoch: int, log_offset: int, size_bytes: int) -> list[BeginEpoch]:
        """What to write down before these bytes of an epoch are appended.

        Raises RemoteProtocolError if they can not be of that epoch, or not of it alone.
        """
        known, known_end = self._master.at(log_offset), self._master.end_at(log_offset)
        is_known = epoch == known.epoch if known is not None else self._is_older(epoch)
        if not is_known or (known_end is not None and log_offset + size_bytes > known_end):
            raise RemoteProtocolError(
                f"{size_bytes} bytes at {log_offset} of epoch {epoch}; the master told {known} to {known_end}"
            )
        current = self._own.last.epoch if self._own.last is not None else 0
        if epoch < current:
            raise RemoteProtocolError(
                f"bytes at {log_offset} of epoch {epoch}, after some of epoch {current}"
            )
        if epoch == current:
            return []
        return [self._begin(epoch, known.start if known is not None else log_offset)]

    def settled(self, log_end: int) -> int | None:
        """The epoch of all that comes behind our end, if that has begun here; None if it may change there."""
        newest, own = self._master.at(log_end), self._own.last
        is_settled = newest is not None and own is not None and own.epoch == newest.epoch
        return newest.epoch if newest and is_settled and self._master.end_at(log_end) is None else None

    def _is_older(self, epoch: int) -> bool:
        """Whether an epoch can be one that the master did not tell, as it tells its newest ones."""
        return not self._master.epochs or epoch < self._master.epochs[0].epoch

    def _begin(self, epoch: int, start: int) -> BeginEpoch:
        try:
            self._own.begin(epoch, start)
        except ValueError as error:
            raise RemoteProtocolError(str(error)) from error
        return BeginEpoch(epoch, start)
