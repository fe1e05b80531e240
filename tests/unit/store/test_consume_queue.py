import errno
import os
from pathlib import Path

import pytest

from tanist.errors import CorruptRecord, DiskFull, ForeignFile, OffsetOutOfRange
from tanist.protocol.queue_entry import ENTRY_BYTES, FILLER, QueueEntry, encode_entry
from tanist.store.consume_queue import ConsumeQueue
from tanist.store.disk import Disk
from tanist.store.open_files import OpenFiles
from tanist.store.segment import segment_name
from tests.support import golden

PER_FILE = 4
FILE_BYTES = PER_FILE * ENTRY_BYTES
RECORD_BYTES = 100


def _open(tmp_path: Path, *, was_closed: bool = True) -> ConsumeQueue:
    queue = ConsumeQueue(OpenFiles(Disk()), tmp_path / "queue", FILE_BYTES)
    queue.open(was_closed=was_closed)
    return queue


def _entry(number: int) -> bytes:
    return encode_entry(number * RECORD_BYTES, RECORD_BYTES, number)


def _append(queue: ConsumeQueue, *numbers: int) -> None:
    """Append entries of messages that lie at ``number * RECORD_BYTES``, as one run."""
    end = (numbers[-1] + 1) * RECORD_BYTES
    queue.append(numbers[0], b"".join(_entry(number) for number in numbers), end)
    queue.write()


def _filled(tmp_path: Path, count: int) -> ConsumeQueue:
    queue = _open(tmp_path)
    _append(queue, *range(count))
    return queue


def _found(queue: ConsumeQueue) -> list[int]:
    """The numbers of the messages that the queue points at."""
    return [entry.tags_code for entry in queue.entries(queue.min_offset, 1000)]


def _names(tmp_path: Path) -> list[int]:
    return sorted(int(path.name) for path in (tmp_path / "queue").iterdir())


def _content(tmp_path: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((tmp_path / "queue").iterdir()))


def test_a_new_queue_is_empty_and_has_no_file(tmp_path: Path) -> None:
    queue = _open(tmp_path)
    assert (queue.min_offset, queue.max_offset, queue.indexed_to) == (0, 0, 0)
    assert queue.entries(0, 10) == []
    assert not (tmp_path / "queue").exists()


def test_entry_k_lies_at_byte_twenty_k(tmp_path: Path) -> None:
    _filled(tmp_path, 6)
    assert _names(tmp_path) == [0, FILE_BYTES]
    assert _content(tmp_path) == b"".join(map(_entry, range(6))).ljust(2 * FILE_BYTES, b"\0")


def test_entries_are_read_across_files(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 10)
    assert [entry.tags_code for entry in queue.entries(2, 5)] == [2, 3, 4, 5, 6]
    assert [entry.tags_code for entry in queue.entries(8, 5)] == [8, 9]
    assert queue.entries(10, 5) == []
    assert queue.entry(7) == QueueEntry(700, 100, 7)
    assert [offset for offset, _ in queue.walk(3)] == list(range(3, 10))


def test_packed_entries_are_the_same_wherever_they_lie(tmp_path: Path) -> None:
    queue = _open(tmp_path)
    assert queue.packed(0, 5) == b""
    _append(queue, *range(10))
    queue.append(10, b"".join(map(_entry, range(10, 12))), 12 * RECORD_BYTES)  # These have no file yet.
    for start in range(13):
        for count in range(13):
            assert queue.packed(start, count) == b"".join(map(_entry, range(start, min(start + count, 12))))


def test_packed_entries_that_were_cut_are_not_given_again(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 4)
    assert queue.packed(0, 2) == _entry(0) + _entry(1)
    queue.cut(RECORD_BYTES)
    assert queue.packed(0, 4) == _entry(0)
    fresh = encode_entry(RECORD_BYTES, 7, 7777)
    queue.append(1, fresh * 3, 4 * RECORD_BYTES)
    queue.write()
    assert queue.packed(1, 2) == fresh * 2


def test_packed_entries_of_files_that_were_dropped_are_not_given_again(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 4)
    assert queue.packed(0, 1) == _entry(0)
    queue.raise_min(4 * RECORD_BYTES)
    fresh = encode_entry(9 * RECORD_BYTES, 7, 7777)
    queue.append(1, fresh, 10 * RECORD_BYTES)
    queue.write()
    assert queue.packed(1, 1) == fresh


@pytest.mark.parametrize("queue_offset", [-1, 11])
def test_reading_outside_the_queue_is_refused(tmp_path: Path, queue_offset: int) -> None:
    with pytest.raises(OffsetOutOfRange, match="queue offset"):
        _filled(tmp_path, 10).entries(queue_offset, 1)


def test_entries_that_are_there_already_are_left_alone(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 5)
    _append(queue, 0, 1, 2)
    assert (queue.max_offset, queue.indexed_to) == (5, 500)
    queue.append(3, encode_entry(7777, 1, 7777) * 2 + _entry(5), 600)
    assert _found(queue) == [0, 1, 2, 3, 4, 5]


def test_a_queue_opens_where_it_ended(tmp_path: Path) -> None:
    for count in range(1, 13):
        queue = _open(tmp_path)
        _append(queue, count - 1)
        again = _open(tmp_path)
        assert (again.max_offset, again.indexed_to) == (count, count * RECORD_BYTES)


# Queues that begin late, and gaps


def test_a_queue_that_begins_late_has_fillers_before_its_first_message(tmp_path: Path) -> None:
    queue = _open(tmp_path)
    _append(queue, 6, 7)
    assert _names(tmp_path) == [FILE_BYTES]
    assert _content(tmp_path) == FILLER * 2 + _entry(6) + _entry(7)
    assert (queue.min_offset, queue.max_offset) == (6, 8)
    with pytest.raises(OffsetOutOfRange):
        queue.entries(5, 1)


def test_the_fillers_are_rocketmqs(tmp_path: Path) -> None:
    case = golden.load("store_files")["consume_queue_starting_late"]
    raw = bytes.fromhex(case["file"])
    queue = ConsumeQueue(OpenFiles(Disk()), tmp_path / "queue", len(raw))
    entry = encode_entry(case["log_offset"], case["stored_bytes"], case["tags_code"])
    queue.append(case["first_queue_offset"], entry, case["log_offset"] + case["stored_bytes"])
    queue.write()
    assert _content(tmp_path) == raw


def test_fillers_are_not_counted_when_a_late_queue_opens(tmp_path: Path) -> None:
    _append(_open(tmp_path), 6, 7)
    queue = _open(tmp_path)
    queue.raise_min(0)
    assert (queue.min_offset, queue.max_offset, queue.indexed_to) == (6, 8, 800)


def test_a_late_queue_that_begins_a_file_needs_no_filler(tmp_path: Path) -> None:
    _append(_open(tmp_path), 8)
    assert _content(tmp_path) == _entry(8).ljust(FILE_BYTES, b"\0")


def test_an_empty_queue_goes_on_wherever_the_log_does(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 3)
    queue.cut(0)
    _append(queue, 1001, 1002)
    assert (queue.min_offset, queue.max_offset) == (1001, 1003)
    assert _names(tmp_path) == [250 * FILE_BYTES]


def test_a_gap_keeps_the_messages_on_both_sides_in_reach(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 2)
    _append(queue, 5, 6)
    entries = queue.entries(0, 100)
    assert [entry.is_filler for entry in entries] == [False, False, True, True, True, False, False]
    again = _open(tmp_path)
    again.raise_min(0)
    assert (again.min_offset, again.max_offset) == (0, 7)


@pytest.mark.parametrize("cut_at", range(8))
def test_no_cut_is_deceived_by_a_gap(tmp_path: Path, cut_at: int) -> None:
    queue = _filled(tmp_path, 2)
    _append(queue, 5, 6)
    queue.cut(cut_at * RECORD_BYTES)
    kept = [entry.tags_code for entry in queue.entries(0, 100) if not entry.is_filler]
    assert kept == [number for number in (0, 1, 5, 6) if number < cut_at]


@pytest.mark.parametrize("log_start", range(8))
def test_no_deletion_is_deceived_by_a_gap(tmp_path: Path, log_start: int) -> None:
    queue = _filled(tmp_path, 2)
    _append(queue, 5, 6)
    queue.raise_min(log_start * RECORD_BYTES)
    kept = [entry.tags_code for entry in queue.entries(queue.min_offset, 100) if not entry.is_filler]
    assert kept == [number for number in (0, 1, 5, 6) if number >= log_start]


def test_a_gap_wider_than_a_file_is_refused(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 2)
    with pytest.raises(CorruptRecord, match="queue offset 7"):
        _append(queue, 7)


# Cutting


@pytest.mark.parametrize("kept", range(11))
def test_a_cut_forgets_and_zeroes_the_entries_behind_it(tmp_path: Path, kept: int) -> None:
    queue = _filled(tmp_path, 10)
    queue.cut(kept * RECORD_BYTES)
    assert (queue.max_offset, queue.indexed_to) == (kept, kept * RECORD_BYTES)
    content = _content(tmp_path)
    assert content == b"".join(map(_entry, range(kept))).ljust(len(content), b"\0")
    assert len(content) == FILE_BYTES * max(1, -(-kept // PER_FILE))
    assert _open(tmp_path).max_offset == kept


def test_a_cut_between_two_messages_counts_the_byte_where_each_begins(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 10)
    queue.cut(3 * RECORD_BYTES + 1)
    assert queue.max_offset == 4


def test_a_queue_goes_on_behind_a_cut(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 10)
    queue.cut(5 * RECORD_BYTES)
    queue.append(5, encode_entry(9999, 1, -1), 10_000)
    queue.write()
    assert _found(_open(tmp_path)) == [0, 1, 2, 3, 4, -1]


def test_a_cut_is_not_deceived_by_a_torn_entry_behind_it(tmp_path: Path) -> None:
    # An entry lies across two sectors of which only the second was written: its log offset is lost.
    for torn in range(4, 8):
        root = tmp_path / str(torn)
        queue = ConsumeQueue(OpenFiles(Disk()), root / "queue", 16 * ENTRY_BYTES)
        queue.open()
        _append(queue, *range(12))
        path = root / "queue" / segment_name(0)
        data = bytearray(path.read_bytes())
        data[2 * ENTRY_BYTES : torn * ENTRY_BYTES + 8] = bytes((torn - 2) * ENTRY_BYTES + 8)
        path.write_bytes(data)
        queue.cut(2 * RECORD_BYTES)
        assert queue.max_offset == 2
        assert not any(path.read_bytes()[2 * ENTRY_BYTES :])


def test_the_last_message_before_an_offset_is_found(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 10)
    assert queue.last_before(0) is None
    assert queue.last_before(1) == 0
    assert queue.last_before(500) == 4
    assert queue.last_before(501) == 5
    assert queue.last_before(10**9) == 9


# Deleting


@pytest.mark.parametrize("log_start", range(11))
def test_messages_that_the_log_deleted_are_forgotten(tmp_path: Path, log_start: int) -> None:
    queue = _filled(tmp_path, 10)
    queue.raise_min(log_start * RECORD_BYTES)
    assert (queue.min_offset, queue.max_offset) == (log_start, 10)
    assert _names(tmp_path)[0] == min(log_start // PER_FILE, 2) * FILE_BYTES


def test_the_last_file_stays_so_that_the_next_offset_is_known(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 8)
    queue.raise_min(10**9)
    assert _names(tmp_path) == [FILE_BYTES]
    again = _open(tmp_path)
    again.raise_min(10**9)
    assert (again.min_offset, again.max_offset) == (8, 8)


# Files as they are found


def test_written_files_are_known_until_they_are_taken(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 5)
    assert sorted(int(path.name) for path in queue.take_dirty()) == [0, FILE_BYTES]
    assert queue.take_dirty() == []
    _append(queue, 5)
    assert [int(path.name) for path in queue.take_dirty()] == [FILE_BYTES]
    queue.cut(200)
    assert [int(path.name) for path in queue.take_dirty()] == [0]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    _filled(tmp_path, 10)
    (tmp_path / "queue" / segment_name(FILE_BYTES)).unlink()
    with pytest.raises(ForeignFile, match="does not follow"):
        _open(tmp_path)


def test_a_file_missing_after_a_crash_takes_those_behind_it_along(tmp_path: Path) -> None:
    _filled(tmp_path, 10)
    (tmp_path / "queue" / segment_name(FILE_BYTES)).unlink()
    queue = _open(tmp_path, was_closed=False)
    assert queue.max_offset == 4
    queue.cut(300)
    assert _names(tmp_path) == [0]


@pytest.mark.parametrize("size", [FILE_BYTES - 1, FILE_BYTES + 1])
def test_a_file_of_another_size_is_refused_with_the_setting(tmp_path: Path, size: int) -> None:
    _filled(tmp_path, 2)
    path = tmp_path / "queue" / segment_name(0)
    path.write_bytes(path.read_bytes()[:size].ljust(size, b"\0"))
    with pytest.raises(ForeignFile, match="mappedFileSizeConsumeQueue"):
        _open(tmp_path)


def test_a_file_that_a_crash_left_unfinished_is_finished(tmp_path: Path) -> None:
    _filled(tmp_path, 4)
    (tmp_path / "queue" / segment_name(FILE_BYTES)).touch()
    queue = _open(tmp_path)
    assert queue.max_offset == 4
    _append(queue, 4)
    assert _found(_open(tmp_path)) == [0, 1, 2, 3, 4]


def test_a_foreign_name_is_refused(tmp_path: Path) -> None:
    _filled(tmp_path, 1)
    (tmp_path / "queue" / "notes").touch()
    with pytest.raises(ForeignFile, match="notes"):
        _open(tmp_path)


def test_the_size_of_a_stretch_of_messages_is_that_of_its_entries(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 3 * PER_FILE)
    assert queue.size_bytes(0, 12) == 12 * RECORD_BYTES
    assert queue.size_bytes(3, 5) == 2 * RECORD_BYTES
    assert queue.size_bytes(5, 5) == 0
    queue.append(12, _entry(12), 13 * RECORD_BYTES)
    assert queue.size_bytes(11, 13) == 2 * RECORD_BYTES
    queue.find_min(4 * RECORD_BYTES)
    assert queue.size_bytes(0, 5) == RECORD_BYTES


def test_new_entries_are_read_before_they_are_on_disk(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 3)
    for number in range(3, 10):
        queue.append(number, _entry(number), (number + 1) * RECORD_BYTES)
    assert _names(tmp_path) == [0]
    assert (queue.max_offset, queue.indexed_to) == (10, 1000)
    assert _found(queue) == list(range(10))
    assert [[entry.tags_code for entry in queue.entries(first, 3)] for first in range(11)] == [
        list(range(first, min(first + 3, 10))) for first in range(11)
    ]
    assert [queue.entry(number).tags_code for number in range(10)] == list(range(10))
    queue.write()
    assert _names(tmp_path) == [0, FILE_BYTES, 2 * FILE_BYTES]
    assert _found(_open(tmp_path)) == list(range(10))


def test_enough_new_entries_are_written_by_themselves(tmp_path: Path) -> None:
    queue = _open(tmp_path)
    for number in range(1000):
        queue.append(number, _entry(number), (number + 1) * RECORD_BYTES)
    assert 700 < _open(tmp_path).max_offset < 1000
    assert _found(queue) == list(range(1000))


def test_a_cut_reaches_entries_that_were_never_written(tmp_path: Path) -> None:
    queue = _filled(tmp_path, 2)
    for number in range(2, 8):
        queue.append(number, _entry(number), (number + 1) * RECORD_BYTES)
    queue.cut(5 * RECORD_BYTES)
    assert (queue.max_offset, _found(queue)) == (5, [0, 1, 2, 3, 4])
    _append(queue, 5)
    assert _found(_open(tmp_path)) == [0, 1, 2, 3, 4, 5]


def test_what_a_full_disk_refuses_stays_readable_and_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = _filled(tmp_path, 2)
    queue.append(2, _entry(2), 300)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", _no_space)
        with pytest.raises(DiskFull):
            queue.write()
    assert _found(queue) == [0, 1, 2]
    queue.write()
    assert _found(_open(tmp_path)) == [0, 1, 2]


def _no_space(_fd: int, _data: bytes, _position: int) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
