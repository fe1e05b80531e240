from pathlib import Path

import pytest

from tanist.errors import DiskFull, ForeignFile
from tanist.protocol.key_index import HEADER_BYTES, INDEX_ENTRY_BYTES, MAX_SECONDS, SLOT
from tanist.store.disk import Disk
from tanist.store.index_file import IndexFile
from tests.support import golden
from tests.support.failing_disk import FailingDisk

SLOTS, MAX_ENTRIES = 8, 16
SIZE = HEADER_BYTES + SLOTS * 4 + MAX_ENTRIES * 20
START_MS = 1_700_000_000_000
FOREVER = 1 << 62


def _create(tmp_path: Path, disk: Disk | None = None) -> IndexFile:
    return IndexFile.create(disk or Disk(), tmp_path / "index", SLOTS, MAX_ENTRIES)


def _open(tmp_path: Path) -> IndexFile:
    return IndexFile.open(Disk(), tmp_path / "index", SLOTS, MAX_ENTRIES)


def _filled(tmp_path: Path) -> IndexFile:
    """Ten messages at log offsets 100 to 1000, a second apart, with the hashes 0 to 2 in turn."""
    file = _create(tmp_path)
    for number in range(10):
        file.put([(number % 3, (number + 1) * 100, START_MS + number * 1000)])
    return file


def _find(file: IndexFile, hashed: int, begin_ms: int = 0, end_ms: int = FOREVER) -> list[int]:
    return [found for found in file.find(hashed, begin_ms, end_ms) if found is not None]


def test_the_file_is_rocketmqs_to_the_byte(tmp_path: Path) -> None:
    case = golden.load("store_files")["index"]
    file = IndexFile.create(Disk(), tmp_path / "index", case["slots"], case["max_entries"])
    for entry in case["entries"]:
        file.put([(entry["key_hash"], entry["log_offset"], entry["store_timestamp"])])
    file.close()
    expected = bytes.fromhex(case["file"])
    assert (tmp_path / "index").read_bytes()[: len(expected)] == expected


def test_a_new_file_is_sparse_and_empty(tmp_path: Path) -> None:
    file = _create(tmp_path)
    assert (tmp_path / "index").stat().st_size == SIZE
    assert file.room == MAX_ENTRIES - 1
    assert not file.covers(0, FOREVER)
    assert _find(file, 0) == []
    file.close()


def test_what_is_passed_over_is_told_and_a_file_that_was_closed_ends_the_walk(tmp_path: Path) -> None:
    file = _filled(tmp_path)
    before = START_MS + 3000
    assert list(file.find(0, 0, before)) == [None, None, 400, 100]

    walk = file.find(0, 0, FOREVER)
    assert next(walk) == 1000
    file.close()
    assert list(walk) == []


def test_messages_are_found_newest_first(tmp_path: Path) -> None:
    file = _filled(tmp_path)
    assert _find(file, 0) == [1000, 700, 400, 100]
    assert _find(file, 1) == [800, 500, 200]
    assert _find(file, 3) == []
    file.close()


def test_hashes_that_share_a_slot_are_kept_apart(tmp_path: Path) -> None:
    file = _create(tmp_path)
    for number in range(6):
        file.put([(1 + SLOTS * (number % 2), number, START_MS)])
    assert _find(file, 1) == [4, 2, 0]
    assert _find(file, 1 + SLOTS) == [5, 3, 1]
    assert file.header.used_slot_count == 1
    file.close()


def test_a_message_stands_under_all_its_keys(tmp_path: Path) -> None:
    file = _create(tmp_path)
    file.put([(hashed, 777, START_MS) for hashed in (3, 4, 5)])
    assert [_find(file, hashed) for hashed in (3, 4, 5)] == [[777]] * 3
    assert file.room == MAX_ENTRIES - 4
    file.close()


def test_times_are_compared_by_the_second_and_nothing_in_the_range_is_missed(tmp_path: Path) -> None:
    file = _create(tmp_path)
    for number in range(5):
        file.put([(1, number, START_MS + 250 * number)])
    file.put([(1, 5, START_MS + 5000)])
    assert set(_find(file, 1, START_MS + 500, START_MS + 750)) >= {2, 3}
    assert _find(file, 1, START_MS + 2000) == [5]
    assert _find(file, 1, 0, START_MS - 1) == []
    file.close()


@pytest.mark.parametrize(
    ("begin_ms", "end_ms", "is_covered"),
    [(0, -1, False), (0, 0, True), (9000, 9001, True), (10_000, 10_001, False), (-5, 99_999, True)],
)
def test_a_file_covers_the_times_of_its_messages(
    tmp_path: Path, begin_ms: int, end_ms: int, is_covered: bool
) -> None:
    file = _filled(tmp_path)
    assert file.covers(START_MS + begin_ms, START_MS + end_ms) is is_covered
    file.close()


def test_times_before_the_first_message_and_far_behind_it_are_clamped(tmp_path: Path) -> None:
    file = _create(tmp_path)
    file.put([(1, 1, START_MS)])
    file.put([(1, 2, START_MS - 5000)])
    file.put([(1, 3, START_MS + (MAX_SECONDS + 5) * 1000)])
    assert _find(file, 1) == [3, 2, 1]
    file.close()


def test_a_file_opens_with_what_it_held(tmp_path: Path) -> None:
    _filled(tmp_path).close()
    file = _open(tmp_path)
    assert _find(file, 0) == [1000, 700, 400, 100]
    assert (file.header.begin_log_offset, file.header.end_log_offset) == (100, 1000)
    assert file.room == MAX_ENTRIES - 11
    file.close()


@pytest.mark.parametrize("kept", range(11))
def test_a_cut_forgets_and_zeroes_what_is_behind_it(tmp_path: Path, kept: int) -> None:
    file = _filled(tmp_path)
    file.cut((kept + 1) * 100)
    offsets = sorted(log_offset for hashed in range(3) for log_offset in _find(file, hashed))
    assert offsets == [(number + 1) * 100 for number in range(kept)]
    assert file.header.entry_count == kept + 1
    assert file.header.used_slot_count == min(kept, 3)
    entries_end = HEADER_BYTES + SLOTS * 4 + (kept + 1) * 20
    assert not any((tmp_path / "index").read_bytes()[entries_end:])
    file.close()


def test_a_cut_file_is_the_one_that_never_had_the_rest(tmp_path: Path) -> None:
    cut, short = _filled(tmp_path), IndexFile.create(Disk(), tmp_path / "short", SLOTS, MAX_ENTRIES)
    for number in range(4):
        short.put([(number % 3, (number + 1) * 100, START_MS + number * 1000)])
    cut.cut(500)
    for file in (cut, short):
        file.close()
    assert (tmp_path / "index").read_bytes() == (tmp_path / "short").read_bytes()


def test_a_cut_does_not_believe_the_slots(tmp_path: Path) -> None:
    # The machine stopped after a slot had reached the disk and before its entry had.
    file = _filled(tmp_path)
    SLOT.pack_into(file._map, HEADER_BYTES, 14)
    assert _find(file, 0) == []
    file.cut(10_000)
    assert _find(file, 0) == [1000, 700, 400, 100]
    file.close()


def test_a_cut_does_not_believe_entries_that_were_never_written(tmp_path: Path) -> None:
    file = _filled(tmp_path)
    lost = file._entry_position(8)
    file._map[lost : lost + 3 * INDEX_ENTRY_BYTES] = bytes(3 * INDEX_ENTRY_BYTES)
    file.cut(800)
    assert sorted(log_offset for hashed in range(3) for log_offset in _find(file, hashed)) == [
        100, 200, 300, 400, 500, 600, 700,
    ]  # fmt: skip
    file.close()


def test_a_file_without_older_messages_is_behind_an_offset(tmp_path: Path) -> None:
    file = _create(tmp_path)
    assert file.is_behind(10**9)
    file.put([(1, 500, START_MS)])
    assert file.is_behind(500)
    assert not file.is_behind(501)
    file.close()


def test_a_chain_that_runs_in_a_circle_comes_to_an_end(tmp_path: Path) -> None:
    file = _filled(tmp_path)
    SLOT.pack_into(file._map, file._entry_position(1) + 16, 10)
    assert _find(file, 0)[:4] == [1000, 700, 400, 100]
    file.close()


def test_a_file_of_another_size_is_refused_with_the_settings(tmp_path: Path) -> None:
    _filled(tmp_path).close()
    with pytest.raises(ForeignFile, match="maxHashSlotNum and maxIndexNum"):
        IndexFile.open(Disk(), tmp_path / "index", SLOTS, MAX_ENTRIES + 1)


def test_a_file_that_a_crash_left_unfinished_is_finished(tmp_path: Path) -> None:
    (tmp_path / "index").touch()
    file = _open(tmp_path)
    file.put([(1, 500, START_MS)])
    assert _find(file, 1) == [500]
    file.close()


def test_a_header_that_no_file_has_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index").write_bytes(b"\xff" * SIZE)
    with pytest.raises(ForeignFile, match="negative"):
        _open(tmp_path)


def test_a_full_disk_leaves_no_half_made_file(tmp_path: Path) -> None:
    disk = FailingDisk()
    disk.is_full = True
    with pytest.raises(DiskFull):
        _create(tmp_path, disk)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_changes_nothing_in_the_file(tmp_path: Path) -> None:
    disk = FailingDisk()
    file = _create(tmp_path, disk)
    disk.is_full = True
    with pytest.raises(DiskFull):
        file.put([(1, 500, START_MS)])
    assert _find(file, 1) == []
    disk.is_full = False
    file.put([(1, 500, START_MS)])
    assert _find(file, 1) == [500]
    file.close()
