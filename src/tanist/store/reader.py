"""Reads a store's files without opening the store: nothing is locked, recovered or changed.

Works on what a running, stopped or dead broker left, Tanist's or RocketMQ's; the sizes of its files
are taken from the files.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from tanist.errors import CorruptRecord, ForeignFile, RemoteProtocolError
from tanist.model.epochs import EpochHistory
from tanist.protocol.record import Record, check_record, decode_record
from tanist.store.checkpoint import Checkpoint, load_checkpoint
from tanist.store.deletions import Deletions
from tanist.store.disk import Disk, ReadOnlyDisk
from tanist.store.epoch_file import EpochFile
from tanist.store.queues import Queues
from tanist.store.recovery import flushed_to
from tanist.store.segments import Segments
from tanist.store.settings import StoreSettings
from tanist.store.truncation import read_note


class StoreReader:
    """A look at a store from outside. Close it, or use ``with``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        disk = ReadOnlyDisk()
        if "commitlog" not in disk.folders(root):
            raise ForeignFile(
                root, "there is no store here", "name the folder that holds commitlog and consumequeue"
            )
        defaults = StoreSettings()
        self.segments = Segments(
            disk,
            root / "commitlog",
            _file_size(disk, [root / "commitlog"]) or defaults.mapped_file_size_commit_log,
        )
        self.deletions = Deletions(disk, root)
        self.deletions.load()
        self.queues = Queues(
            disk,
            root / "consumequeue",
            _file_size(disk, _queue_folders(disk, root / "consumequeue")) or defaults.queue_file_bytes,
            self.deletions,
        )
        self.was_closed = not disk.exists(root / "abort")
        self.segments.open()
        self.queues.open(was_closed=self.was_closed)
        self.queues.find_min(self.segments.start)
        self.checkpoint: Checkpoint = load_checkpoint(disk, root / "checkpoint")
        self.epochs: EpochHistory = EpochFile(disk, root).load()
        self.truncate_to = read_note(disk, root)
        """Where a truncation that was begun and not finished cuts the log."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.segments.close()
        self.queues.close()

    @property
    def flushed_to(self) -> float:
        """Up to where the log was on disk whole."""
        return flushed_to(self.checkpoint, was_closed=self.was_closed)

    def records(self, start: int | None = None) -> Iterator[Record]:
        """All sound records from an offset on, in the order of the log, up to its end."""
        position = self.segments.start if start is None else start
        while position < self.segments.end:
            segment = self.segments.at(position)
            try:
                is_flushed = position < self.flushed_to
                size = check_record(
                    segment.view, position - segment.start, log_offset=position, is_flushed=is_flushed
                )
            except RemoteProtocolError:
                return
            if size:
                yield decode_record(segment.view, position - segment.start)
            position = position + size if size else segment.end

    def queue_records(self, topic: str, queue_id: int, queue_offset: int | None = None) -> Iterator[Record]:
        """The messages of one queue from an offset on, as its consume queue has them."""
        queue = self.queues.find(topic, queue_id)
        if queue is None:
            return
        first = queue.min_offset if queue_offset is None else max(queue.min_offset, queue_offset)
        for _, entry in queue.walk(first):
            if entry.is_filler:
                continue
            segment = self.segments.at(entry.log_offset)
            position = entry.log_offset - segment.start
            try:
                check_record(segment.view, position, log_offset=entry.log_offset, is_flushed=True)
            except RemoteProtocolError as error:
                raise CorruptRecord(segment.path, position, str(error)) from error
            yield decode_record(segment.view, position)


def _file_size(disk: Disk, folders: Iterable[Path]) -> int:
    """What each file of these folders has. One with nothing in it may be short: others come first."""
    unwritten = 0
    for folder in folders:
        for name in disk.names(folder):
            with disk.open(folder / name) as file:
                if any(file.written_ranges(0)):
                    return file.size_bytes
                unwritten = max(unwritten, file.size_bytes)
    return unwritten


def _queue_folders(disk: Disk, directory: Path) -> Iterator[Path]:
    for topic in disk.folders(directory):
        for queue in disk.folders(directory / topic):
            yield directory / topic / queue
