"""The files of the commit log, in order and without a gap."""

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

from tanist.errors import ForeignFile, OffsetOutOfRange
from tanist.store.disk import Disk
from tanist.store.segment import Segment, segment_name, segment_start


class Segments:
    """All segments, oldest first. The last one is written to; there may be none yet."""

    def __init__(self, disk: Disk, directory: Path, size_bytes: int) -> None:
        self._disk = disk
        self.directory = directory
        self._starts: list[int] = []
        self._segments: list[Segment] = []
        self._spare: Segment | None = None
        # A spare is made on another thread than the one that takes it.
        self._spare_lock = threading.Lock()
        self.size_bytes = size_bytes

    def open(self) -> None:
        """Open what is there. A foreign, odd-sized or missing file is refused by name; nothing is changed."""
        self._disk.make_dir(self.directory)
        paths = [self.directory / name for name in self._disk.names(self.directory)]
        _check_names(paths, self.size_bytes)
        for path in paths:
            segment = Segment.open(self._disk, path, self.size_bytes, is_last=path is paths[-1])
            if segment is not None:
                self._add(segment)

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def start(self) -> int:
        """The first byte kept (0 in an empty log)."""
        return self._starts[0] if self._starts else 0

    @property
    def end(self) -> int:
        """One past the last byte that the files have room for."""
        return self._segments[-1].end if self._segments else 0

    def at(self, log_offset: int) -> Segment:
        """The segment that holds a byte. Mostly the last one is asked for."""
        if self._segments and (last := self._segments[-1]).start <= log_offset < last.end:
            return last
        index = bisect_right(self._starts, log_offset) - 1
        if index < 0 or log_offset >= self._segments[index].end:
            raise OffsetOutOfRange("log offset", log_offset, self.start, self.end)
        return self._segments[index]

    def between(self, start: int, end: int) -> list[Segment]:
        """The segments that hold a byte of ``[start, end)``."""
        # Of a copy: another thread may ask while files are added or dropped.
        segments = self._segments.copy()
        return [segment for segment in segments if max(start, segment.start) < min(end, segment.end)]

    @property
    def may_prepare(self) -> bool:
        """Whether there is something to go on from, and the next segment is not made yet."""
        return bool(self._segments) and self._spare is None

    def prepare(self) -> None:
        """Make the next segment ahead of need, on any thread, so that no append has to wait for it."""
        with self._spare_lock:
            if self.may_prepare:
                self._spare = Segment.create(self._disk, self.directory, self.end, self.size_bytes)

    def add(self, start: int) -> Segment:
        """The next segment, made now unless it was prepared."""
        with self._spare_lock:
            spare, self._spare = self._spare, None
            if spare is not None and spare.is_deleted:
                # A Java broker, started by mistake, deletes files it has no use for before it
                # looks at the lock. What we wrote into this one would be gone with us.
                spare.close()
                spare = None
            if spare is None:
                spare = Segment.create(self._disk, self.directory, start, self.size_bytes)
            assert spare.start == start
            return self._add(spare)

    def take_first(self) -> Segment:
        """Let the oldest file go; whoever takes it discards it."""
        self._starts.pop(0)
        return self._segments.pop(0)

    def discard(self, segments: Iterable[Segment]) -> None:
        """Delete files that were let go, the oldest first, so that a crash leaves no gap. On any thread."""
        for segment in segments:
            self._delete(segment)
            self._disk.sync_dirs()

    def drop_from(self, log_offset: int) -> None:
        """Delete the files that begin at or behind an offset, the newest first: a crash leaves no gap."""
        with self._spare_lock:
            self._drop_spare()
            while self._segments and self._segments[-1].start >= log_offset:
                self._disk.sync_dirs()
                self._starts.pop()
                self._delete(self._segments.pop())
            self._disk.sync_dirs()

    def close(self) -> None:
        """Let go of all files; a prepared one that was never used is deleted."""
        with self._spare_lock:
            self._drop_spare()
        for segment in self._segments:
            segment.close()

    def _add(self, segment: Segment) -> Segment:
        self._segments.append(segment)
        self._starts.append(segment.start)
        return segment

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._delete(self._spare)
            self._spare = None

    def _delete(self, segment: Segment) -> None:
        self._disk.remove(segment.path)
        segment.close()


def _check_names(paths: list[Path], size_bytes: int) -> None:
    starts = [segment_start(path) for path in paths]
    for path, before, start in zip(paths[1:], starts, starts[1:], strict=False):
        if start - before != size_bytes:
            raise ForeignFile(
                path,
                f"it follows {segment_name(before)}, so {segment_name(before + size_bytes)} is missing",
                "restore the missing file from a replica or a backup, or check mappedFileSizeCommitLog",
            )
    for path, start in zip(paths, starts, strict=True):
        if start % size_bytes:
            raise ForeignFile(
                path,
                f"its name is no multiple of the {size_bytes} bytes that a file has",
                "set mappedFileSizeCommitLog to what the store was made with",
            )
