"""The disk of one replica: what its process sees, and what a loss of power leaves.

    log        what was written, as the process sees it
    platter    what is there after a loss of power, but for what the disk may have written by itself

A killed process loses nothing that it wrote. A loss of power keeps any part of what was not flushed, torn or
with a sector missing. What is cut stays on the platter until the cut is synced; the note of it is there
before.
"""

from random import Random

from tanist.errors import RemoteProtocolError
from tanist.model.epochs import Epoch, EpochHistory
from tanist.protocol import crc
from tanist.protocol.ha_hello import NO_INCARNATION
from tanist.protocol.record import BLANK_BYTES, check_record, peek_record

FILE_BYTES = 1 << 20
_SECTOR_BYTES = 512
"""A disk writes so much at once, or nothing of it."""


class PlayedDisk:
    """Files that outlive their process."""

    def __init__(self) -> None:
        self.log = bytearray()
        self.flushed_to = 0
        self.epochs = EpochHistory()
        self.incarnation = NO_INCARNATION
        self.is_full = False
        self.saved_confirmed_to = 0
        """What the checkpoint says to be confirmed."""
        self.note: int | None = None
        """Where a cut was begun, as it is written down."""
        self._platter = bytearray()
        self._whole_to = 0

    @property
    def log_end(self) -> int:
        return len(self.log)

    @property
    def log_epoch(self) -> int:
        """The last epoch of the log, 0 if there is none."""
        last = self.epochs.last
        return 0 if last is None else last.epoch

    @property
    def written_epochs(self) -> tuple[Epoch, ...]:
        """Those that wrote something: a slave learns of an epoch with its first byte."""
        return tuple(epoch for epoch in self.epochs.epochs if epoch.start < self.log_end)

    @property
    def held(self) -> bytes:
        """What is there whatever happens."""
        return bytes(self._platter[: self.flushed_to])

    def append(self, data: bytes | memoryview) -> int:
        """Write at the end, where it can be read at once; the new end."""
        assert self.note is None
        assert not self.is_full
        self.log += data
        return self.log_end

    def flush(self, log_offset: int) -> None:
        """Have the log on the platter up to here, as far as it was not cut since that was begun."""
        end = min(log_offset, self.log_end)
        if end > self.flushed_to:
            self._platter[self.flushed_to : end] = self.log[self.flushed_to : end]
            self.flushed_to = end

    def begin_epoch(self, epoch: int, start: int) -> None:
        """Write down, durably, from where on the log is of an epoch."""
        self.epochs.begin(epoch, start)

    def whole_to(self, end: int) -> int:
        """Where the last whole record ends before ``end``."""
        place = self._whole_to if self._whole_to <= end else 0
        while place < end:
            try:
                size, _ = peek_record(bytes(self.log[place : place + BLANK_BYTES]), 0)
            except RemoteProtocolError:
                break
            if size <= 0 or place + size > end:
                break
            place += size
        if end == self.log_end:
            self._whole_to = place
        return place

    def crc_before(self, log_offset: int, size_bytes: int) -> int:
        return crc.crc32(bytes(self.log[log_offset - size_bytes : log_offset]))

    # Cutting

    def begin_cut(self, log_offset: int) -> None:
        """Write down where the log is cut, and cut what the process sees."""
        self.note = log_offset
        self._cut(log_offset)

    def finish_cut(self) -> None:
        """What was cut is gone from the platter, and then so is the note."""
        assert self.note is not None
        del self._platter[self.note :]
        self.note = None

    def _cut(self, log_offset: int) -> None:
        del self.log[log_offset:]
        self.epochs.cut(log_offset)
        self.flushed_to = min(self.flushed_to, log_offset)
        self._whole_to = min(self._whole_to, log_offset)
        self.saved_confirmed_to = min(self.saved_confirmed_to, log_offset)

    # The end of a process, and the beginning of the next.

    def lose_power(self, chance: Random) -> None:
        """Keep what was flushed, and of the rest whatever the disk had written by itself."""
        kept_to = chance.randint(self.flushed_to, self.log_end)
        self._platter[self.flushed_to : kept_to] = self.log[self.flushed_to : kept_to]
        if kept_to > self.flushed_to and chance.random() < 0.5:
            sector = chance.randrange(self.flushed_to, kept_to) // _SECTOR_BYTES * _SECTOR_BYTES
            begin, end = max(sector, self.flushed_to), min(sector + _SECTOR_BYTES, kept_to)
            self._platter[begin:end] = bytes(end - begin)
        self.log = bytearray(self._platter)

    def recover(self) -> None:
        """Finish a cut that was begun, find the end of the log, and make all of that durable."""
        if self.note is not None:
            self._cut(self.note)
            self.finish_cut()
        end = self._sound_to()
        del self.log[end:]
        # A master writes its epoch down before its first byte, and the crash may have taken that byte.
        self.epochs.cut(end + 1)
        self.saved_confirmed_to = min(self.saved_confirmed_to, end)
        self._whole_to = end
        self._platter = bytearray(self.log)
        self.flushed_to = end

    def _sound_to(self) -> int:
        place = 0
        with memoryview(self.log) as view:
            try:
                while place < len(view):
                    place += check_record(view, place, log_offset=place, is_flushed=place < self.flushed_to)
            except RemoteProtocolError:
                pass
        return place
