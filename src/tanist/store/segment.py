"""One file of the commit log: mapped, of a fixed size, its space made sure of when it is made."""

import mmap
import struct
from contextlib import suppress
from pathlib import Path

from tanist.errors import DiskFull, ForeignFile
from tanist.protocol.record import MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from tanist.store.disk import Disk, File

NAME_DIGITS = 20

_PAGE_BYTES = mmap.PAGESIZE
_SIZE_BYTES = 4
WARM_BYTES = 128 << 10
_ZEROS = memoryview(bytes(WARM_BYTES))
WRITE_BYTES = 64 << 10
"""From this size on a write is faster than a store into the mapping: a MiB takes it half as long. Nor does it
need pages that were made before."""

_MAGICS = tuple(struct.pack(">i", magic) for magic in (MAGIC_V1, MAGIC_V2, MAGIC_BLANK))
_REMEDY = "this is no commit log file; restore it from a replica or a backup"


def segment_name(start: int) -> str:
    """A file is named after its first byte, in 20 digits."""
    return f"{start:0{NAME_DIGITS}d}"


def segment_start(path: Path) -> int:
    """The first byte that a file's name tells."""
    if len(path.name) != NAME_DIGITS or not path.name.isascii() or not path.name.isdigit():
        raise ForeignFile(path, f"the name is not {NAME_DIGITS} digits", "move it out of the store's folder")
    return int(path.name)


class Segment:
    """The bytes ``[start, end)`` of the log.

    Stores go through a mapping: no system call for a record, and readers, slaves included, take
    views of the same pages. Only what is large is written: a batch, a piece of another replica's log.
    """

    __slots__ = ("_file", "end", "mapped", "path", "size_bytes", "start", "view", "warm_to")

    def __init__(self, file: File, size_bytes: int) -> None:
        self.path = file.path
        self.start = segment_start(file.path)
        self.size_bytes = size_bytes
        self.end = self.start + size_bytes
        self._file = file
        self.mapped = file.map(size_bytes)
        self.view = memoryview(self.mapped).toreadonly()
        self.warm_to = 0
        """Up to where ``warm`` has been."""

    @classmethod
    def create(cls, disk: Disk, directory: Path, start: int, size_bytes: int) -> "Segment":
        """A new segment, durable and with its space found. On a full disk nothing is left behind."""
        path = directory / segment_name(start)
        file = disk.create(path)
        try:
            file.allocate(0, size_bytes)
            file.sync()
            disk.sync_dirs()
            return cls(file, size_bytes)
        except BaseException:
            file.close()
            disk.remove(path)
            raise

    @classmethod
    def open(cls, disk: Disk, path: Path, size_bytes: int, *, is_last: bool) -> "Segment | None":
        """Open an existing file; None if it is still being made.

        Only a last one that a crash left empty and unfinished may be short.
        """
        file = disk.open(path)
        try:
            found = file.size_bytes
            if found != size_bytes:
                is_unfinished = is_last and found < size_bytes and not any(file.written_ranges(0))
                if not is_unfinished:
                    raise ForeignFile(
                        path,
                        f"it has {found} bytes and the store's files have {size_bytes}",
                        f"set mappedFileSizeCommitLog as the store was made with, or restore {path.name}",
                    )
                if not disk.complete(file, size_bytes):
                    file.close()
                    return None
            segment = cls(file, size_bytes)
            # Of the last file a crash may have left the first bytes only, and zeros behind them.
            magic = bytes(segment.view[4:8])
            begun = magic.rstrip(b"\0") if is_last or not any(magic) else magic
            if not any(whole.startswith(begun) for whole in _MAGICS):
                raise ForeignFile(
                    path, f"it begins with {bytes(segment.view[:8]).hex()}, not with a record", _REMEDY
                )
            return segment
        except BaseException:
            file.close()
            raise

    def allocate(self) -> None:
        """Make sure of the space before anything is stored: a file that RocketMQ made is sparse."""
        self._file.allocate(0, self.size_bytes)

    def warm(self, position: int) -> None:
        """Write zeros where the log goes on: in the pages behind ``position``, its end, up to 128 KiB.

        To store into a mapped page that the system does not hold has it read the page first, zeros too, and
        that costs several times as much as the store. A write makes many pages at once, without reading.
        """
        behind = -(-position // _PAGE_BYTES) * _PAGE_BYTES
        start = max(self.warm_to, behind)
        self.warm_to = min(behind + WARM_BYTES, self.size_bytes)
        # It only saves time: whether there is room, the store itself will show.
        with suppress(DiskFull, OSError):
            self._file.write(start, _ZEROS[: max(self.warm_to - start, 0)])

    def make_pages_alone(self, position: int) -> None:
        """Have the pages from ``position`` on made one by one as they are stored into.

        Linux reads ahead of stores that go on and on, in pages that grow to 2 MiB, and a sync writes a page
        as a whole. So each message that waits for the disk would cost it 2 MiB.
        """
        start = position // _PAGE_BYTES * _PAGE_BYTES
        self.mapped.madvise(mmap.MADV_RANDOM, start, self.size_bytes - start)

    def read_ahead(self) -> None:
        """The opposite, for a file that is full: whoever reads it reads on."""
        self.mapped.madvise(mmap.MADV_NORMAL)

    def put(self, position: int, data: bytes) -> None:
        """Store a record (or a run of them, or a blank).

        The first four bytes, the size, come last: until they are there the log ends before this
        record, so a process killed half way leaves nothing that looks like one.
        """
        self.put_raw(position + _SIZE_BYTES, memoryview(data)[_SIZE_BYTES:])
        self.mapped[position : position + _SIZE_BYTES] = data[:_SIZE_BYTES]

    def put_raw(self, position: int, data: bytes | memoryview) -> None:
        """Store bytes as they are, in one copy. Readers see a write in the mapping at once."""
        if len(data) >= WRITE_BYTES:
            self._file.write(position, data)
            # Who goes on so needs no pages that were made before.
            self.warm_to = 0
        else:
            self.mapped[position : position + len(data)] = data

    def sync(self, start: int, end: int) -> None:
        """Make durable what was written between two positions.

        A sync makes each page that was stored into read-only again, one by one, and each time stops all cores
        that run a thread of ours; pages that are not in our memory it only writes.
        """
        self.release(start, end)
        self._file.sync()

    def release(self, start: int, end: int) -> None:
        """Take the pages up to ``end`` out of our memory, but for its own. The system's cache keeps them."""
        start = max(start, 0) // _PAGE_BYTES * _PAGE_BYTES
        end = min(end, self.size_bytes) // _PAGE_BYTES * _PAGE_BYTES
        if start < end:
            self.mapped.madvise(mmap.MADV_DONTNEED, start, end - start)

    def zero_from(self, position: int) -> int:
        return self._file.zero_from(position)

    def find(self, pattern: bytes, position: int) -> int:
        """Where ``pattern`` stands next, or -1."""
        for begin, end in self._file.written_ranges(position):
            found = self.mapped.find(pattern, max(begin - len(pattern), position), end)
            if found >= 0:
                return found
        return -1

    @property
    def modified_ms(self) -> int:
        return self._file.modified_ms

    @property
    def is_deleted(self) -> bool:
        return self._file.is_deleted

    def close(self) -> None:
        """Let go of the file. Pages stay mapped while a reader still holds a view of them."""
        self._file.close()
        self.view.release()
        try:
            self.mapped.close()
        except BufferError:
            # The mapping goes with the last view.
            return
