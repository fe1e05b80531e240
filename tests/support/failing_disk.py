"""A disk that fails when a test says so, on the real file system."""

import errno
import os
import threading
from pathlib import Path

from tanist.store.disk import Disk, File


class Stopped(Exception):
    """The process ended instead of the operation: nothing after it is done."""


class FailingDisk(Disk):
    """Works until it is told to fail: its syncs, its space, or everything from one operation on."""

    def __init__(self, *, stop_at: int | None = None) -> None:
        super().__init__()
        self.is_sync_broken = False
        self.is_full = False
        self.used = 0.1
        self.sync_count = 0
        self.synced: list[Path] = []
        self.may_sync = threading.Event()
        """While this is not set every sync waits, as on a busy disk."""
        self.may_sync.set()
        self.operation_count = 0
        self._stop_at = stop_at

    def count(self) -> None:
        """Something is about to be changed."""
        if self._stop_at is not None and self.operation_count >= self._stop_at:
            raise Stopped
        self.operation_count += 1

    def create(self, path: Path) -> File:
        self.count()
        return _FailingFile(self, super().create(path))

    def open(self, path: Path, *, read_only: bool = False) -> File:
        return _FailingFile(self, super().open(path, read_only=read_only))

    def replace(self, source: Path, target: Path) -> None:
        self.count()
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        if path.exists():
            self.count()
        super().remove(path)

    def sync_dir(self, directory: Path) -> None:
        self.count()
        super().sync_dir(directory)

    def used_ratio(self, directory: Path) -> float:
        return self.used


class _FailingFile(File):
    """A file whose disk is asked before every change."""

    __slots__ = ("_disk",)

    def __init__(self, disk: FailingDisk, file: File) -> None:
        super().__init__(file.path, file._fd, is_read_only=file._is_read_only)
        self._disk = disk

    def write(self, position: int, data: bytes | memoryview) -> None:
        self._disk.count()
        super().write(position, data)

    def resize(self, size_bytes: int) -> None:
        self._disk.count()
        super().resize(size_bytes)

    def allocate(self, position: int, size_bytes: int) -> None:
        with self._need_space(size_bytes):
            if self._disk.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().allocate(position, size_bytes)

    def sync(self) -> None:
        self._disk.count()
        self._disk.sync_count += 1
        assert self._disk.may_sync.wait(10)
        if self._disk.is_sync_broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._disk.synced.append(self.path)
        super().sync()
