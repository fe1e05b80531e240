"""The only door from the store to the file system.

Everything that must survive a crash passes here: a test puts another Disk in its place and loses or
tears whatever was not synced. A full disk becomes ``DiskFull``, raised before any byte is changed
where the space can be asked for first.
"""

import errno
import mmap
import os
import threading
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Self

from tanist.errors import DiskFull

_COPY_BYTES = 1 << 20
_ZEROS = bytes(_COPY_BYTES)
_NAME_BYTES = 4096
"""What a new name may need: another block of its folder."""


class File:
    """One open file of a fixed size."""

    __slots__ = ("_fd", "_is_read_only", "path")

    def __init__(self, path: Path, fd: int, *, is_read_only: bool = False) -> None:
        self.path = path
        self._fd = fd
        self._is_read_only = is_read_only

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._fd).st_size

    @property
    def modified_ms(self) -> int:
        return os.fstat(self._fd).st_mtime_ns // 1_000_000

    @property
    def is_deleted(self) -> bool:
        """Whether no name leads to this file any more."""
        return os.fstat(self._fd).st_nlink == 0

    def read(self, position: int, size_bytes: int) -> bytes:
        return os.pread(self._fd, size_bytes, position)

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Write all of ``data``. The file does not grow: its space may still have to be found."""
        rest = memoryview(data)
        while rest:
            with self._need_space(len(rest)):
                written = os.pwrite(self._fd, rest, position)
            rest, position = rest[written:], position + written

    def resize(self, size_bytes: int) -> None:
        """Set the length without finding the space: what was never written reads as zeros."""
        os.ftruncate(self._fd, size_bytes)

    def allocate(self, position: int, size_bytes: int) -> None:
        """Make sure of the space, so that storing into a mapping of it can not fail (SIGBUS)."""
        with self._need_space(size_bytes):
            os.posix_fallocate(self._fd, position, size_bytes)

    def map(self, size_bytes: int) -> mmap.mmap:
        access = mmap.ACCESS_READ if self._is_read_only else mmap.ACCESS_WRITE
        return mmap.mmap(self._fd, size_bytes, access=access)

    def sync(self) -> None:
        """Make the contents durable, what was stored through a mapping included."""
        os.fdatasync(self._fd)

    def written_ranges(self, start: int) -> Iterator[tuple[int, int]]:
        """The ranges from ``start`` on that may hold something else than zeros."""
        end = self.size_bytes
        while start < end:
            try:
                start = os.lseek(self._fd, start, os.SEEK_DATA)
                stop = os.lseek(self._fd, start, os.SEEK_HOLE)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return
                raise
            yield start, stop
            start = stop

    def zero_from(self, start: int) -> int:
        """Turn everything from ``start`` on into zeros, and say how many bytes were not."""
        cleared = 0
        for begin, end in self.written_ranges(start):
            for position in range(begin, end, _COPY_BYTES):
                size = min(_COPY_BYTES, end - position)
                found = self.read(position, size)
                # Most of it is zeros already, and to compare is many times faster than to look for their end.
                if found != _ZEROS[:size]:
                    stale = len(found.rstrip(b"\0"))
                    self.write(position, memoryview(_ZEROS)[:stale])
                    cleared += stale
        return cleared

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _need_space(self, size_bytes: int) -> AbstractContextManager[None]:
        return _space_for(self.path, size_bytes)


class Disk:
    """Files and folders. Names become durable with ``sync_dirs``, which knows what has changed."""

    def __init__(self) -> None:
        self._changed_dirs: dict[Path, None] = {}
        self._dirs_lock = threading.Lock()

    def names(self, directory: Path) -> list[str]:
        """The files in a folder, sorted; none if it is not there. Folders inside it do not count."""
        try:
            with os.scandir(directory) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except FileNotFoundError:
            return []

    def folders(self, directory: Path) -> list[str]:
        try:
            with os.scandir(directory) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError:
            return []

    def make_dir(self, directory: Path) -> None:
        missing = [directory, *directory.parents]
        for path in reversed([path for path in missing if not path.exists()]):
            with _space_for(path, _NAME_BYTES):
                path.mkdir(exist_ok=True)
            self._changed_dirs[path.parent] = None

    def create(self, path: Path) -> File:
        """A new, empty file."""
        with _space_for(path, _NAME_BYTES):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._changed_dirs[path.parent] = None
        return File(path, fd)

    def open(self, path: Path, *, read_only: bool = False) -> File:
        flags = os.O_RDONLY if read_only else os.O_RDWR
        return File(path, os.open(path, flags | os.O_CLOEXEC), is_read_only=read_only)

    def complete(self, file: File, size_bytes: int) -> bool:
        """Give its length to a file that a crash left unfinished; whether it has it now."""
        file.resize(size_bytes)
        return True

    def exists(self, path: Path) -> bool:
        return path.exists()

    def leads_elsewhere(self, path: Path) -> bool:
        """Whether a name stands for something that lies elsewhere: a link, or another disk."""
        return path.is_symlink() or path.is_mount()

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def write_durably(self, path: Path, data: bytes) -> None:
        """Replace a small file as one step: a crash leaves the old content or the new, nothing between."""
        fresh = path.with_name(path.name + ".tmp")
        self.remove(fresh)
        with self.create(fresh) as file:
            file.write(0, data)
            file.sync()
        self.replace(fresh, path)
        self.sync_dirs()

    def replace(self, source: Path, target: Path) -> None:
        with _space_for(target, _NAME_BYTES):
            source.replace(target)
        self._changed_dirs[target.parent] = None
        self._changed_dirs[source.parent] = None

    def copy(self, source: Path, target: Path) -> None:
        """A second name for the same content, which the next ``write_durably`` of ``source`` leaves alone."""
        self.remove(target)
        with _space_for(target, _NAME_BYTES):
            target.hardlink_to(source)
        self._changed_dirs[target.parent] = None

    def remove(self, path: Path) -> None:
        """Remove a file; no matter if it was gone before."""
        path.unlink(missing_ok=True)
        self._changed_dirs[path.parent] = None

    def remove_dir(self, directory: Path) -> None:
        """Remove a folder if nothing is in it."""
        try:
            directory.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise
        self._changed_dirs[directory.parent] = None

    def remove_tree(self, directory: Path) -> None:
        """Remove a folder with all that is in it. Links, itself included, are removed and not followed."""
        if directory.is_symlink():
            self.remove(directory)
            return
        with os.scandir(directory) as entries:
            found = list(entries)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                self.remove_tree(Path(entry.path))
            else:
                self.remove(Path(entry.path))
        self.remove_dir(directory)

    def sync_dirs(self) -> None:
        """Make all names that were added, replaced or removed durable."""
        # Whoever comes second waits for the first: it may be at work on the second's names.
        with self._dirs_lock:
            while self._changed_dirs:
                self.sync_dir(self._changed_dirs.popitem()[0])

    def sync_dir(self, directory: Path) -> None:
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_tree(self, root: Path) -> None:
        """Make all names in and under a folder durable, and its own: whoever made them may not have."""
        with suppress(PermissionError):
            # Where we may not read we have not made it either.
            self.sync_dir(root.parent)
        folders = [root]
        while folders:
            folder = folders.pop()
            self.sync_dir(folder)
            folders += [folder / name for name in self.folders(folder)]

    def sync_file(self, path: Path) -> None:
        """Make a file durable that others may have open; no matter if it is gone."""
        try:
            with self.open(path, read_only=True) as file:
                file.sync()
        except FileNotFoundError:
            return

    def used_ratio(self, directory: Path) -> float:
        """How full the disk is, from 0 to 1, as an ordinary user sees it."""
        usage = os.statvfs(directory)
        room = usage.f_blocks - usage.f_bfree + usage.f_bavail
        return (usage.f_blocks - usage.f_bfree) / room if room else 0.0


@contextmanager
def _space_for(path: Path, size_bytes: int) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path, size_bytes) from error
        raise


class ReadOnlyDisk(Disk):
    """Opens everything for reading: whatever would change the store fails instead."""

    def names(self, directory: Path) -> list[str]:
        """A file without a byte is still being made, or was when its maker crashed: it is not there yet."""
        return [name for name in super().names(directory) if (directory / name).stat().st_size]

    def make_dir(self, directory: Path) -> None:
        """Reading needs no folder that is not there."""

    def create(self, path: Path) -> File:
        raise PermissionError(f"{path} can not be made: the store is open for reading only")

    def open(self, path: Path, *, read_only: bool = False) -> File:
        del read_only
        return super().open(path, read_only=True)

    def complete(self, file: File, size_bytes: int) -> bool:
        """Whoever makes it may be at it now: it is not there yet."""
        del file, size_bytes
        return False

    def remove(self, path: Path) -> None:
        raise PermissionError(f"{path} can not be removed: the store is open for reading only")
