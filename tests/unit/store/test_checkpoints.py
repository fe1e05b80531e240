import threading
from pathlib import Path

import pytest

from tanist.errors import FlushFailed
from tanist.store.checkpoint import Checkpoint, load_checkpoint
from tanist.store.checkpoints import Checkpoints, PendingCheckpoint
from tanist.store.commitlog import CommitLog
from tanist.store.segments import Segments
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk
from tests.support.messages import make_message


class _Store:
    """A log and its checkpoints on a disk that fails when it is told to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.disk = FailingDisk()
        segments = Segments(self.disk, root / "commitlog", 4096)
        segments.open()
        self.log = CommitLog(segments, store_host=bytes(8), max_body_bytes=4096, clock=FakeClock())
        self.checkpoints = Checkpoints(self.disk, root, self.log)
        self.checkpoints.load()

    def start(self, *dirty: str, indexed_to: int | None = None) -> PendingCheckpoint:
        for name in dirty:
            (self.root / name).touch()
        return self.checkpoints.start(
            stamp_ms=1000,
            index_stamp_ms=500,
            indexed_to=self.log.log_end if indexed_to is None else indexed_to,
            flushed_to=self.log.log_end,
            queue_total=0,
            dirty_paths=[self.root / name for name in dirty],
        )

    @property
    def on_disk(self) -> Checkpoint:
        return load_checkpoint(self.disk, self.root / "checkpoint")

    def synced(self, *names: str) -> bool:
        return all(self.root / name in self.disk.synced for name in names)


def test_a_finished_checkpoint_stands_on_disk(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    end = store.log.append(make_message()).end
    store.start(indexed_to=0).finish()
    assert store.on_disk == Checkpoint(1000, 1000, 500, indexed_to=0, flushed_to=end, queue_total=0)
    assert store.checkpoints.saved == store.on_disk
    store.log.close()


def test_what_it_speaks_of_is_synced_before_it_is_written(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    store.start().finish()
    store.log.append(make_message())
    pending = store.start("queue", "index")
    store.disk.synced.clear()
    pending.finish()
    names = [path.name for path in store.disk.synced]
    assert names == ["0" * 20, "queue", "index", "checkpoint"]
    store.log.close()


def test_what_is_written_after_the_start_is_not_called_durable(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    first = store.log.append(make_message())
    pending = store.start()
    store.log.append(make_message())
    pending.finish()
    assert store.on_disk.flushed_to == store.on_disk.indexed_to == first.end
    store.log.close()


def test_a_checkpoint_that_was_begun_before_a_cut_is_thrown_away(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    store.log.append(make_message())
    store.start().finish()
    store.log.append(make_message())
    pending = store.start("queue")
    store.log.cut(0)
    store.checkpoints.lower(0)
    pending.finish()
    assert (store.on_disk.indexed_to, store.on_disk.flushed_to) == (0, 0)
    store.log.close()


def test_files_of_a_checkpoint_that_was_never_finished_are_synced_by_the_next(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    store.start("queue")
    store.start().finish()
    assert store.synced("queue")
    store.log.close()


def test_after_a_cut_the_offsets_on_disk_are_not_behind_it(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    appended = [store.log.append(make_message(number)) for number in range(3)]
    store.start(indexed_to=appended[0].end).finish()
    store.checkpoints.lower(appended[1].end)
    assert (store.on_disk.indexed_to, store.on_disk.flushed_to) == (appended[0].end, appended[1].end)
    store.log.close()


def test_a_checkpoint_of_rocketmqs_is_not_given_offsets_by_a_cut(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    store.checkpoints.lower(0)
    assert store.on_disk == Checkpoint()
    assert not (tmp_path / "checkpoint").exists()
    store.log.close()


def test_an_unchanged_checkpoint_is_not_written_again(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    store.start().finish()
    count = store.disk.operation_count
    store.start().finish()
    assert store.disk.operation_count == count
    store.log.close()


def test_after_a_failed_sync_no_checkpoint_is_ever_written(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    store.start().finish()
    before = store.on_disk
    store.log.append(make_message())
    store.log.flush()
    store.disk.is_sync_broken = True
    with pytest.raises(FlushFailed):
        store.start("queue").finish()
    store.disk.is_sync_broken = False
    with pytest.raises(FlushFailed):
        store.start().finish()
    assert store.on_disk == before
    store.log.close()


def test_a_gone_file_needs_no_sync(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    pending = store.start("queue")
    (tmp_path / "queue").unlink()
    pending.finish()
    assert store.on_disk.flushed_to == 0
    store.log.close()


def test_while_checkpoints_are_held_none_is_written_by_another_thread(tmp_path: Path) -> None:
    store = _Store(tmp_path)
    pending = store.start()
    with store.checkpoints.held():
        thread = threading.Thread(target=pending.finish)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
        assert not (tmp_path / "checkpoint").exists()
    thread.join()
    assert store.on_disk.flushed_to == 0
    store.log.close()
