"""Who has the store open, and whether it was closed properly.

``lock`` keeps everybody else out, a Java broker included. ``abort`` stands while the store is open;
found at the start, it says that the last process did not close it.
"""

import fcntl
import os
import struct
from pathlib import Path

from tanist.errors import DiskFull, StoreLocked
from tanist.store.disk import Disk

_LOCK_TEXT = b"lock"

# type, whence, start, length, pid (0: the lock belongs to the open file)
_FIRST_BYTE = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)


class StoreGuard:
    """Holds the lock from ``acquire`` to ``release``."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._lock_path = directory / "lock"
        self._abort_path = directory / "abort"
        self._fd = -1

    @property
    def is_held(self) -> bool:
        return self._fd >= 0

    def acquire(self) -> None:
        """Lock the store.

        Java takes a POSIX lock of the file's first byte. Ours stands in the way of that one, but
        belongs to the open file: a POSIX lock would let this process in twice, and be lost as soon
        as the process closed any other handle of the file.
        """
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FIRST_BYTE)
        except OSError as error:
            os.close(fd)
            raise StoreLocked(
                f"{self._lock_path} is held by another process; stop the broker that uses this store first"
            ) from error
        os.pwrite(fd, _LOCK_TEXT, 0)
        self._fd = fd

    def was_closed(self) -> bool:
        """Whether the store was closed properly when it was open last."""
        return not self._abort_path.exists()

    def mark_open(self) -> None:
        try:
            self._disk.write_durably(self._abort_path, str(os.getpid()).encode())
        except DiskFull:
            # The name says all that matters here, and mostly there is room for a name yet.
            if self.was_closed():
                self._disk.create(self._abort_path).close()
                self._disk.sync_dirs()

    def mark_closed(self) -> None:
        self._disk.remove(self._abort_path)
        self._disk.sync_dirs()

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
