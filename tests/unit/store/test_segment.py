import mmap
import struct
from pathlib import Path
from typing import cast

import pytest

from tanist.errors import DiskFull, ForeignFile
from tanist.protocol.record import MAGIC_V1
from tanist.store.disk import Disk
from tanist.store.segment import WRITE_BYTES, Segment, segment_name, segment_start
from tests.support.failing_disk import FailingDisk

SIZE = 4096


def _create(tmp_path: Path, start: int = 0) -> Segment:
    return Segment.create(Disk(), tmp_path, start, SIZE)


class _Stores:
    """Stands in for the mapping and notes what is stored where, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bytes]] = []

    def __setitem__(self, where: slice, data: bytes) -> None:
        self.seen.append((where.start, data))


def test_a_file_is_named_after_its_first_byte_in_twenty_digits(tmp_path: Path) -> None:
    assert segment_name(1 << 30) == "00000000001073741824"
    assert segment_start(tmp_path / "00000000001073741824") == 1 << 30


@pytest.mark.parametrize(
    "name",
    [
        "0",
        "0000000000000000000",
        "000000000000000000000",
        "0000000000000000000x",
        "0000000000000000000\u0663",
    ],
)
def test_another_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ForeignFile, match="20 digits") as caught:
        segment_start(tmp_path / name)
    assert caught.value.path == tmp_path / name


def test_a_new_segment_has_its_full_size_and_is_all_zeros(tmp_path: Path) -> None:
    segment = _create(tmp_path, 2 * SIZE)
    assert (segment.start, segment.end) == (2 * SIZE, 3 * SIZE)
    assert (tmp_path / segment_name(2 * SIZE)).read_bytes() == bytes(SIZE)
    assert segment.path.stat().st_blocks * 512 >= SIZE
    segment.close()


def test_a_full_disk_leaves_no_half_made_segment(tmp_path: Path) -> None:
    disk = FailingDisk()
    disk.is_full = True
    with pytest.raises(DiskFull):
        Segment.create(disk, tmp_path, 0, SIZE)
    assert list(tmp_path.iterdir()) == []


def test_a_segment_whose_name_can_not_be_made_durable_is_not_left_behind(tmp_path: Path) -> None:
    class NoNames(Disk):
        def sync_dirs(self) -> None:
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        Segment.create(NoNames(), tmp_path, 0, SIZE)
    assert list(tmp_path.iterdir()) == []


def test_what_is_stored_is_in_the_file_and_in_the_view(tmp_path: Path) -> None:
    segment = _create(tmp_path)
    segment.put(100, b"a record")
    segment.put_raw(200, memoryview(b"raw bytes"))
    assert bytes(segment.view[100:108]) == b"a record"
    assert segment.path.read_bytes()[200:209] == b"raw bytes"
    segment.close()


@pytest.mark.parametrize("size_bytes", [WRITE_BYTES - 1, WRITE_BYTES, 3 * WRITE_BYTES])
def test_raw_bytes_of_any_size_are_in_the_file_and_in_the_view(tmp_path: Path, size_bytes: int) -> None:
    segment = Segment.create(Disk(), tmp_path, 0, 4 * WRITE_BYTES)
    data = bytes(range(251)) * (size_bytes // 251 + 1)
    segment.put_raw(17, memoryview(data)[:size_bytes])
    expected = (bytes(17) + data[:size_bytes]).ljust(4 * WRITE_BYTES, b"\0")
    assert bytes(segment.view) == segment.path.read_bytes() == expected
    segment.close()


def test_the_size_of_a_record_is_stored_last(tmp_path: Path) -> None:
    segment = _create(tmp_path)
    mapped, stores = segment.mapped, _Stores()
    segment.mapped = cast("mmap.mmap", stores)
    segment.put(100, b"sizeand all the rest")
    assert stores.seen == [(104, b"and all the rest"), (100, b"size")]
    segment.mapped = mapped
    segment.close()


def test_what_is_too_large_to_be_stored_is_written_and_its_size_stored_last(tmp_path: Path) -> None:
    segment = Segment.create(Disk(), tmp_path, 0, 4 * WRITE_BYTES)
    mapped, stores = segment.mapped, _Stores()
    segment.mapped = cast("mmap.mmap", stores)
    segment.put(100, b"size" + b"x" * WRITE_BYTES)
    assert stores.seen == [(100, b"size")]
    assert bytes(segment.view[100 : 104 + WRITE_BYTES]) == bytes(4) + b"x" * WRITE_BYTES
    segment.mapped = mapped
    segment.close()


def test_a_view_can_not_be_written_to(tmp_path: Path) -> None:
    segment = _create(tmp_path)
    with pytest.raises(TypeError):
        segment.view[0] = 1
    segment.close()


def test_a_reader_keeps_its_view_when_the_segment_is_closed(tmp_path: Path) -> None:
    segment = _create(tmp_path)
    segment.put(0, b"a record")
    held = segment.view[:8]
    segment.close()
    assert bytes(held) == b"a record"


def test_a_pattern_is_found_wherever_it_was_stored(tmp_path: Path) -> None:
    segment = _create(tmp_path)
    segment.put_raw(3000, b"needle")
    assert segment.find(b"needle", 0) == segment.find(b"needle", 3000) == 3000
    assert segment.find(b"needle", 3001) == -1
    segment.close()


def test_a_segment_opens_with_what_it_held(tmp_path: Path) -> None:
    segment = _create(tmp_path)
    segment.put(0, b"\0\0\0\x64" + MAGIC_V1.to_bytes(4, "big", signed=True) + b"rest")
    segment.close()
    again = Segment.open(Disk(), segment.path, SIZE, is_last=False)
    assert again is not None
    assert bytes(again.view[8:12]) == b"rest"
    again.close()


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1, 2 * SIZE])
def test_a_file_of_another_size_is_refused_with_the_setting(tmp_path: Path, size: int) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(b"x" * size)
    with pytest.raises(ForeignFile, match="mappedFileSizeCommitLog") as caught:
        Segment.open(Disk(), path, SIZE, is_last=False)
    assert str(size) in str(caught.value)
    assert path.read_bytes() == b"x" * size


def test_a_last_file_that_a_crash_left_unfinished_is_finished(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.touch()
    segment = Segment.open(Disk(), path, SIZE, is_last=True)
    assert segment is not None
    segment.close()
    assert path.read_bytes() == bytes(SIZE)


def test_a_short_last_file_with_something_in_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(b"x" * 100)
    with pytest.raises(ForeignFile):
        Segment.open(Disk(), path, SIZE, is_last=True)


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(b"Dear diary, ".ljust(SIZE, b"."))
    with pytest.raises(ForeignFile, match="not with a record"):
        Segment.open(Disk(), path, SIZE, is_last=True)


@pytest.mark.parametrize("kept_bytes", range(1, 9))
def test_of_the_last_file_a_crash_may_leave_any_first_bytes(tmp_path: Path, kept_bytes: int) -> None:
    path = tmp_path / segment_name(0)
    begun = struct.pack(">ii", 200, MAGIC_V1)[:kept_bytes]
    path.write_bytes(begun.ljust(SIZE, b"\0"))
    segment = Segment.open(Disk(), path, SIZE, is_last=True)
    assert segment is not None
    segment.close()
    if 4 < kept_bytes < 8:
        with pytest.raises(ForeignFile, match="not with a record"):
            Segment.open(Disk(), path, SIZE, is_last=False)


def test_opening_what_is_refused_leaves_no_open_file(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(b"x" * SIZE)

    def open_files() -> list[Path]:
        return [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]

    with pytest.raises(ForeignFile):
        Segment.open(Disk(), path, SIZE, is_last=True)
    assert path not in open_files()
