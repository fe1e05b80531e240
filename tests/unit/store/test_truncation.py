import itertools
from pathlib import Path

import pytest

from tanist.errors import CorruptRecord, NotWritable
from tanist.store import MessageStore
from tanist.store.disk import Disk
from tanist.store.truncation import NOTE_NAME, Truncation
from tests.support.failing_disk import FailingDisk, Stopped
from tests.support.messages import bodies, kill, make_message, numbered, open_store, tree


class _Cuts:
    """Stands in for the store: notes the cuts it is asked for, and what the note says meanwhile."""

    def __init__(self, root: Path) -> None:
        self.note = root / NOTE_NAME
        self.seen: list[tuple[int, bytes]] = []
        self.is_failing = False

    def __call__(self, log_offset: int) -> int:
        self.seen.append((log_offset, self.note.read_bytes()))
        if self.is_failing:
            raise Stopped
        return 42


def _fill(store: MessageStore) -> list[int]:
    """Twenty messages in two queues with keys, over several files of each kind; where each lies."""
    return [
        store.append(
            make_message(number, queue_id=number % 2, body_bytes=500, keys=f"all key{number}")
        ).log_offset
        for number in range(30)
    ]


def _assert_cut(store: MessageStore, log_offset: int, kept: int) -> None:
    """Nothing of the messages from ``kept`` on is left anywhere, and all before are there."""
    assert store.log.log_end == log_offset
    assert [*bodies(store, queue_id=0), *bodies(store, queue_id=1)] == numbered(
        *range(0, kept, 2), *range(1, kept, 2)
    )
    found = [bytes(record.body).rstrip(b".") for record in store.find_by_key("TopicA", "all")]
    assert found == numbered(*reversed(range(kept)))
    for segment in store.log.segments:
        behind = max(log_offset - segment.start, 0)
        assert not any(segment.view[behind:])


# The note


def test_the_note_stands_while_the_cut_is_made_and_not_after(tmp_path: Path) -> None:
    cuts = _Cuts(tmp_path)
    assert Truncation(Disk(), tmp_path, cuts).cut(4711) == 42
    assert cuts.seen == [(4711, b"4711\n")]
    assert list(tmp_path.iterdir()) == []


def test_without_a_note_there_is_nothing_to_finish(tmp_path: Path) -> None:
    cuts = _Cuts(tmp_path)
    assert Truncation(Disk(), tmp_path, cuts).resume() is None
    assert cuts.seen == []


def test_a_cut_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    cuts = _Cuts(tmp_path)
    cuts.is_failing = True
    with pytest.raises(Stopped):
        Truncation(Disk(), tmp_path, cuts).cut(4711)
    cuts.is_failing = False
    assert Truncation(Disk(), tmp_path, cuts).resume() == 4711
    assert [log_offset for log_offset, _ in cuts.seen] == [4711, 4711]
    assert Truncation(Disk(), tmp_path, cuts).resume() is None


@pytest.mark.parametrize("text", [b"", b"\n", b"-1", b"12 13", b"twelve", b"\xff\xff"])
def test_a_note_that_says_nothing_is_refused_and_kept(tmp_path: Path, text: bytes) -> None:
    (tmp_path / NOTE_NAME).write_bytes(text)
    cuts = _Cuts(tmp_path)
    with pytest.raises(CorruptRecord, match="no log offset"):
        Truncation(Disk(), tmp_path, cuts).resume()
    assert cuts.seen == []
    assert (tmp_path / NOTE_NAME).read_bytes() == text


def test_a_cut_that_found_no_room_for_its_note_was_never_begun(tmp_path: Path) -> None:
    cuts = _Cuts(tmp_path)
    truncation = Truncation(FailingDisk(stop_at=0), tmp_path, cuts)
    with pytest.raises(Stopped):
        truncation.cut(4711)
    assert not truncation.is_begun
    assert cuts.seen == []
    cuts.is_failing = True
    truncation = Truncation(Disk(), tmp_path, cuts)
    with pytest.raises(Stopped):
        truncation.cut(4711)
    assert truncation.is_begun


# A store is cut


@pytest.mark.behaviour("S2-40")
@pytest.mark.known_bug("RMQ #10666")
def test_cut_messages_never_return_wherever_the_cut_was_interrupted(tmp_path: Path) -> None:
    kept, stop_at = 11, 0
    for stop_at in itertools.count():
        root = tmp_path / str(stop_at)
        with open_store(root) as store:
            log_offset = _fill(store)[kept]
        disk = FailingDisk()
        store = open_store(root, disk=disk)
        disk._stop_at = disk.operation_count + stop_at
        try:
            store.truncate_to(log_offset)
        except Stopped:
            is_done = False
        else:
            is_done = True
        kill(store)
        with open_store(root) as store:
            was_begun = is_done or store.recovery.finished_truncation is not None
            if was_begun or store.log.log_end == log_offset:
                _assert_cut(store, log_offset, kept)
            else:
                # The note was not written yet, so nothing else was touched.
                assert stop_at < 5
                assert len(bodies(store)) == 15
        with open_store(root) as store:
            assert store.recovery.finished_truncation is None
            assert store.recovery.cleared_bytes == 0
        if is_done:
            break
    assert stop_at > 20


@pytest.mark.behaviour("S2-40")
def test_cut_messages_do_not_return_after_a_restart_with_nothing_written(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        log_offset = _fill(store)[11]
        store.dispatch()
        store.truncate_to(log_offset)
    for _ in range(2):
        with open_store(tmp_path) as store:
            _assert_cut(store, log_offset, 11)


@pytest.mark.behaviour("S2-40")
def test_cut_messages_do_not_return_behind_what_was_written_later(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        log_offset = _fill(store)[11]
        store.dispatch()
        store.truncate_to(log_offset)
        store.append(make_message(99, queue_id=5))
        kill(store)
    with open_store(tmp_path) as store:
        assert bodies(store, queue_id=5) == numbered(99)
        assert bodies(store) == numbered(0, 2, 4, 6, 8, 10)
        assert bodies(store, queue_id=1) == numbered(1, 3, 5, 7, 9)


def test_the_cut_store_is_the_one_that_never_had_the_rest(tmp_path: Path) -> None:
    with open_store(tmp_path / "cut") as store:
        log_offset = _fill(store)[11]
        store.dispatch()
        store.truncate_to(log_offset)
    with open_store(tmp_path / "short") as store:
        for number in range(11):
            store.append(make_message(number, queue_id=number % 2, body_bytes=500, keys=f"all key{number}"))
    cut, short = tree(tmp_path / "cut"), tree(tmp_path / "short")
    assert {name: cut[name] for name in cut if not name.startswith(("checkpoint", "index"))} == {
        name: short[name] for name in short if not name.startswith(("checkpoint", "index"))
    }
    assert [cut[name] for name in cut if name.startswith("index")] == [
        short[name] for name in short if name.startswith("index")
    ]


@pytest.mark.known_bug("RMQ #7689")
def test_offsets_go_on_where_the_cut_was(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        log_offset = _fill(store)[11]
        store.truncate_to(log_offset)
        appended = [store.append(make_message(queue_id=queue_id)) for queue_id in (0, 1)]
        assert [at.queue_offset for at in appended] == [6, 5]
        assert appended[0].log_offset == log_offset


def test_a_store_whose_cut_failed_takes_no_writes_until_it_is_finished(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk=disk)
    log_offset = _fill(store)[11]
    store.dispatch()
    store.checkpoint()
    disk._stop_at = disk.operation_count + 6
    with pytest.raises(Stopped):
        store.truncate_to(log_offset)
    # Else a message could be acknowledged that the next start cuts.
    with pytest.raises(NotWritable, match="could not be cut"):
        store.append(make_message())
    kill(store)
    with open_store(tmp_path) as store:
        _assert_cut(store, log_offset, 11)
        store.append(make_message())
