"""Cutting the log, so that what is cut never comes back.

    write down where  ->  cut queues and key index  ->  cut the log  ->  strike it out

The note is on disk before the first byte is touched, and every step can be done again. A crash at
any point leaves the note, and the next start finishes the work before it reads anything else.
RocketMQ writes no note and only forgets the bytes: after a restart they are messages again.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from tanist.errors import CorruptRecord
from tanist.store.disk import Disk

_log = logging.getLogger(__name__)

NOTE_NAME = "truncation"
"""The note's file in the store's root. RocketMQ ignores it."""
_MAX_DIGITS = 19
"""Of a log offset, which has 63 bits."""


def read_note(disk: Disk, root: Path) -> int | None:
    """Where a truncation that was begun cuts the log; None if none was."""
    path = root / NOTE_NAME
    if not disk.exists(path):
        return None
    text = disk.read(path)
    log_offset = decode_note(text)
    if log_offset is None:
        raise CorruptRecord(
            path, 0, f"it holds {text[:32]!r} and no log offset; see where the log must end, and delete it"
        )
    return log_offset


def decode_note(text: bytes) -> int | None:
    """The log offset in a note; None if it holds none."""
    digits = text.strip()
    return int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else None


class Truncation:
    """Does cuts under the protection of the note."""

    def __init__(self, disk: Disk, root: Path, cut_all: Callable[[int], int]) -> None:
        self._disk = disk
        self._path = root / NOTE_NAME
        self._cut_all = cut_all
        self.is_begun = False
        """Whether a cut was begun and is not finished: if it fails, the next start goes on with it."""

    def cut(self, log_offset: int) -> int:
        """Cut everything at ``log_offset``; how many bytes of the log were not zero."""
        try:
            self._disk.write_durably(self._path, f"{log_offset}\n".encode())
        finally:
            # On a full disk there is no note, and nothing has changed.
            self.is_begun = self._disk.exists(self._path)
        cleared = self._finish(log_offset)
        self.is_begun = False
        return cleared

    def resume(self) -> int | None:
        """Finish a cut that a crash interrupted; where it was, or None if there was none."""
        log_offset = read_note(self._disk, self._path.parent)
        if log_offset is None:
            return None
        _log.warning("truncation goes on after a crash truncate_to=%d", log_offset)
        self._finish(log_offset)
        return log_offset

    def _finish(self, log_offset: int) -> int:
        cleared = self._cut_all(log_offset)
        # All that was cut must be gone before the note is.
        self._disk.sync_dirs()
        self._disk.remove(self._path)
        self._disk.sync_dirs()
        _log.info("truncated truncate_to=%d cleared_bytes=%d", log_offset, cleared)
        return cleared
