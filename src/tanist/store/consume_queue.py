"""One consume queue: entry ``k`` says where message ``k`` of the queue lies in the log.

Derived from the log, so it can always be cut and built again. Entries are written with plain
writes, not through a mapping: a queue is small and there may be ten thousand of them. The newest
entries are kept in memory until there are enough for one write, or until a checkpoint is taken:
a crash before that finds them in the log again.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

from tanist.errors import CorruptRecord, ForeignFile, OffsetOutOfRange
from tanist.model.offsets import QueueOffset
from tanist.protocol.queue_entry import (
    ENTRY_BYTES,
    FILLER,
    FILLER_SIZE,
    EntryFields,
    QueueEntry,
    decode_entries,
    encode_entry,
    total_size_bytes,
    unpack_entries,
)
from tanist.store.disk import File
from tanist.store.open_files import OpenFiles
from tanist.store.search import first_lost
from tanist.store.segment import segment_name, segment_start
from tanist.store.settings import REBUILD_INDEXES

_log = logging.getLogger(__name__)


_WALK_ENTRIES = 1024
_WRITE_BYTES = 4096
"""So many bytes of new entries are worth a write."""
_AHEAD_BYTES = 128 * ENTRY_BYTES
"""So much is read from a file at once: who reads on where it left off needs no system call each time."""

IsKept = Callable[[QueueEntry], bool]


class ConsumeQueue:
    """The entries ``[min_offset, max_offset)`` of one queue."""

    __slots__ = (
        "_ahead",
        "_ahead_start",
        "_directory",
        "_dirty",
        "_file_bytes",
        "_files",
        "_paths",
        "_starts",
        "_strays",
        "_unwritten",
        "indexed_to",
        "max_offset",
        "min_offset",
    )

    def __init__(self, files: OpenFiles, directory: Path, file_bytes: int) -> None:
        self._files = files
        self._directory = directory
        self._file_bytes = file_bytes
        self._paths: dict[int, Path] = {}
        self._starts: list[int] = []
        self._strays: list[Path] = []
        self._dirty: set[int] = set()
        # The entries right before ``max_offset`` that only memory has yet.
        self._unwritten = bytearray()
        # What was read from a file last, and where in the queue that lies. Written entries stay as they are
        # until they are cut.
        self._ahead = b""
        self._ahead_start = 0
        self.min_offset = QueueOffset(0)
        self.max_offset = QueueOffset(0)
        self.indexed_to = 0
        """One past the last log byte that an entry points at."""

    def open(self, *, was_closed: bool = True) -> None:
        """Find the files, and the first and the last entry in them.

        A crash may take the name of a new file and leave that of the next: what lies behind the gap is
        then newer than the checkpoint, is not counted, and goes with the next cut.
        """
        paths = [self._directory / name for name in self._files.disk.names(self._directory)]
        starts = [segment_start(path) for path in paths]
        count = next(
            (n for n, start in enumerate(starts) if start != starts[0] + n * self._file_bytes), len(starts)
        )
        if count < len(paths) and was_closed:
            raise ForeignFile(paths[count], f"it does not follow {paths[count - 1].name}", REBUILD_INDEXES)
        count = sum(1 for _ in takewhile(self._is_whole, paths[:count]))
        self._starts, self._strays = starts[:count], paths[count:]
        self._set_end(self._end_of(lambda entry: entry.is_written))
        self.min_offset = self._first_offset

    @property
    def _first_offset(self) -> QueueOffset:
        """The first entry that the files have room for."""
        return QueueOffset(self._starts[0] // ENTRY_BYTES if self._starts else 0)

    # Reading

    def entries(self, queue_offset: int, max_count: int) -> list[QueueEntry]:
        """Entries from an offset on, at most ``max_count`` of them."""
        return list(map(QueueEntry._make, self.fields(queue_offset, max_count)))

    def fields(self, queue_offset: int, max_count: int) -> list[EntryFields]:
        """The same as plain tuples, for who has many to go through."""
        self._check_has(queue_offset)
        found: list[EntryFields] = []
        for data in self._read(queue_offset, min(queue_offset + max_count, self.max_offset)):
            found += unpack_entries(data)
        return found

    def packed(self, queue_offset: int, max_count: int) -> bytes:
        """The same as they lie in the queue's files, for who need not look at each."""
        self._check_has(queue_offset)
        end = min(queue_offset + max_count, self.max_offset)
        position, size = queue_offset * ENTRY_BYTES, (end - queue_offset) * ENTRY_BYTES
        skipped = position - self._ahead_start
        if not 0 <= skipped <= len(self._ahead) - size:
            in_file = position % self._file_bytes
            in_one = min(self._written_end - position, self._file_bytes - in_file)
            if not 0 < size <= in_one:
                return b"".join(self._read(queue_offset, end))
            ahead_bytes = min(max(size, _AHEAD_BYTES), in_one)
            self._ahead = self._file(position - in_file).read(in_file, ahead_bytes)
            self._ahead_start, skipped = position, 0
        return self._ahead[skipped : skipped + size]

    def size_bytes(self, start: int, end: int) -> int:
        """What the messages of ``[start, end)`` take in the log, those that are deleted left out."""
        starts = range(max(start, self.min_offset), end, _WALK_ENTRIES)
        pieces = (self._read(first, min(first + _WALK_ENTRIES, end)) for first in starts)
        return sum(total_size_bytes(data) for piece in pieces for data in piece)

    def entry(self, queue_offset: int) -> QueueEntry:
        """One entry that the queue has."""
        position = queue_offset * ENTRY_BYTES
        if self._unwritten and position >= (written_end := self._written_end):
            return decode_entries(self._unwritten[position - written_end :][:ENTRY_BYTES])[0]
        start = position - position % self._file_bytes
        return decode_entries(self._file(start).read(position - start, ENTRY_BYTES))[0]

    def walk(self, queue_offset: int) -> Iterator[tuple[int, QueueEntry]]:
        """All entries from an offset on, with their offsets."""
        for first in range(queue_offset, self.max_offset, _WALK_ENTRIES):
            yield from enumerate(self.entries(first, _WALK_ENTRIES), first)

    def last_before(self, log_offset: int) -> QueueOffset | None:
        """The last entry of a message before a log offset, None if there is none.

        Only recovery asks, before anything is appended.
        """
        end = self.end_before(log_offset)
        return QueueOffset(end - 1) if end > self._first_offset else None

    def end_before(self, log_offset: int) -> QueueOffset:
        """One past the last entry of a message before a log offset. Only recovery asks."""
        assert not self._unwritten
        return self.max_offset if self.indexed_to <= log_offset else self._end_of(_lies_before(log_offset))

    def has_hole_before(self, log_offset: int) -> bool:
        """Whether a file that must be full has zeros where it begins or ends. Only recovery asks.

        To look at each entry would take as long as to build the queue again.
        """
        end = self.end_before(log_offset)
        count = self._file_bytes // ENTRY_BYTES
        firsts = [start // ENTRY_BYTES for start in self._starts]
        ends = [offset for first in firsts if first + count <= end for offset in (first, first + count - 1)]
        return not all(self.entry(offset).is_written for offset in ends)

    # Writing

    def append(self, queue_offset: int, data: bytes | bytearray, indexed_to: int) -> None:
        """Add entries that begin at a queue offset. Those the queue has already are left out."""
        if self.min_offset == self.max_offset != queue_offset:
            # An empty queue goes on wherever the log does.
            self._drop_files()
        if not self._starts:
            self._begin(queue_offset)
        elif queue_offset > self.max_offset:
            self._fill_gap(queue_offset, decode_entries(data[:ENTRY_BYTES])[0].log_offset)
        if len(self._unwritten) >= _WRITE_BYTES:
            self.write()
        seen = (self.max_offset - queue_offset) * ENTRY_BYTES
        fresh = data[seen:] if seen else data
        self._unwritten += fresh
        self.max_offset = QueueOffset(self.max_offset + len(fresh) // ENTRY_BYTES)
        self.indexed_to = max(self.indexed_to, indexed_to)

    def write(self) -> None:
        """Write what only memory has, file by file. If there is no room for it on disk it stays in memory."""
        while self._unwritten:
            position = self._written_end
            start = position - position % self._file_bytes
            if start > self._starts[-1]:
                self._make_file(start)
            piece = bytes(self._unwritten[: start + self._file_bytes - position])
            self._file(start).write(position - start, piece)
            self._dirty.add(start)
            del self._unwritten[: len(piece)]

    def take_dirty(self) -> list[Path]:
        """The files written since they were taken last."""
        dirty, self._dirty = self._dirty, set()
        return [self._path(start) for start in dirty.intersection(self._starts)]

    # Cutting

    def cut(self, log_offset: int) -> None:
        """Forget the entries of messages at or behind a log offset, and zero where they stood."""
        self.write()
        self._ahead = b""
        while self._strays:
            self._files.remove(self._strays.pop())
        end = self._end_of(_lies_before(log_offset))
        while len(self._starts) > 1 and self._starts[-1] >= end * ENTRY_BYTES:
            self._remove_file(self._starts.pop())
        self._set_end(end)
        if self._starts:
            start = self._starts[-1]
            if self._file(start).zero_from(end * ENTRY_BYTES - start):
                self._dirty.add(start)

    def find_min(self, log_start: int) -> None:
        """Move ``min_offset`` to the first message that the log still has."""
        self.min_offset = self._first_from(log_start)

    def raise_min(self, log_start: int) -> None:
        """Forget the messages that the log has deleted, and drop the files that hold none but them."""
        self.find_min(log_start)
        is_synced = True
        while len(self._starts) > 1 and self._starts[1] <= self.min_offset * ENTRY_BYTES:
            if not is_synced:
                # Else a crash could bring the older file back without the younger one, and leave a gap.
                self._files.disk.sync_dirs()
            self._remove_file(self._starts.pop(0))
            is_synced = False

    def remove(self) -> None:
        """Delete all files, and the folder."""
        self._drop_files()
        self._files.disk.remove_dir(self._directory)

    # Inside

    def _check_has(self, queue_offset: int) -> None:
        if not self.min_offset <= queue_offset <= self.max_offset:
            raise OffsetOutOfRange("queue offset", queue_offset, self.min_offset, self.max_offset)

    def _read(self, queue_offset: int, end: int) -> Iterator[bytes | bytearray]:
        """The bytes of some entries, one piece a file, and last what only memory has."""
        position, end_position = queue_offset * ENTRY_BYTES, end * ENTRY_BYTES
        written_end = self._written_end
        while position < min(end_position, written_end):
            start = position - position % self._file_bytes
            size = min(end_position, written_end, start + self._file_bytes) - position
            yield self._file(start).read(position - start, size)
            position += size
        if position < end_position:
            yield self._unwritten[position - written_end : end_position - written_end]

    def _path(self, start: int) -> Path:
        path = self._paths.get(start)
        if path is None:
            # To make one takes longer than to read what is in the file.
            path = self._paths[start] = self._directory / segment_name(start)
        return path

    def _remove_file(self, start: int) -> None:
        self._files.remove(self._path(start))
        del self._paths[start]

    @property
    def _written_end(self) -> int:
        """One past the last byte of the queue that the files have."""
        return self.max_offset * ENTRY_BYTES - len(self._unwritten)

    def _file(self, start: int) -> File:
        return self._files.get(self._path(start))

    def _is_whole(self, path: Path) -> bool:
        """Only files that a crash left empty and unfinished, or that are being made, may be short."""
        file = self._files.get(path)
        found = file.size_bytes
        if found == self._file_bytes:
            return True
        if found > self._file_bytes or any(file.written_ranges(0)):
            raise ForeignFile(
                path,
                f"it has {found} bytes and a queue's files have {self._file_bytes}",
                f"set mappedFileSizeConsumeQueue to what the store was made with, or {REBUILD_INDEXES}",
            )
        return self._files.disk.complete(file, self._file_bytes)

    def _end_of(self, is_kept: IsKept) -> QueueOffset:
        """The first offset whose entry is not kept; ``is_kept`` holds up to there and not behind it."""

        def is_lost(queue_offset: int) -> bool:
            return not is_kept(self.entry(queue_offset))

        index = len(self._starts) - 1
        while index > 0 and is_lost(self._starts[index] // ENTRY_BYTES):
            index -= 1
        if index < 0:
            return QueueOffset(0)
        first = self._starts[index] // ENTRY_BYTES
        return QueueOffset(first_lost(range(first, first + self._file_bytes // ENTRY_BYTES), is_lost))

    def _first_from(self, log_start: int) -> QueueOffset:
        """The first entry of a message that the log still has; ``max_offset`` if there is none."""

        def is_there(queue_offset: int) -> bool:
            entry = self.entry(queue_offset)
            is_before_first = entry.is_filler and entry.log_offset == 0
            return not is_before_first and entry.log_offset >= log_start

        first = self._first_offset
        return QueueOffset(first + bisect_left(range(first, self.max_offset), 1, key=is_there))

    def _set_end(self, end: QueueOffset) -> None:
        self.max_offset = end
        self.min_offset = min(self.min_offset, end)
        last = self.entry(end - 1) if end > self._first_offset else None
        self.indexed_to = 0 if last is None or last.is_filler else last.log_offset + last.size_bytes

    def _begin(self, queue_offset: int) -> None:
        """Make the first file. What the queue held before this offset is not ours: fillers stand for it."""
        position = queue_offset * ENTRY_BYTES
        start = position - position % self._file_bytes
        self._make_file(start)
        self._unwritten += FILLER * (queue_offset - start // ENTRY_BYTES)
        self.min_offset = self.max_offset = QueueOffset(queue_offset)

    def _fill_gap(self, queue_offset: int, log_offset: int) -> None:
        """Pass over offsets that the log left out, which we never do, but others may have.

        These fillers have the log offset of the message behind them, so that log offsets in a queue
        never fall and can be searched.
        """
        gap = queue_offset - self.max_offset
        if gap * ENTRY_BYTES > self._file_bytes:
            raise CorruptRecord(
                self._directory,
                self.max_offset,
                f"the log goes on with queue offset {queue_offset}; {REBUILD_INDEXES}",
            )
        _log.warning("queue has a gap queue=%s from=%d to=%d", self._directory, self.max_offset, queue_offset)
        self._unwritten += encode_entry(log_offset, FILLER_SIZE, 0) * gap
        self.max_offset = QueueOffset(queue_offset)

    def _drop_files(self) -> None:
        self._unwritten.clear()
        self._ahead = b""
        while self._starts:
            self._remove_file(self._starts.pop())

    def _make_file(self, start: int) -> None:
        if not self._starts:
            self._files.disk.make_dir(self._directory)
        self._files.create(self._path(start)).resize(self._file_bytes)
        self._starts.append(start)


def _lies_before(log_offset: int) -> IsKept:
    return lambda entry: entry.is_written and entry.log_offset < log_offset
