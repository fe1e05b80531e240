"""Takes checkpoints: syncs what they speak of, then writes them, in that order.

The slow half runs on another thread while the store goes on. A truncation meanwhile makes it
meaningless: a checkpoint that speaks of bytes behind a cut would, after a crash, move the log's end
to where nothing is.
"""

import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tanist.errors import FlushFailed
from tanist.store.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from tanist.store.commitlog import CommitLog
from tanist.store.disk import Disk


class PendingCheckpoint:
    """A checkpoint that was begun. ``finish`` may run on any thread."""

    def __init__(self, owner: "Checkpoints", checkpoint: Checkpoint) -> None:
        self._owner = owner
        self._checkpoint = checkpoint
        self._cut_count = owner.log.cut_count

    def finish(self) -> None:
        """Sync, then save; nothing is saved if the log was cut since the start.

        Raises FlushFailed if the disk refused, now or before.
        """
        owner = self._owner
        with owner.held():
            owner.sync()
            if self._cut_count == owner.log.cut_count:
                owner.save(self._checkpoint)


class Checkpoints:
    """The checkpoint on disk and those on their way there."""

    def __init__(self, disk: Disk, root: Path, log: CommitLog) -> None:
        self.disk = disk
        self.log = log
        self.saved = Checkpoint()
        """What stands on disk."""
        self._path = root / "checkpoint"
        self._dirty_paths: deque[Path] = deque()
        self._failure: str | None = None
        self._lock = threading.RLock()

    @property
    def is_there(self) -> bool:
        """Whether there is one: not before a store was opened for the first time to the end."""
        return self.disk.exists(self._path)

    def load(self) -> None:
        # A killed process may not have synced what we see, and we do not save the same again.
        self.disk.sync_file(self._path)
        self.saved = load_checkpoint(self.disk, self._path)

    @contextmanager
    def held(self) -> Generator[None, None, None]:
        """While this is held no checkpoint is written by another thread."""
        with self._lock:
            yield

    def start(
        self,
        *,
        stamp_ms: int,
        index_stamp_ms: int,
        indexed_to: int,
        flushed_to: int,
        queue_total: int,
        dirty_paths: Sequence[Path],
        confirmed_to: int | None = None,
    ) -> PendingCheckpoint:
        """Begin a checkpoint of what is written now: its offsets become true when it is finished."""
        # They are kept here: a checkpoint that is begun and never finished must not lose them.
        self._dirty_paths.extend(dirty_paths)
        checkpoint = msgspec.structs.replace(
            self.saved,
            log_timestamp_ms=stamp_ms,
            queue_timestamp_ms=stamp_ms,
            index_timestamp_ms=index_stamp_ms,
            indexed_to=indexed_to,
            flushed_to=flushed_to,
            queue_total=queue_total,
            # With fixed roles nothing is confirmed, and what RocketMQ left there stays.
            confirmed_to=self.saved.confirmed_to if confirmed_to is None else confirmed_to,
        )
        return PendingCheckpoint(self, checkpoint)

    def sync(self) -> None:
        """Make the log and the dirty files durable. Once that has failed no checkpoint is written any more:
        what was not synced then may be lost, and the next start builds it again from the last checkpoint.
        """
        if self._failure is not None:
            raise FlushFailed(self._failure)
        try:
            self.log.flush()
            while self._dirty_paths:
                self.disk.sync_file(self._dirty_paths.popleft())
            self.disk.sync_dirs()
        except (OSError, FlushFailed) as error:
            self._failure = f"the disk failed to make the store durable: {error}"
            raise FlushFailed(self._failure) from error

    def lower(self, log_offset: int) -> None:
        """The log was cut: nothing behind the cut is on disk any more."""
        saved = self.saved
        if saved.indexed_to is not None and saved.flushed_to is not None:
            self.save(
                msgspec.structs.replace(
                    saved,
                    indexed_to=min(saved.indexed_to, log_offset),
                    flushed_to=min(saved.flushed_to, log_offset),
                    queue_total=saved.queue_total if saved.indexed_to <= log_offset else None,
                    confirmed_to=min(saved.confirmed_to, log_offset),
                )
            )

    def save(self, checkpoint: Checkpoint) -> None:
        if checkpoint != self.saved:
            save_checkpoint(self.disk, self._path, checkpoint)
            self.saved = checkpoint
