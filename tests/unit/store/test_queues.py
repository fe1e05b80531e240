from pathlib import Path

import pytest

from tanist.errors import LocalProtocolError
from tanist.protocol.queue_entry import encode_entry
from tanist.store.deletions import Deletions
from tanist.store.disk import Disk
from tanist.store.queues import Queues, check_topic_name


def _open(tmp_path: Path) -> Queues:
    queues = Queues(Disk(), tmp_path, 200, Deletions(Disk(), tmp_path))
    queues.open()
    return queues


def _append(queues: Queues, topic: str, queue_id: int, queue_offset: int, log_offset: int) -> None:
    queues.append(topic, queue_id, queue_offset, encode_entry(log_offset, 100, 0), log_offset + 100)
    queues.write()


def test_a_queue_is_made_when_its_first_entry_comes(tmp_path: Path) -> None:
    queues = _open(tmp_path)
    assert queues.find("TopicA", 3) is None
    _append(queues, "TopicA", 3, 0, 0)
    queue = queues.find("TopicA", 3)
    assert queue is not None
    assert queue.max_offset == 1
    assert (tmp_path / "TopicA" / "3").is_dir()
    queues.close()


def test_all_queues_open_again(tmp_path: Path) -> None:
    queues = _open(tmp_path)
    _append(queues, "TopicA", 0, 0, 0)
    _append(queues, "TopicA", 11, 0, 100)
    _append(queues, "%RETRY%group", 0, 5, 200)
    queues.close()
    again = _open(tmp_path)
    assert again.next_offsets() == {("TopicA", 0): 1, ("TopicA", 11): 1, ("%RETRY%group", 0): 6}
    assert again.indexed_to == 300
    assert len(again) == 3
    again.close()


def test_what_is_no_queue_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "TopicA" / "backup").mkdir(parents=True)
    (tmp_path / "TopicA" / "notes.txt").touch()
    (tmp_path / "notes.txt").touch()
    assert len(_open(tmp_path)) == 0


def test_without_queues_nothing_is_indexed(tmp_path: Path) -> None:
    assert _open(tmp_path).indexed_to == 0


def test_a_cut_and_a_deletion_reach_every_queue(tmp_path: Path) -> None:
    queues = _open(tmp_path)
    for number in range(6):
        _append(queues, "TopicA", number % 2, number // 2, number * 100)
    queues.cut(400)
    assert queues.next_offsets() == {("TopicA", 0): 2, ("TopicA", 1): 2}
    queues.raise_min(100)
    assert {key: queue.min_offset for key, queue in queues} == {("TopicA", 0): 1, ("TopicA", 1): 0}
    queues.close()


def test_the_files_written_by_any_queue_are_known_until_they_are_taken(tmp_path: Path) -> None:
    queues = _open(tmp_path)
    _append(queues, "TopicA", 0, 0, 0)
    _append(queues, "TopicB", 0, 0, 100)
    assert sorted(path.parent.parent.name for path in queues.take_dirty()) == ["TopicA", "TopicB"]
    assert queues.take_dirty() == []
    queues.cut(100)
    assert [path.parent.parent.name for path in queues.take_dirty()] == ["TopicB"]
    queues.close()


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../a", "/a", "a\0b", "t" * 256, "\u00e9" * 128])
def test_what_can_not_name_a_folder_is_no_topic(tmp_path: Path, topic: str) -> None:
    with pytest.raises(LocalProtocolError):
        check_topic_name(topic)
    queues = _open(tmp_path / "queues")
    with pytest.raises(LocalProtocolError):
        _append(queues, topic, 0, 0, 0)
    assert len(queues) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("topic", ["a", "%DLQ%group", "a.b", "...", "t" * 255, "\u00e9" * 127])
def test_other_names_are_taken(topic: str) -> None:
    check_topic_name(topic)
