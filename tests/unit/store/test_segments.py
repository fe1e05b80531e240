from pathlib import Path

import pytest

from tanist.errors import DiskFull, ForeignFile, OffsetOutOfRange
from tanist.store.disk import Disk
from tanist.store.segment import segment_name
from tanist.store.segments import Segments
from tests.support.failing_disk import FailingDisk

SIZE = 4096


class _NamesSeen(Disk):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def remove(self, path: Path) -> None:
        self.seen.append(path.name)
        super().remove(path)

    def sync_dirs(self) -> None:
        self.seen.append("sync")
        super().sync_dirs()


def _segments(tmp_path: Path, *starts: int, disk: Disk | None = None) -> Segments:
    segments = Segments(disk or Disk(), tmp_path, SIZE)
    segments.open()
    for start in starts:
        segments.add(start)
    return segments


def _make_files(tmp_path: Path, *starts: int) -> None:
    for start in starts:
        (tmp_path / segment_name(start)).write_bytes(bytes(SIZE))


def _names(tmp_path: Path) -> list[int]:
    return sorted(int(path.name) for path in tmp_path.iterdir())


def test_an_empty_folder_is_an_empty_log(tmp_path: Path) -> None:
    segments = _segments(tmp_path / "new")
    assert (len(segments), segments.start, segments.end) == (0, 0, 0)
    assert (tmp_path / "new").is_dir()


def test_files_open_in_order(tmp_path: Path) -> None:
    _make_files(tmp_path, 3 * SIZE, SIZE, 2 * SIZE)
    segments = _segments(tmp_path)
    assert [segment.start for segment in segments] == [SIZE, 2 * SIZE, 3 * SIZE]
    assert (segments.start, segments.end) == (SIZE, 4 * SIZE)
    segments.close()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    _make_files(tmp_path, 0, SIZE, 3 * SIZE)
    with pytest.raises(ForeignFile, match=f"{segment_name(2 * SIZE)} is missing"):
        _segments(tmp_path)


def test_a_foreign_name_is_refused(tmp_path: Path) -> None:
    _make_files(tmp_path, 0)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ForeignFile, match=r"notes\.txt"):
        _segments(tmp_path)


def test_a_name_that_is_no_multiple_of_the_size_is_refused(tmp_path: Path) -> None:
    _make_files(tmp_path, 1000)
    with pytest.raises(ForeignFile, match="mappedFileSizeCommitLog"):
        _segments(tmp_path)


def test_a_folder_inside_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    assert len(_segments(tmp_path)) == 0


def test_a_byte_is_in_the_segment_around_it(tmp_path: Path) -> None:
    _make_files(tmp_path, SIZE, 2 * SIZE)
    segments = _segments(tmp_path)
    assert [segments.at(offset).start for offset in (SIZE, 2 * SIZE - 1, 2 * SIZE)] == [SIZE, SIZE, 2 * SIZE]
    for outside in (SIZE - 1, 3 * SIZE, -1):
        with pytest.raises(OffsetOutOfRange):
            segments.at(outside)
    segments.close()


def test_a_range_touches_the_segments_that_hold_a_byte_of_it(tmp_path: Path) -> None:
    segments = _segments(tmp_path, 0, SIZE, 2 * SIZE)

    def touched(start: int, end: int) -> list[int]:
        return [segment.start // SIZE for segment in segments.between(start, end)]

    assert touched(0, 3 * SIZE) == [0, 1, 2]
    assert touched(SIZE - 1, SIZE) == [0]
    assert touched(SIZE, SIZE + 1) == [1]
    assert touched(SIZE, SIZE) == touched(SIZE + 1, SIZE + 1) == []
    segments.close()


def test_the_next_segment_is_taken_from_the_one_prepared(tmp_path: Path) -> None:
    disk = FailingDisk()
    segments = _segments(tmp_path, 0, disk=disk)
    segments.prepare()
    segments.prepare()
    disk.is_full = True
    assert segments.add(SIZE).start == SIZE
    assert (len(segments), segments.end) == (2, 2 * SIZE)
    with pytest.raises(DiskFull):
        segments.prepare()
    segments.close()


def test_nothing_is_prepared_for_an_empty_log(tmp_path: Path) -> None:
    segments = _segments(tmp_path)
    segments.prepare()
    assert _names(tmp_path) == []


def test_a_prepared_segment_that_was_not_used_is_deleted_at_the_end(tmp_path: Path) -> None:
    segments = _segments(tmp_path, 0)
    segments.prepare()
    assert _names(tmp_path) == [0, SIZE]
    segments.close()
    assert _names(tmp_path) == [0]


def test_a_prepared_segment_goes_when_the_log_is_cut(tmp_path: Path) -> None:
    segments = _segments(tmp_path, 0, SIZE)
    segments.prepare()
    segments.drop_from(SIZE)
    assert _names(tmp_path) == [0]
    assert segments.add(SIZE).start == SIZE
    segments.close()


def test_files_are_dropped_newest_first_and_each_for_good(tmp_path: Path) -> None:
    disk = _NamesSeen()
    segments = _segments(tmp_path, 0, SIZE, 2 * SIZE, disk=disk)
    segments.prepare()
    disk.seen.clear()
    segments.drop_from(1)
    names = [segment_name(start) for start in (3 * SIZE, 2 * SIZE, SIZE)]
    assert [name for name in disk.seen if name != "sync"] == names
    assert all(disk.seen[disk.seen.index(name) + 1] == "sync" for name in names)
    assert segments.end == SIZE
    segments.close()


def test_the_oldest_file_is_dropped_for_good(tmp_path: Path) -> None:
    disk = _NamesSeen()
    segments = _segments(tmp_path, 0, SIZE, disk=disk)
    segments.discard([segments.take_first()])
    assert disk.seen[-2:] == [segment_name(0), "sync"]
    assert (segments.start, len(segments)) == (SIZE, 1)
    with pytest.raises(OffsetOutOfRange):
        segments.at(0)
    segments.close()
