import shutil
from pathlib import Path

import msgspec
import pytest

from tanist.errors import CorruptRecord, FlushFailed, ForeignFile, StoreLocked
from tanist.protocol.queue_entry import encode_entry
from tanist.protocol.record import encode_record
from tanist.store import MessageStore
from tanist.store.checkpoint import load_checkpoint, save_checkpoint
from tanist.store.disk import Disk
from tanist.store.segment import Segment
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk
from tests.support.messages import SMALL, TOPIC, bodies, kill, make_message, numbered, open_store, tree

SIZE = SMALL.mapped_file_size_commit_log


def _fill(store: MessageStore, count: int = 9) -> list[int]:
    """Messages of a thousand bytes, three to a file, with keys; where each lies."""
    return [
        store.append(make_message(number, body_bytes=1000, keys="all")).log_offset for number in range(count)
    ]


def _closed(root: Path, count: int = 9) -> list[int]:
    with open_store(root) as store:
        return _fill(store, count)


def _killed(root: Path, *, is_checkpointed: bool, count: int = 9) -> list[int]:
    """A store whose process was killed after it had dispatched everything."""
    store = open_store(root)
    starts = _fill(store, count)
    store.dispatch()
    if is_checkpointed:
        store.checkpoint()
    kill(store)
    return starts


def _segment(root: Path, log_offset: int) -> Path:
    return root / "commitlog" / f"{log_offset - log_offset % SIZE:020d}"


def _overwrite(root: Path, log_offset: int, data: bytes) -> None:
    path = _segment(root, log_offset)
    content = bytearray(path.read_bytes())
    content[log_offset % SIZE : log_offset % SIZE + len(data)] = data
    path.write_bytes(content)


def _make_rocketmqs(root: Path, stamp_ms: int | None = None) -> None:
    """Leave in the checkpoint what RocketMQ keeps there: times, and no offsets."""
    checkpoint = load_checkpoint(Disk(), root / "checkpoint")
    stamp_ms = checkpoint.log_timestamp_ms if stamp_ms is None else stamp_ms
    fresh = msgspec.structs.replace(
        checkpoint,
        log_timestamp_ms=stamp_ms,
        queue_timestamp_ms=stamp_ms,
        indexed_to=None,
        flushed_to=None,
    )
    save_checkpoint(Disk(), root / "checkpoint", fresh)


def _assert_whole(root: Path, count: int = 9) -> None:
    with open_store(root) as store:
        assert bodies(store) == numbered(*range(count))
        found = [bytes(record.body).rstrip(b".") for record in store.find_by_key(TOPIC, "all")]
        assert found == numbered(*reversed(range(count)))
        assert store.append(make_message()).queue_offset == count


# After a clean stop


def test_a_new_store_is_empty(tmp_path: Path) -> None:
    with open_store(tmp_path / "some" / "where") as store:
        assert (store.log.log_start, store.log.flushed_to, store.log.log_end) == (0, 0, 0)
        assert store.recovery.was_closed
        assert store.records(TOPIC, 0, 0, 10) == []


def test_a_closed_store_opens_with_everything(tmp_path: Path) -> None:
    _closed(tmp_path)
    assert not (tmp_path / "abort").exists()
    _assert_whole(tmp_path)


def test_a_closed_store_is_not_walked_again(tmp_path: Path) -> None:
    _closed(tmp_path)
    with open_store(tmp_path) as store:
        assert store.recovery.was_closed
        assert store.recovery.scanned_from == store.recovery.log_end == store.log.log_end
        assert store.log.flushed_to == store.log.log_end


def test_opening_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    _closed(tmp_path)
    once = tree(tmp_path)
    with open_store(tmp_path):
        pass
    assert tree(tmp_path) == once


def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.close()
    with open_store(tmp_path):
        store.close()
        assert (tmp_path / "abort").exists()


@pytest.mark.parametrize("folders", [("consumequeue", "index"), ("consumequeue",)])
@pytest.mark.parametrize("is_closed", [True, False])
def test_indexes_that_were_deleted_are_built_again(
    tmp_path: Path, folders: tuple[str, ...], is_closed: bool
) -> None:
    if is_closed:
        _closed(tmp_path)
    else:
        _killed(tmp_path, is_checkpointed=True)
    before = tree(tmp_path / "consumequeue")
    for folder in folders:
        shutil.rmtree(tmp_path / folder)
    with open_store(tmp_path):
        pass
    assert tree(tmp_path / "consumequeue") == before
    _assert_whole(tmp_path)


def test_indexes_of_a_log_that_begins_late_are_built_again(tmp_path: Path) -> None:
    _closed(tmp_path)
    _segment(tmp_path, 0).unlink()
    for folder in ("consumequeue", "index"):
        shutil.rmtree(tmp_path / folder)
    with open_store(tmp_path) as store:
        assert store.log.log_start == SIZE
        queue = store.queues.find(TOPIC, 0)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (3, 9)
        assert bodies(store) == numbered(*range(3, 9))


# After a crash


@pytest.mark.parametrize("is_checkpointed", [True, False])
def test_a_killed_store_opens_with_everything_that_was_written(tmp_path: Path, is_checkpointed: bool) -> None:
    _killed(tmp_path, is_checkpointed=is_checkpointed)
    with open_store(tmp_path) as store:
        assert not store.recovery.was_closed
        assert store.recovery.cleared_bytes == 0
        # A killed process leaves its bytes to the kernel; they are on disk only now.
        assert store.log.flushed_to == store.log.log_end
    _assert_whole(tmp_path)


def test_after_a_crash_only_what_is_younger_than_the_checkpoint_is_walked(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    starts = _fill(store)
    store.dispatch(starts[5])
    store.checkpoint()
    store.dispatch()
    kill(store)
    with open_store(tmp_path) as store:
        assert store.recovery.scanned_from == starts[5]
    _assert_whole(tmp_path)


def test_what_was_not_dispatched_before_a_crash_is_dispatched_after_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    _fill(store)
    kill(store)
    _assert_whole(tmp_path)


@pytest.mark.parametrize("kept_bytes", [0, 3, 4, 7, 8, 50, 91, 500, 1000])
def test_a_torn_record_at_the_end_is_cut_and_zeroed(tmp_path: Path, kept_bytes: int) -> None:
    store = open_store(tmp_path)
    starts = _fill(store, 8)
    store.dispatch()
    store.checkpoint()
    end = store.log.log_end
    store.append(make_message(8, body_bytes=1000, keys="all"))
    size = store.log.log_end - end
    kill(store)
    assert starts[-1] >= 2 * SIZE
    _overwrite(tmp_path, end + kept_bytes, bytes(size - kept_bytes))
    with open_store(tmp_path) as store:
        assert store.log.log_end == end
        assert store.recovery.cleared_bytes <= kept_bytes
        assert not any(store.log.segments[-1].view[end % SIZE :])
    _assert_whole(tmp_path, 8)


def test_files_behind_a_torn_record_go(tmp_path: Path) -> None:
    starts = _killed(tmp_path, is_checkpointed=False)
    _overwrite(tmp_path, starts[2] + 200, b"\xff")
    with open_store(tmp_path) as store:
        assert store.log.log_end == starts[2]
        assert len(store.log.segments) == 1
    assert len(list((tmp_path / "commitlog").iterdir())) == 1
    _assert_whole(tmp_path, 2)


def test_opening_twice_after_a_crash_gives_the_same_bytes(tmp_path: Path) -> None:
    starts = _killed(tmp_path, is_checkpointed=False)
    _overwrite(tmp_path, starts[4] + 200, b"\xff")
    kill(open_store(tmp_path))
    once = tree(tmp_path)
    kill(open_store(tmp_path))
    assert tree(tmp_path) == once


def test_a_slot_that_a_crash_left_without_its_entry_hides_no_key(tmp_path: Path) -> None:
    _killed(tmp_path, is_checkpointed=True)
    (path,) = (tmp_path / "index").iterdir()
    content = bytearray(path.read_bytes())
    content[40 : 40 + 16 * 4] = (60).to_bytes(4, "big") * 16
    path.write_bytes(content)
    _assert_whole(tmp_path)


def test_a_prepared_file_that_a_crash_left_behind_is_no_trouble(tmp_path: Path) -> None:
    _killed(tmp_path, is_checkpointed=True)
    _segment(tmp_path, 3 * SIZE).write_bytes(bytes(SIZE))
    _assert_whole(tmp_path)


def test_half_a_record_of_a_master_is_cut_and_is_no_damage(tmp_path: Path) -> None:
    with open_store(tmp_path / "master") as master:
        starts = _fill(master, 3)
        store = open_store(tmp_path / "slave")
        store.append_raw(0, master.log.read_ahead(0, starts[2] + 500))
    store.dispatch()
    store.checkpoint()
    store.close()
    with open_store(tmp_path / "slave") as store:
        assert not store.recovery.was_closed
        assert store.log.log_end == starts[2]
    _assert_whole(tmp_path / "slave", 2)


# Damage


@pytest.mark.parametrize("accept_loss", [False, True])
def test_damage_of_what_was_on_disk_is_refused_or_accepted(tmp_path: Path, accept_loss: bool) -> None:
    store = open_store(tmp_path)
    starts = _fill(store)
    store.checkpoint()
    kill(store)
    _overwrite(tmp_path, starts[4] + 200, b"\xff")
    before = tree(tmp_path)
    if not accept_loss:
        with pytest.raises(CorruptRecord, match="the body does not match its checksum") as caught:
            open_store(tmp_path)
        assert caught.value.path == _segment(tmp_path, starts[4])
        assert caught.value.position == starts[4] - SIZE
        assert tree(tmp_path) == before
        return
    with open_store(tmp_path, accept_loss=True) as store:
        assert store.log.log_end == starts[4]
    _assert_whole(tmp_path, 4)


def test_a_refused_store_that_had_been_closed_still_counts_as_closed(tmp_path: Path) -> None:
    starts = _closed(tmp_path)
    _overwrite(tmp_path, starts[8] + 200, b"\xff")
    before = tree(tmp_path)
    for _ in range(2):
        with pytest.raises(CorruptRecord):
            open_store(tmp_path)
        assert tree(tmp_path) == before


def test_a_log_that_is_gone_is_refused_or_begun_again(tmp_path: Path) -> None:
    _closed(tmp_path)
    shutil.rmtree(tmp_path / "commitlog")
    with pytest.raises(CorruptRecord, match="the folder is empty"):
        open_store(tmp_path)
    with open_store(tmp_path, accept_loss=True) as store:
        assert bodies(store) == []
        assert store.append(make_message(1)).log_offset == 0
    with open_store(tmp_path) as store:
        assert bodies(store) == numbered(1)


# Stores that RocketMQ wrote


def test_a_closed_store_of_rocketmq_opens_with_everything(tmp_path: Path) -> None:
    _closed(tmp_path)
    _make_rocketmqs(tmp_path)
    _assert_whole(tmp_path)


def test_after_a_crash_of_rocketmq_the_time_of_its_checkpoint_says_where_to_begin(tmp_path: Path) -> None:
    clock = FakeClock(now_ms=1_000_000)
    store = open_store(tmp_path, clock=clock)
    for number in range(9):
        store.append(make_message(number, body_bytes=1000, keys="all"))
        clock.advance_ms(10_000)
    store.dispatch()
    store.queues.write()
    store.index.write()
    kill(store)
    _make_rocketmqs(tmp_path, 1_000_000 + 40_000)
    with open_store(tmp_path) as store:
        assert store.recovery.scanned_from == SIZE
    _assert_whole(tmp_path)


def test_entries_that_rocketmq_left_behind_a_cut_are_dropped(tmp_path: Path) -> None:
    # RocketMQ cuts a queue by forgetting where it ends, and finds the old entries again after a restart.
    with open_store(tmp_path) as store:
        for number in range(6):
            store.append(make_message(number, queue_id=number % 2))
        store.dispatch()
        lost = store.records(TOPIC, 0, 2, 1)[0]
        store.truncate_to(lost.log_offset)
        for number in range(6, 9):
            store.append(make_message(number, queue_id=1))
    path = tmp_path / "consumequeue" / TOPIC / "0" / ("0" * 20)
    content = bytearray(path.read_bytes())
    content[40:60] = encode_entry(lost.log_offset, lost.size_bytes, 0)
    path.write_bytes(content)
    _make_rocketmqs(tmp_path)
    with open_store(tmp_path) as store:
        assert bodies(store) == numbered(0, 2)
        assert bodies(store, queue_id=1) == numbered(1, 3, 6, 7, 8)
        assert store.append(make_message()).queue_offset == 2


def test_a_key_that_rocketmq_left_of_a_cut_message_finds_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.append(make_message(0))
        store.append(make_message(1, keys="stale"))
        store.dispatch()
        index = tree(tmp_path / "index")
        store.truncate_to(0)
        # The key now leads into the middle of this message.
        store.append(make_message(2, body_bytes=1000))
    for name, content in index.items():
        (tmp_path / "index" / name).write_bytes(content)
    _make_rocketmqs(tmp_path)
    with open_store(tmp_path) as store:
        assert store.find_by_key(TOPIC, "stale") == []


def test_damage_in_a_store_of_rocketmq_is_refused(tmp_path: Path) -> None:
    starts = _closed(tmp_path)
    _make_rocketmqs(tmp_path)
    shutil.rmtree(tmp_path / "consumequeue")
    _overwrite(tmp_path, starts[4] + 200, b"\xff")
    with pytest.raises(CorruptRecord):
        open_store(tmp_path)
    with open_store(tmp_path, accept_loss=True) as store:
        assert bodies(store) == numbered(0, 1, 2, 3)


def test_properties_with_a_nul_that_rocketmq_stored_are_kept(tmp_path: Path) -> None:
    message = make_message(1)
    raw = encode_record(
        make_message(1, TAGS="x"), queue_offset=0, log_offset=0, store_timestamp_ms=1, store_host=bytes(8)
    )
    assert raw.endswith(b"x\x02")
    with open_store(tmp_path) as store:
        store.append_raw(0, raw[:-1] + b"\0")
    _make_rocketmqs(tmp_path)
    shutil.rmtree(tmp_path / "consumequeue")
    with open_store(tmp_path) as store:
        assert bodies(store) == [message.body]


# Bad input


def test_a_foreign_file_in_the_log_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    _closed(tmp_path)
    (tmp_path / "commitlog" / "notes.txt").write_text("hello")
    before = tree(tmp_path)
    with pytest.raises(ForeignFile, match=r"notes\.txt"):
        open_store(tmp_path)
    assert tree(tmp_path) == before


def test_a_log_of_another_file_size_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    _closed(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(ForeignFile, match="mappedFileSizeCommitLog"):
        open_store(tmp_path, msgspec.structs.replace(SMALL, mapped_file_size_commit_log=2 * SIZE))
    with pytest.raises(ForeignFile, match="mappedFileSizeConsumeQueue"):
        open_store(tmp_path, msgspec.structs.replace(SMALL, mapped_file_size_consume_queue=20))
    with pytest.raises(ForeignFile, match="maxIndexNum"):
        open_store(tmp_path, msgspec.structs.replace(SMALL, max_index_num=65))
    assert tree(tmp_path) == before


def test_a_log_without_one_of_its_files_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    _closed(tmp_path)
    _segment(tmp_path, SIZE).unlink()
    before = tree(tmp_path)
    with pytest.raises(ForeignFile, match=f"{SIZE:020d} is missing"):
        open_store(tmp_path)
    assert tree(tmp_path) == before


def test_a_text_in_place_of_the_log_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    _segment(tmp_path, 0).write_bytes(b"Dear diary, ".ljust(SIZE, b"."))
    with pytest.raises(ForeignFile, match="not with a record"):
        open_store(tmp_path)
    assert _segment(tmp_path, 0).read_bytes().startswith(b"Dear diary")


def test_a_bad_epoch_file_is_refused(tmp_path: Path) -> None:
    _closed(tmp_path)
    (tmp_path / "epochFileCheckpoint").write_text("1\n12345\n1-0\n")
    with pytest.raises(ForeignFile, match="checksum"):
        open_store(tmp_path)


def test_a_refused_store_is_let_go(tmp_path: Path) -> None:
    _closed(tmp_path)
    stray = tmp_path / "commitlog" / "notes.txt"
    stray.touch()
    with pytest.raises(ForeignFile):
        open_store(tmp_path)
    stray.unlink()
    _assert_whole(tmp_path)


def test_a_store_opens_once(tmp_path: Path) -> None:
    with open_store(tmp_path):
        with pytest.raises(StoreLocked):
            open_store(tmp_path)
        assert (tmp_path / "abort").exists()


# Closing


def test_a_store_whose_disk_failed_is_not_marked_as_closed(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk=disk)
    _fill(store)
    disk.is_sync_broken = True
    with pytest.raises(FlushFailed):
        store.flush()
    disk.is_sync_broken = False
    with pytest.raises(FlushFailed):
        store.close()
    assert (tmp_path / "abort").exists()
    with open_store(tmp_path) as store:
        assert not store.recovery.was_closed


def test_epochs_that_begin_behind_the_end_are_forgotten(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    starts = _fill(store, 3)
    store.begin_epoch(7)
    store.append(make_message(3, body_bytes=1000))
    store.begin_epoch(8)
    kill(store)
    _overwrite(tmp_path, starts[2] + 200, b"\xff")
    with open_store(tmp_path) as store:
        assert store.epochs.epochs == ()
        store.begin_epoch(9)
    with open_store(tmp_path) as store:
        assert store.epochs.epochs == ((9, starts[2]),)


def _refuse_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(_segment: Segment, *_arguments: object) -> int:
        raise AssertionError("somebody looks behind the end of the log")

    monkeypatch.setattr(Segment, "find", look)
    monkeypatch.setattr(Segment, "zero_from", look)


def test_nobody_looks_behind_the_end_of_a_log_that_we_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path) as store:
        end = store.append(make_message()).end
    _refuse_to_look(monkeypatch)
    with open_store(tmp_path) as store:
        assert (store.recovery.was_closed, store.log.log_end, store.log.flushed_to) == (True, end, end)
        assert store.append(make_message()).log_offset == end


def test_a_log_that_nobody_closed_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    store.append(make_message())
    store.checkpoint()
    kill(store)
    _refuse_to_look(monkeypatch)
    with pytest.raises(AssertionError, match="looks behind"):
        open_store(tmp_path)
