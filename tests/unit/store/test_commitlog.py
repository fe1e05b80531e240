import itertools
import random
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tanist.errors import DiskFull, FlushFailed, LocalProtocolError, NotWritable, OffsetOutOfRange
from tanist.model.host import pack_host
from tanist.model.message import Message, SysFlag
from tanist.protocol.batch import encode_batch
from tanist.protocol.record import MAGIC_BLANK, check_record, decode_record, encode_blank, peek_record
from tanist.store.commitlog import CommitLog
from tanist.store.disk import Disk, File
from tanist.store.segment import WARM_BYTES, WRITE_BYTES
from tanist.store.segments import Segments
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk
from tests.support.mapped_pages import pages_alone
from tests.support.messages import TOPIC, make_message

SIZE = 4096
STORE_HOST = pack_host("10.0.0.1", 10911)


def _open(directory: Path, *, disk: Disk | None = None, clock: FakeClock | None = None) -> CommitLog:
    segments = Segments(disk or Disk(), directory, SIZE)
    segments.open()
    return CommitLog(segments, store_host=STORE_HOST, max_body_bytes=3000, clock=clock or FakeClock())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CommitLog]:
    log = _open(tmp_path)
    yield log
    log.close()


def _content(log: CommitLog) -> bytes:
    return b"".join(bytes(segment.view) for segment in log.segments)


def _sized(total_bytes: int) -> Message:
    """A message whose record has exactly this size."""
    message = Message(topic="TopicA", queue_id=0, body=b"")
    return Message(topic="TopicA", queue_id=0, body=b"x" * (total_bytes - 91 - len(message.topic)))


# Appending


def test_an_empty_log_begins_and_ends_at_zero(log: CommitLog) -> None:
    assert (log.log_start, log.flushed_to, log.log_end) == (0, 0, 0)


def test_messages_lie_one_behind_the_other(log: CommitLog) -> None:
    first, second = log.append(make_message(1)), log.append(make_message(2))
    assert (first.log_offset, second.log_offset) == (0, first.end)
    assert log.log_end == second.end
    assert (
        check_record(log.segments[0].view, first.log_offset, log_offset=first.log_offset) == first.size_bytes
    )


def test_a_record_tells_where_it_lies_when_it_was_stored_and_by_whom(tmp_path: Path) -> None:
    log = _open(tmp_path, clock=FakeClock(now_ms=1234))
    log.append(make_message(1))
    appended = log.append(make_message(2))
    record = decode_record(log.read(appended.log_offset, appended.size_bytes))
    assert (record.log_offset, record.queue_offset) == (appended.log_offset, 1)
    assert record.store_timestamp_ms == appended.store_timestamp_ms == 1234
    assert record.store_host == STORE_HOST
    log.close()


def test_every_queue_counts_its_own_offsets(log: CommitLog) -> None:
    messages = [
        make_message(queue_id=0),
        make_message(queue_id=1),
        make_message(queue_id=0),
        make_message(topic="TopicB", queue_id=0),
        make_message(queue_id=0),
    ]
    assert [log.append(message).queue_offset for message in messages] == [0, 0, 1, 0, 2]


@pytest.mark.parametrize("kind", [SysFlag.PREPARED, SysFlag.ROLLBACK])
def test_prepared_and_rolled_back_messages_take_no_queue_offset(log: CommitLog, kind: SysFlag) -> None:
    log.append(make_message())
    assert log.append(make_message(sys_flag=kind)).queue_offset == 0
    assert log.append(make_message(sys_flag=SysFlag.COMMIT)).queue_offset == 1
    assert log.append(make_message()).queue_offset == 2


def test_a_message_that_does_not_fit_begins_the_next_file_behind_a_blank(log: CommitLog) -> None:
    log.append(_sized(2000))
    appended = log.append(_sized(2100))
    assert appended.log_offset == SIZE
    assert peek_record(log.segments[0].view, 2000) == (SIZE - 2000, MAGIC_BLANK)
    assert not any(log.segments[0].view[2008:])
    assert decode_record(log.read(SIZE, 2100)).log_offset == SIZE


def test_room_for_the_blank_is_always_left(log: CommitLog) -> None:
    log.append(_sized(2000))
    assert log.append(_sized(SIZE - 2000 - 8)).log_offset == 2000
    assert len(log.segments) == 1
    assert log.append(make_message()).log_offset == SIZE
    assert bytes(log.segments[0].view[-8:]) == encode_blank(8)


def test_a_byte_less_than_a_blank_needs_rolls_the_file(log: CommitLog) -> None:
    log.append(_sized(2000))
    assert log.append(_sized(SIZE - 2000 - 7)).log_offset == SIZE


def test_a_body_over_what_is_taken_now_can_still_be_moved(log: CommitLog) -> None:
    log.append(make_message(body_bytes=3001))
    assert log.log_end > 3001


def test_what_no_file_can_hold_is_refused_and_changes_nothing(log: CommitLog) -> None:
    log.append(make_message())
    before, content = log.log_end, _content(log)
    big = make_message(body_bytes=2000, keys="k" * 2100)
    with pytest.raises(LocalProtocolError, match="do not fit into one file"):
        log.append(big)
    assert (log.log_end, _content(log)) == (before, content)
    assert log.append(make_message()).queue_offset == 1


def test_a_full_disk_changes_nothing_and_the_log_goes_on_later(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    log.append(_sized(3000))
    content = _content(log)
    disk.is_full = True
    for _ in range(2):
        with pytest.raises(DiskFull):
            log.append(_sized(3000))
    assert (log.log_end, _content(log), len(log.segments)) == (3000, content, 1)
    disk.is_full = False
    assert log.append(_sized(3000)).queue_offset == 1
    log.close()


def test_a_refusing_log_takes_nothing_and_says_why(log: CommitLog) -> None:
    log.refusal = "the moon is full"
    for write in (
        lambda: log.append(make_message()),
        lambda: log.append_raw(0, b"x"),
    ):
        with pytest.raises(NotWritable, match="the moon is full"):
            write()
    assert log.log_end == 0


# Batches


def _packed(count: int, *, body_bytes: int) -> Message:
    body = encode_batch([(0, bytes(body_bytes), b"")] * count)
    return Message(topic=TOPIC, queue_id=0, body=body)


def test_a_batch_lies_in_one_file_one_message_behind_the_other(log: CommitLog) -> None:
    log.append(_sized(3000))
    appended = log.append_packed(_packed(3, body_bytes=400))
    assert (appended.log_offset, appended.queue_offset) == (SIZE, 1)
    assert peek_record(log.segments[0].view, 3000) == (SIZE - 3000, MAGIC_BLANK)
    position, offsets = appended.log_offset, list[int]()
    while position < appended.end:
        record = decode_record(log.read(position, peek_record(log.segments[1].view, position - SIZE)[0]))
        assert record.log_offset == position
        offsets.append(record.queue_offset)
        position += record.size_bytes
    assert offsets == [1, 2, 3]
    assert log.append(make_message()).queue_offset == 4


def test_a_batch_that_no_file_can_hold_is_refused_and_changes_nothing(log: CommitLog) -> None:
    log.append(make_message())
    before, content = log.log_end, _content(log)
    with pytest.raises(LocalProtocolError, match="do not fit into one file"):
        log.append_packed(_packed(10, body_bytes=400))
    assert (log.log_end, _content(log)) == (before, content)


# Raw bytes of a master


@pytest.mark.parametrize("piece_bytes", [7, 1000, SIZE, 3 * SIZE])
def test_a_copy_of_a_log_is_equal_to_the_byte(log: CommitLog, tmp_path: Path, piece_bytes: int) -> None:
    for number in range(9):
        log.append(make_message(number, body_bytes=1000))
    copy = _open(tmp_path / "copy")
    while copy.log_end < log.log_end:
        copy.append_raw(copy.log_end, log.read_ahead(copy.log_end, piece_bytes))
    assert copy.log_end == log.log_end
    assert _content(copy) == _content(log)
    copy.close()


def test_raw_bytes_may_span_files(log: CommitLog) -> None:
    data = bytes(range(1, 101)) * 100
    assert log.append_raw(0, data) == len(data)
    assert _content(log)[: len(data)] == data
    assert len(log.segments) == 3


@pytest.mark.parametrize("log_offset", [99, 101, 0, SIZE])
def test_raw_bytes_must_come_exactly_at_the_end(log: CommitLog, log_offset: int) -> None:
    log.append_raw(0, b"x" * 100)
    with pytest.raises(OffsetOutOfRange):
        log.append_raw(log_offset, b"y")
    assert log.log_end == 100


def test_an_empty_log_may_begin_with_a_later_file(log: CommitLog) -> None:
    assert log.append_raw(5 * SIZE, b"x" * 10) == 5 * SIZE + 10
    assert (log.log_start, log.log_end, log.flushed_to) == (5 * SIZE, 5 * SIZE + 10, 5 * SIZE)


def test_an_empty_log_does_not_begin_within_a_file(log: CommitLog) -> None:
    with pytest.raises(OffsetOutOfRange):
        log.append_raw(5 * SIZE + 1, b"x")
    assert len(log.segments) == 0


def test_an_empty_log_on_a_full_disk_stays_empty(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    disk.is_full = True
    with pytest.raises(DiskFull):
        log.append_raw(5 * SIZE, b"x" * 10)
    assert (log.log_start, log.flushed_to, log.log_end) == (0, 0, 0)
    disk.is_full = False
    assert log.append_raw(6 * SIZE, b"x" * 10) == 6 * SIZE + 10
    log.close()


def test_raw_bytes_that_the_disk_takes_a_part_of_end_nowhere_in_particular(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    log.append_raw(0, bytes(100))
    disk.is_full = True
    with pytest.raises(DiskFull):
        log.append_raw(100, bytes(SIZE))
    assert log.log_end == SIZE
    assert not log.ends_with_record
    log.close()


def test_only_behind_raw_bytes_is_it_unknown_whether_a_record_ends(log: CommitLog) -> None:
    appended = log.append(make_message())
    assert log.ends_with_record
    log.append_raw(log.log_end, b"half")
    assert not log.ends_with_record
    log.cut(appended.end)
    assert log.ends_with_record


# Reading


def test_exactly_what_was_asked_for_is_read(log: CommitLog) -> None:
    log.append_raw(0, b"0123456789")
    assert bytes(log.read(2, 3)) == b"234"
    with pytest.raises(OffsetOutOfRange):
        log.read(8, 3)


def test_reading_ahead_stops_at_the_end_of_the_log_and_of_the_file(log: CommitLog) -> None:
    log.append_raw(0, bytes(SIZE + 100))
    assert len(log.read_ahead(0, 10)) == 10
    assert len(log.read_ahead(SIZE - 10, 50)) == 10
    assert len(log.read_ahead(SIZE + 10, 500)) == 90


@pytest.mark.parametrize("log_offset", [-1, 100, 101, SIZE])
def test_reading_outside_the_log_is_refused(log: CommitLog, log_offset: int) -> None:
    log.append_raw(0, bytes(100))
    with pytest.raises(OffsetOutOfRange):
        log.read_ahead(log_offset, 1)


def test_the_checksum_of_a_tail_is_that_of_its_bytes_in_all_files(log: CommitLog) -> None:
    data = random.Random(7).randbytes(2 * SIZE + 100)
    log.append_raw(3 * SIZE, data)
    end = 5 * SIZE + 100
    assert log.crc_before(end, len(data)) == zlib.crc32(data)
    assert log.crc_before(end, 101) == zlib.crc32(data[-101:])
    assert log.crc_before(3 * SIZE + 50, 20) == zlib.crc32(data[30:50])
    assert log.crc_before(end, 0) == log.crc_before(3 * SIZE, 0) == 0


@pytest.mark.parametrize(
    ("log_offset", "size_bytes"), [(SIZE + 101, 1), (SIZE + 50, 51), (SIZE, 1), (SIZE + 100, -1), (-1, 0)]
)
def test_a_checksum_of_bytes_that_are_not_in_the_log_is_refused(
    log: CommitLog, log_offset: int, size_bytes: int
) -> None:
    log.append_raw(SIZE, bytes(100))
    with pytest.raises(OffsetOutOfRange, match=f"{size_bytes} bytes before log offset {log_offset}"):
        log.crc_before(log_offset, size_bytes)


def test_a_record_begins_where_one_was_appended_and_nowhere_else(log: CommitLog) -> None:
    starts = {log.append(make_message(number, body_bytes=900)).log_offset for number in range(6)}
    blank = min(start for start in starts if start >= SIZE) - SIZE
    assert blank == 0
    blank_start = max(start for start in starts if start < SIZE)
    found = {at for at in range(-2, log.log_end + 3) if log.is_record_start(at)}
    assert starts < found
    # Beside the records: the blank that ends the first file, and the end of the log.
    assert len(found - starts) == 2
    assert log.log_end in found
    assert any(blank_start < at < SIZE for at in found)


# Flushing


def test_a_flush_makes_all_that_is_written_durable(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    for number in range(9):
        log.append(make_message(number, body_bytes=1000))
    disk.synced.clear()
    assert log.flush() == log.flushed_to == log.log_end
    assert disk.synced == [segment.path for segment in log.segments]
    disk.synced.clear()
    log.flush()
    assert disk.synced == []
    log.close()


def test_what_is_appended_during_a_flush_is_not_called_durable(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    first = log.append(make_message(1))
    disk.may_sync.clear()
    before = disk.sync_count
    thread = threading.Thread(target=log.flush)
    thread.start()
    while disk.sync_count == before:
        pass
    log.append(make_message(2))
    disk.may_sync.set()
    thread.join()
    assert log.flushed_to == first.end < log.log_end
    log.close()


def test_a_flush_that_failed_is_not_tried_again_and_writes_are_refused(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    log.append(make_message())
    disk.is_sync_broken = True
    with pytest.raises(FlushFailed, match="disk failed to flush"):
        log.flush()
    disk.is_sync_broken = False
    count = disk.sync_count
    with pytest.raises(FlushFailed):
        log.flush()
    assert disk.sync_count == count
    assert log.flushed_to == 0
    with pytest.raises(NotWritable, match="disk failed to flush"):
        log.append(make_message())
    with pytest.raises(FlushFailed):
        log.cut(0)
    log.close()


# Cutting


def test_a_cut_takes_everything_from_an_offset_on(log: CommitLog) -> None:
    appended = [log.append(make_message(number, body_bytes=1000)) for number in range(9)]
    content = _content(log)
    cut_at = appended[1].log_offset
    assert log.cut(cut_at) > 1000
    assert log.log_end == log.flushed_to == cut_at
    assert _content(log) == content[:cut_at].ljust(SIZE, b"\0")
    assert len(list(log.segments.directory.iterdir())) == 1


def test_a_cut_at_the_start_of_a_file_drops_the_file(log: CommitLog) -> None:
    for number in range(6):
        log.append(make_message(number, body_bytes=1000))
    before = bytes(log.segments[0].view)
    log.cut(SIZE)
    assert (log.log_end, len(log.segments)) == (SIZE, 1)
    assert bytes(log.segments[0].view) == before
    assert log.append(make_message()).log_offset == SIZE


def test_a_cut_at_the_start_of_the_log_leaves_it_empty_where_it_is(log: CommitLog) -> None:
    log.append_raw(3 * SIZE, b"x" * (SIZE + 10))
    log.cut(3 * SIZE)
    assert (log.log_start, log.log_end, len(log.segments)) == (3 * SIZE, 3 * SIZE, 1)
    assert not any(_content(log))
    assert log.append(make_message()).log_offset == 3 * SIZE


def test_a_cut_makes_everything_before_it_durable(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    for number in range(9):
        log.append(make_message(number, body_bytes=1000))
    disk.synced.clear()
    log.cut(log.segments[2].start)
    assert disk.synced == [segment.path for segment in log.segments]
    assert len(disk.synced) == 2
    log.close()


def test_a_flush_during_a_cut_waits_and_never_moves_the_end(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = _open(tmp_path, disk=disk)
    for number in range(9):
        log.append(make_message(number, body_bytes=1000))
    disk.may_sync.clear()
    before = disk.sync_count
    flush = threading.Thread(target=log.flush)
    flush.start()
    while disk.sync_count == before:
        pass
    cut = threading.Thread(target=log.cut, args=(SIZE,))
    cut.start()
    disk.may_sync.set()
    flush.join()
    cut.join()
    assert log.flushed_to == log.log_end == SIZE
    assert log.refusal is None
    assert log.cut_count == 1
    log.close()


def test_the_oldest_file_can_be_forgotten(log: CommitLog) -> None:
    for number in range(9):
        log.append(make_message(number, body_bytes=1000))
    log.flush()
    log.segments.discard([log.take_first_segment()])
    assert log.log_start == SIZE
    with pytest.raises(OffsetOutOfRange):
        log.read_ahead(0, 1)


def test_the_next_file_is_due_when_the_last_is_half_full(log: CommitLog) -> None:
    assert not log.needs_next_file()
    log.append(_sized(2048))
    assert not log.needs_next_file()
    log.append(_sized(100))
    assert log.needs_next_file()
    log.append(_sized(3000))
    assert log.needs_next_file()


def test_a_file_that_somebody_deleted_is_never_called_flushed(log: CommitLog) -> None:
    log.append(make_message())
    log.segments[0].path.unlink()
    with pytest.raises(FlushFailed, match="somebody deleted it"):
        log.flush()
    with pytest.raises(NotWritable):
        log.append(make_message())


def test_what_is_durable_leaves_our_memory_and_can_be_read_and_cut_as_before(tmp_path: Path) -> None:
    segments = Segments(Disk(), tmp_path, 32 << 20)
    segments.open()
    log = CommitLog(segments, store_host=STORE_HOST, max_body_bytes=1 << 20, clock=FakeClock())
    places = [log.append(_sized(1 << 20)) for _ in range(40)]
    log.flush()
    # Not durable yet: it has to survive too, whatever the system does with the pages before it.
    places.append(log.append(_sized(1 << 20)))
    for place in places:
        # What is large was written and not stored: it is in our memory once somebody has read it.
        bytes(log.read(place.log_offset, place.size_bytes))
    before_bytes = psutil.Process().memory_info().shared
    log.release()
    released_bytes = before_bytes - psutil.Process().memory_info().shared
    assert released_bytes > 30 << 20
    for place in places:
        record = decode_record(log.read(place.log_offset, place.size_bytes))
        assert (record.log_offset, bytes(record.body)) == (place.log_offset, _sized(1 << 20).body)
    log.release()
    log.cut(places[3].log_offset)
    log.flush()
    assert (tmp_path / "00000000000000000000").read_bytes()[log.log_end :].count(0) == (
        32 << 20
    ) - log.log_end
    assert bytes(log.read(places[2].log_offset, places[2].size_bytes)[100:200]) == b"x" * 100
    log.close()


def test_what_was_stored_leaves_our_memory_before_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = Segments(Disk(), tmp_path, 32 << 20)
    segments.open()
    log = CommitLog(segments, store_host=STORE_HOST, max_body_bytes=1 << 20, clock=FakeClock())
    empty_bytes = psutil.Process().memory_info().shared
    places = [log.append(_sized(4 << 10)) for _ in range(4_000)]
    assert psutil.Process().memory_info().shared - empty_bytes > 15 << 20, "they were stored, not written"
    at_sync: list[int] = []

    def look(_: File) -> None:
        at_sync.append(psutil.Process().memory_info().shared)

    monkeypatch.setattr(File, "sync", look)
    log.flush()
    assert [shared - empty_bytes < 1 << 20 for shared in at_sync] == [True]
    assert bytes(log.read(places[-1].log_offset, places[-1].size_bytes))[100:200] == b"x" * 100
    log.close()


def _open_warming(directory: Path, disk: Disk, file_bytes: int) -> CommitLog:
    segments = Segments(disk, directory, file_bytes)
    segments.open()
    return CommitLog(
        segments, store_host=STORE_HOST, max_body_bytes=1 << 20, clock=FakeClock(), is_warming=True
    )


@pytest.mark.parametrize("file_bytes", [4096, 4096 * 7, 1 << 20])
@pytest.mark.parametrize("is_full", [False, True])
def test_a_log_that_warms_its_pages_holds_the_same_bytes(
    tmp_path: Path, file_bytes: int, is_full: bool
) -> None:
    disk = FailingDisk()
    plain, warming = (
        CommitLog(
            Segments(Disk(), tmp_path / "plain", file_bytes),
            store_host=STORE_HOST,
            max_body_bytes=1 << 20,
            clock=FakeClock(),
        ),
        _open_warming(tmp_path / "warming", disk, file_bytes),
    )
    plain.segments.open()
    cut_at = 0
    sizes = [100, 3000, 200, 4000, 91 + 6, 150, 1000, 3900] * 60
    for number, size in enumerate(sizes):
        # On a full disk files are there and pages are not: nothing new is needed for these appends.
        disk.is_full = is_full and len(warming.segments) > 0 and warming.segments.end - warming.log_end > 5000
        message = _sized(max(size, 98))
        place = plain.append(message)
        assert warming.append(message) == place
        if number == 200:
            cut_at = place.log_offset
        elif number == 210:
            disk.is_full = False
            for log in (plain, warming):
                log.cut(cut_at)
    assert _content(plain) == _content(warming)
    raw = bytes(plain.read_ahead(plain.log_start, file_bytes))
    taken = _open_warming(tmp_path / "taken", Disk(), file_bytes)
    # Small pieces are stored into warm pages, large ones written.
    sizes_of_pieces = itertools.cycle([777, 5, 777, 70_000, 1])
    while (start := taken.log_end) < len(raw):
        taken.append_raw(start, raw[start : start + next(sizes_of_pieces)])
    assert bytes(taken.read_ahead(0, file_bytes)) == raw
    for log in (plain, warming, taken):
        log.close()


def test_pages_for_what_is_stored_next_are_made_when_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _open_warming(tmp_path, Disk(), 1 << 20)
    made: list[tuple[int, int]] = []
    write = File.write

    def note(file: File, position: int, data: bytes | memoryview) -> None:
        made.append((position, len(data)))
        write(file, position, data)

    monkeypatch.setattr(File, "write", note)
    was = 0
    while log.log_end < 512 << 10:
        log.append(_sized(4 << 10))
        in_append = len(made)
        log.warm_ahead()
        assert in_append <= 1 or in_append == was, "whoever appends finds them made, but for the first"
        was = len(made)
    assert sum(size for _, size in made) >= log.log_end
    assert all(begin + size == next_begin for (begin, size), (next_begin, _) in itertools.pairwise(made))
    made.clear()
    for _ in range(3):
        log.append(_sized(WRITE_BYTES + 100))
        log.warm_ahead()
    assert [size >= WRITE_BYTES for _, size in made] == [True] * 3, "nor are any made for what is written"
    log.append(_sized(100))
    assert made[-1][1] == WARM_BYTES
    log.close()


def test_where_each_message_is_flushed_pages_are_made_one_by_one_in_what_is_not_written(
    tmp_path: Path,
) -> None:
    file_bytes = 4 * SIZE
    segments = Segments(Disk(), tmp_path, file_bytes)
    log = CommitLog(segments, store_host=STORE_HOST, max_body_bytes=3000, clock=FakeClock())
    for _ in range(9):
        log.append(_sized(3000))
    first, second = (segment.path for segment in log.segments)
    assert (pages_alone(first), pages_alone(second)) == (0, file_bytes)
    log.flush()
    log_end = log.log_end
    log.close()
    segments = Segments(Disk(), tmp_path, file_bytes)
    segments.open()
    reopened = CommitLog(segments, store_host=STORE_HOST, max_body_bytes=3000, clock=FakeClock())
    assert pages_alone(second) == 0
    reopened.resume(log_end)
    assert (pages_alone(first), pages_alone(second)) == (
        0,
        file_bytes - log_end % file_bytes // SIZE * SIZE,
    )
    reopened.close()


def test_where_nobody_waits_for_the_disk_pages_are_made_together(tmp_path: Path) -> None:
    log = _open_warming(tmp_path, Disk(), 4 * SIZE)
    log.append(_sized(3000))
    assert pages_alone(log.segments[0].path) == 0
    log.close()
