from pathlib import Path

import pytest

from tanist.errors import DiskFull, ForeignFile
from tanist.store.disk import Disk
from tanist.store.key_index import KeyIndex
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk

START_MS = 1_700_000_000_000
FOREVER = 1 << 62


def _open(
    tmp_path: Path, *, max_entries: int = 5, clock: FakeClock | None = None, disk: Disk | None = None
) -> KeyIndex:
    index = KeyIndex(
        disk or Disk(), tmp_path / "index", slot_count=4, max_entries=max_entries, clock=clock or FakeClock()
    )
    index.open()
    return index


def _filled(tmp_path: Path, count: int = 10) -> KeyIndex:
    """Messages at log offsets 100, 200, ... a second apart: four to a file, all with one key."""
    index = _open(tmp_path)
    for number in range(1, count + 1):
        index.put("TopicA", ["key"], number * 100, START_MS + number * 1000)
        index.write()
    return index


def _find(index: KeyIndex, key: str = "key", begin_ms: int = 0, end_ms: int = FOREVER) -> list[int]:
    return [found for found in index.find("TopicA", key, begin_ms, end_ms) if found is not None]


def _names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "index").iterdir())


def test_an_index_without_keys_has_no_file(tmp_path: Path) -> None:
    index = _open(tmp_path)
    index.put("TopicA", [], 100, START_MS)
    index.write()
    assert index.indexed_to == -1
    assert _find(index) == []
    assert not (tmp_path / "index").exists()


def test_a_message_is_found_under_each_of_its_keys_and_its_topic(tmp_path: Path) -> None:
    index = _open(tmp_path)
    index.put("TopicA", ["id", "order", "customer"], 100, START_MS)
    index.write()
    assert [_find(index, key) for key in ("id", "order", "customer", "other")] == [[100], [100], [100], []]
    assert not any(index.find("TopicB", "id", 0, FOREVER))
    index.close()


def test_messages_are_found_newest_first_across_files(tmp_path: Path) -> None:
    index = _filled(tmp_path)
    assert len(_names(tmp_path)) == 3
    assert _find(index) == list(range(1000, 0, -100))
    assert index.indexed_to == 1000
    index.close()


def test_keys_with_one_hash_are_both_candidates(tmp_path: Path) -> None:
    # Java's best known collision. Whoever asks reads the messages and compares.
    index = _open(tmp_path)
    index.put("TopicA", ["Aa"], 100, START_MS)
    index.write()
    index.put("TopicA", ["BB"], 200, START_MS)
    index.write()
    assert _find(index, "Aa") == _find(index, "BB") == [200, 100]
    index.close()


def test_a_message_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    index = _filled(tmp_path, 6)
    for number in range(1, 8):
        index.put("TopicA", ["key"], number * 100, START_MS)
        index.write()
    assert _find(index) == [700, 600, 500, 400, 300, 200, 100]
    index.close()


def test_only_files_of_the_time_are_searched(tmp_path: Path) -> None:
    index = _filled(tmp_path)
    assert _find(index, begin_ms=START_MS + 5000, end_ms=START_MS + 6000) == [600, 500]
    assert _find(index, begin_ms=START_MS + 11_000) == []
    index.close()


def test_the_keys_of_one_message_stay_in_one_file(tmp_path: Path) -> None:
    index = _filled(tmp_path, 3)
    index.put("TopicA", ["a", "b"], 400, START_MS)
    index.write()
    assert len(_names(tmp_path)) == 2
    assert _find(index, "a") == _find(index, "b") == [400]
    index.close()


def test_more_keys_than_a_file_holds_are_cut_off(tmp_path: Path) -> None:
    index = _open(tmp_path)
    index.put("TopicA", list("abcdefgh"), 100, START_MS)
    index.write()
    assert [len(_find(index, key)) for key in "abcdefgh"] == [1, 1, 1, 1, 0, 0, 0, 0]
    index.close()


def test_a_file_is_named_after_the_time_and_no_name_comes_twice(tmp_path: Path) -> None:
    index = _filled(tmp_path)
    names = _names(tmp_path)
    assert all(len(name) == 17 and name.isdigit() for name in names)
    assert [int(name) for name in names] == list(range(int(names[0]), int(names[0]) + 3))
    index.close()


def test_a_clock_that_was_set_back_does_not_disturb_the_order_of_the_files(tmp_path: Path) -> None:
    clock = FakeClock()
    index = _open(tmp_path, clock=clock)
    for number in range(10):
        index.put("TopicA", ["key"], number, START_MS)
        index.write()
        clock.set_now_ms(clock.now_ms() - 60_000)
    index.close()
    again = _open(tmp_path)
    assert _find(again) == list(range(9, -1, -1))
    again.close()


def test_an_index_opens_with_what_it_held(tmp_path: Path) -> None:
    _filled(tmp_path).close()
    index = _open(tmp_path)
    assert _find(index) == list(range(1000, 0, -100))
    index.put("TopicA", ["key"], 1100, START_MS + 11_000)
    index.write()
    assert index.indexed_to == 1100
    index.close()


@pytest.mark.parametrize("kept", range(11))
def test_a_cut_forgets_what_is_behind_it_in_every_file(tmp_path: Path, kept: int) -> None:
    index = _filled(tmp_path)
    index.cut((kept + 1) * 100)
    assert _find(index) == list(range(kept * 100, 0, -100))
    assert index.indexed_to == (kept * 100 or -1)
    assert len(_names(tmp_path)) == -(-kept // 4)
    index.put("TopicA", ["key"], 5000, START_MS)
    index.write()
    assert _find(index)[0] == 5000
    index.close()


def test_after_a_crash_a_file_whose_header_was_lost_does_not_hide_the_one_before_it(tmp_path: Path) -> None:
    _filled(tmp_path, 6).close()
    path = tmp_path / "index" / _names(tmp_path)[1]
    path.write_bytes(bytes(path.stat().st_size))
    index = _open(tmp_path)
    index.cut(300, is_whole=False)
    assert _find(index) == [200, 100]
    assert len(_names(tmp_path)) == 1
    index.close()


def test_after_a_crash_the_slots_are_built_again_even_if_nothing_is_cut(tmp_path: Path) -> None:
    _filled(tmp_path, 3).close()
    path = tmp_path / "index" / _names(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[40:56] = (4).to_bytes(4, "big") * 4
    path.write_bytes(data)
    index = _open(tmp_path)
    index.cut(1000, is_whole=False)
    assert _find(index) == [300, 200, 100]
    index.close()


def test_files_of_deleted_messages_go_but_never_the_last(tmp_path: Path) -> None:
    index = _filled(tmp_path)
    index.raise_min(400)
    assert len(_names(tmp_path)) == 3
    index.raise_min(401)
    assert len(_names(tmp_path)) == 2
    index.raise_min(10**9)
    assert len(_names(tmp_path)) == 1
    index.close()


def test_written_files_are_known_until_they_are_taken(tmp_path: Path) -> None:
    index = _filled(tmp_path, 5)
    assert [path.name for path in index.take_dirty()] == _names(tmp_path)
    assert index.take_dirty() == []
    index.cut(200)
    assert [path.name for path in index.take_dirty()] == _names(tmp_path)
    index.close()


def test_only_full_files_count_for_the_time_that_the_checkpoint_keeps(tmp_path: Path) -> None:
    index = _filled(tmp_path, 4)
    assert index.full_to_ms == 0
    index.put("TopicA", ["key"], 500, START_MS + 5000)
    index.write()
    assert index.full_to_ms == START_MS + 4000
    index.close()


@pytest.mark.parametrize("name", ["notes.txt", "2023", "202311142213200000", "2023111422132000x"])
def test_a_foreign_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / name).touch()
    with pytest.raises(ForeignFile, match="17 digits"):
        _open(tmp_path)


def test_keys_are_found_before_they_are_written_to_a_file(tmp_path: Path) -> None:
    index = _open(tmp_path)
    index.put("TopicA", ["key"], 100, START_MS)
    assert (index.indexed_to, index.indexed_to_ms) == (100, START_MS)
    index.write_many()
    assert not (tmp_path / "index").exists()
    assert _find(index) == [100]
    index.close()


def test_what_is_put_again_is_there_once(tmp_path: Path) -> None:
    index = _open(tmp_path)
    for _ in range(2):
        for log_offset in (100, 200, 300):
            index.put("TopicA", ["key"], log_offset, START_MS)
    assert _find(index) == [300, 200, 100]
    index.close()


def test_a_cut_takes_what_was_not_written_yet(tmp_path: Path) -> None:
    index = _open(tmp_path)
    for log_offset in (100, 200, 300):
        index.put("TopicA", ["key"], log_offset, START_MS)
    index.cut(200)
    assert (index.indexed_to, _find(index)) == (100, [100])
    index.close()


def test_what_a_full_disk_refuses_is_written_later(tmp_path: Path) -> None:
    disk = FailingDisk()
    index = _open(tmp_path, disk=disk)
    index.put("TopicA", ["key"], 100, START_MS)
    disk.is_full = True
    with pytest.raises(DiskFull):
        index.write()
    assert _find(index) == []
    disk.is_full = False
    assert _find(index) == [100]
    index.close()
