import shutil
from pathlib import Path

import pytest

from tanist.errors import ForeignFile
from tanist.store import MessageStore
from tanist.store.deletions import FILE_NAME, Deletions
from tanist.store.disk import Disk
from tanist.store.reader import StoreReader
from tests.support.failing_disk import FailingDisk, Stopped
from tests.support.messages import SMALL, TOPIC, bodies, kill, make_message, numbered, open_store

# Where deletions are kept


def _loaded(root: Path) -> Deletions:
    deletions = Deletions(Disk(), root)
    deletions.load()
    return deletions


def test_a_deletion_is_there_after_a_restart(tmp_path: Path) -> None:
    _loaded(tmp_path).add(["TopicA", "TopicB"], 500)
    again = _loaded(tmp_path)
    assert [again.first_kept(topic, 100) for topic in ("TopicA", "TopicB", "TopicC")] == [500, 500, 100]


def test_of_a_masters_deletions_and_the_own_the_later_ones_count(tmp_path: Path) -> None:
    deletions = _loaded(tmp_path)
    deletions.add(["TopicA", "TopicB"], 500)
    deletions.merge({"TopicB": 400, "TopicC": 700})
    deletions.merge({"TopicA": 600})
    assert _loaded(tmp_path).places == {"TopicA": 600, "TopicB": 500, "TopicC": 700}


def test_a_deletion_behind_a_cut_moves_to_the_cut(tmp_path: Path) -> None:
    deletions = _loaded(tmp_path)
    deletions.add(["TopicA"], 100)
    deletions.add(["TopicB"], 500)
    deletions.cut(300)
    assert [_loaded(tmp_path).first_kept(topic, 0) for topic in ("TopicA", "TopicB")] == [100, 300]


def test_a_deletion_is_forgotten_with_the_last_byte_that_it_hides(tmp_path: Path) -> None:
    deletions = _loaded(tmp_path)
    deletions.add(["TopicA"], 100)
    deletions.add(["TopicB"], 101)
    deletions.raise_start(100)
    assert (tmp_path / FILE_NAME).read_text() == '{\n "TopicB": 101\n}'


def test_no_file_is_written_without_a_deletion(tmp_path: Path) -> None:
    deletions = _loaded(tmp_path)
    deletions.cut(5)
    deletions.raise_start(5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["[]", '{"TopicA": "x"}', "{"])
def test_a_file_that_is_no_table_of_deletions_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ForeignFile, match=FILE_NAME):
        _loaded(tmp_path)


# Deleting in a store


def _fill(store: MessageStore, *numbers: int, topic: str = TOPIC) -> None:
    for number in numbers:
        store.append(make_message(number, topic=topic, keys="key"))
    store.dispatch()


def _bounds(store: MessageStore, topic: str = TOPIC) -> tuple[int, int]:
    queue = store.queues.find(topic, 0)
    assert queue is not None
    return queue.min_offset, queue.max_offset


def test_a_deleted_topic_is_empty_and_its_offsets_go_on(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        _fill(store, 0, 1, 2)
        _fill(store, 3, topic="Other")
        store.delete_topics([TOPIC])
        assert bodies(store) == []
        assert _bounds(store) == (3, 3)
        assert bodies(store, "Other") == numbered(3)
        _fill(store, 4)
        assert bodies(store) == numbered(4)
        assert _bounds(store) == (3, 4)


def test_what_was_sent_but_not_indexed_yet_is_deleted_too(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.append(make_message(0))
        store.delete_topics([TOPIC])
        assert _bounds(store) == (1, 1)


def test_deleted_messages_are_not_found_by_key(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        _fill(store, 0, 1)
        store.delete_topics([TOPIC])
        assert store.find_by_key(TOPIC, "key") == []
        _fill(store, 2)
        assert [bytes(record.body) for record in store.find_by_key(TOPIC, "key")] == numbered(2)


@pytest.mark.parametrize("is_clean_stop", [True, False])
def test_a_restart_brings_no_deleted_message_back(tmp_path: Path, is_clean_stop: bool) -> None:
    store = open_store(tmp_path)
    _fill(store, 0, 1, 2)
    store.delete_topics([TOPIC])
    _fill(store, 3)
    store.close() if is_clean_stop else kill(store)
    with open_store(tmp_path) as store:
        assert bodies(store) == numbered(3)
        assert _bounds(store) == (3, 4)


def test_building_the_indexes_again_brings_no_deleted_message_back(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        # More than one file of the queue.
        _fill(store, *range(25))
        store.delete_topics([TOPIC])
        _fill(store, 25, 26)
    for folder in ("consumequeue", "index"):
        shutil.rmtree(tmp_path / folder)
    with open_store(tmp_path) as store:
        assert bodies(store) == numbered(25, 26)
        assert _bounds(store) == (25, 27)
        assert len(store.find_by_key(TOPIC, "key")) == 2


def test_messages_that_take_the_place_of_cut_ones_are_not_deleted(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        _fill(store, 0)
        cut_at = store.log.log_end
        _fill(store, 1, 2)
        store.delete_topics([TOPIC])
        store.truncate_to(cut_at)
        assert bodies(store) == []
        _fill(store, 3)
        assert bodies(store) == numbered(3)
        assert _bounds(store) == (1, 2)


def test_the_queues_of_a_topic_go_once_the_log_has_nothing_of_it(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        _fill(store, 0)
        store.delete_topics([TOPIC])
        assert store.remove_expired_queues([TOPIC]) == 0
        for number in range(1, 9):
            store.append(make_message(number, topic="Other", body_bytes=1000))
        store.dispatch()
        store.flush()
        store.log.segments.discard(gone := [store.log.take_first_segment()])
        store.finish_clean(gone)
        assert (tmp_path / FILE_NAME).read_text() == "{}"
        assert store.remove_expired_queues([TOPIC]) == 1
        assert not (tmp_path / "consumequeue" / TOPIC).exists()
        _fill(store, 9)
        assert _bounds(store) == (0, 1)
        assert store.remove_expired_queues([TOPIC]) == 0


def test_a_deletion_that_the_disk_refuses_deletes_nothing(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, SMALL, disk=disk)
    _fill(store, 0)
    disk._stop_at = disk.operation_count
    with pytest.raises(Stopped):
        store.delete_topics([TOPIC])
    assert bodies(store) == numbered(0)
    kill(store)


def test_a_look_from_outside_sees_no_deleted_message(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        _fill(store, 0, 1)
        store.delete_topics([TOPIC])
        _fill(store, 2)
    with StoreReader(tmp_path) as reader:
        assert [bytes(record.body) for record in reader.queue_records(TOPIC, 0)] == numbered(2)


def test_who_asks_for_deleted_messages_too_finds_them_while_the_log_has_them(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.append(make_message(1, keys="key"))
        store.delete_topics([TOPIC])
        assert store.find_by_key(TOPIC, "key") == []
        assert len(store.find_by_key(TOPIC, "key", has_deleted=True)) == 1
