"""A file system that forgets, when it is told so, what was written to it and never synced.

Run as a program with a folder and a place, it shows at the place what is in the folder, by FUSE. What is
written goes to the folder at once; of each file what stood there before is kept in memory until the file is
synced. ``lose`` on standard input puts all of that back, and from then on nothing is written any more: what a
process that has been killed left in the page cache comes too late.

Names are kept: a file that was made, renamed or removed is so after the loss too, and may be empty.
"""

import errno
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

READY, LOSE, LOST = "ready", "lose", "lost"
_Undo = tuple[int, bytes, int]
"""Where bytes stood, those, and how long the file was."""
_STAT = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks")
_STAT_NS = ("st_atime", "st_mtime", "st_ctime")
_STATVFS = (
    "f_bsize",
    "f_frsize",
    "f_blocks",
    "f_bfree",
    "f_bavail",
    "f_files",
    "f_ffree",
    "f_favail",
    "f_namemax",
)


class ForgetfulFiles:
    """What FUSE asks, on a folder. All of it runs in one thread; ``lose`` comes from another."""

    use_ns = True

    def __init__(self, root: Path) -> None:
        self._root = root
        self._undo: dict[int, list[_Undo]] = {}
        """Of each file with bytes that are not synced, by its number."""
        self._handles: dict[int, int] = {}
        """Of each of those, a handle of our own: the process may close its."""
        self._is_off = False
        self._lock = threading.Lock()

    def init(self, path: str) -> None:  # noqa: ARG002
        """FUSE has mounted it."""
        _tell(READY)

    def lose(self) -> None:
        """Put back what stood where unsynced bytes stand, and take nothing any more."""
        with self._lock:
            self._is_off = True
            for inode, undone in self._undo.items():
                handle = self._handles[inode]
                for offset, before, size in reversed(undone):
                    os.pwrite(handle, before, offset)
                    os.ftruncate(handle, size)

    def write(self, path: str, data: bytes, offset: int, handle: int) -> int:  # noqa: ARG002
        with self._lock:
            if not self._is_off:
                self._remember(handle, offset, len(data))
                os.pwrite(handle, data, offset)
        return len(data)

    def truncate(self, path: str, length: int, handle: int | None = None) -> int:
        held = os.open(self._at(path), os.O_RDWR) if handle is None else handle
        try:
            with self._lock:
                if not self._is_off:
                    self._remember(held, length, max(os.fstat(held).st_size - length, 0))
                    os.ftruncate(held, length)
        finally:
            if handle is None:
                os.close(held)
        return 0

    def fallocate(self, path: str, mode: int, offset: int, size: int, handle: int) -> int:  # noqa: ARG002
        if mode:
            raise OSError(errno.EOPNOTSUPP, "only plain room is given")
        with self._lock:
            if not self._is_off:
                self._remember(handle, offset, 0)
                os.posix_fallocate(handle, offset, size)
        return 0

    def fsync(self, path: str, datasync: int, handle: int) -> int:  # noqa: ARG002
        with self._lock:
            inode = os.fstat(handle).st_ino
            if not self._is_off and self._undo.pop(inode, None) is not None:
                os.close(self._handles.pop(inode))
        return 0

    def _remember(self, handle: int, offset: int, size: int) -> None:
        state = os.fstat(handle)
        if state.st_ino not in self._undo:
            self._undo[state.st_ino] = []
            self._handles[state.st_ino] = os.dup(handle)
        self._undo[state.st_ino].append((offset, os.pread(handle, size, offset), state.st_size))

    def read(self, path: str, size: int, offset: int, handle: int) -> bytes:  # noqa: ARG002
        return os.pread(handle, size, offset)

    def open(self, path: str, flags: int) -> int:
        # What is overwritten has to be read first, and the system finds the end of the file by itself.
        return os.open(self._at(path), flags & ~(os.O_ACCMODE | os.O_APPEND) | os.O_RDWR)

    def create(self, path: str, mode: int) -> int:
        return os.open(self._at(path), os.O_RDWR | os.O_CREAT, mode)

    def release(self, path: str, handle: int) -> int:  # noqa: ARG002
        os.close(handle)
        return 0

    def getattr(self, path: str, handle: int | None = None) -> dict[str, Any]:
        state = os.lstat(self._at(path)) if handle is None else os.fstat(handle)
        times = {name: getattr(state, f"{name}_ns") for name in _STAT_NS}
        return {name: getattr(state, name) for name in _STAT} | times

    def readdir(self, path: str, handle: int) -> list[str]:  # noqa: ARG002
        return [".", "..", *(each.name for each in self._at(path).iterdir())]

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._at(path))
        return {name: getattr(found, name) for name in _STATVFS}

    def mkdir(self, path: str, mode: int) -> int:
        return self._change(lambda: self._at(path).mkdir(mode))

    def rmdir(self, path: str) -> int:
        return self._change(lambda: self._at(path).rmdir())

    def unlink(self, path: str) -> int:
        return self._change(lambda: self._at(path).unlink())

    def rename(self, old: str, new: str) -> int:
        return self._change(lambda: self._at(old).replace(self._at(new)))

    def link(self, new: str, old: str) -> int:
        return self._change(lambda: self._at(new).hardlink_to(self._at(old)))

    def chmod(self, path: str, mode: int) -> int:
        return self._change(lambda: self._at(path).chmod(mode))

    def utimens(self, path: str, times: tuple[int, int]) -> int:
        return self._change(lambda: os.utime(self._at(path), ns=times))

    def _change(self, change: Callable[[], object]) -> int:
        with self._lock:
            if not self._is_off:
                change()
        return 0

    def _at(self, path: str) -> Path:
        return self._root / path.removeprefix("/")


def _tell(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _obey(files: ForgetfulFiles) -> None:
    for line in sys.stdin:
        if line.strip() == LOSE:
            files.lose()
            _tell(LOST)


def main() -> None:
    """Serve until the place is unmounted."""
    folder, place = sys.argv[1:]
    files = ForgetfulFiles(Path(folder))
    threading.Thread(target=_obey, args=(files,), daemon=True).start()
    import_module("mfusepy").FUSE(files, place, foreground=True, nothreads=True, hard_remove=True)
