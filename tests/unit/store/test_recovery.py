import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.errors import CorruptRecord
from tanist.model.message import Appended
from tanist.protocol.queue_entry import FILLER_SIZE, QueueEntry
from tanist.store.checkpoint import Checkpoint
from tanist.store.commitlog import CommitLog
from tanist.store.deletions import Deletions
from tanist.store.disk import Disk
from tanist.store.queues import Queues
from tanist.store.recovery import check_cut, flushed_to, points_at, scan, scan_segment, trusted_to
from tanist.store.segments import Segments
from tests.support.clocks import FakeClock
from tests.support.messages import TOPIC, make_message

SIZE = 4096
FIRST_MS = 1_000_000


class _Log:
    """Nine messages in three files, one every ten seconds, and the queue that belongs to them."""

    def __init__(self, root: Path) -> None:
        self.segments = Segments(Disk(), root / "commitlog", SIZE)
        self.segments.open()
        self.queues = Queues(Disk(), root / "consumequeue", 200, Deletions(Disk(), root))
        clock = FakeClock(now_ms=FIRST_MS)
        self.log = CommitLog(self.segments, store_host=bytes(8), max_body_bytes=SIZE, clock=clock)
        self.appended: list[Appended] = []
        for number in range(9):
            self.appended.append(self.log.append(make_message(number, body_bytes=1000)))
            clock.advance_ms(10_000)

    @property
    def end(self) -> int:
        return self.log.log_end

    def index(self, count: int = 9) -> None:
        """Put the first messages into their queue."""
        for number, at in enumerate(self.appended[:count]):
            self.queues.append(TOPIC, 0, number, _entry(at), at.end)
        self.queues.write()

    def damage(self, number: int) -> int:
        """Change a byte of a message's body; where the message lies."""
        at = self.appended[number].log_offset
        segment = self.segments.at(at)
        segment.put_raw(at - segment.start + 100, b"\xff")
        return at

    def check_cut(self, found_end: int, *, flushed: int | None = None, flushed_ms: float = 0) -> None:
        found = scan(self.segments, 0, flushed_to=0)
        assert found.end == found_end
        check_cut(self.segments, found, flushed_to=flushed, flushed_ms=flushed_ms)


def _entry(at: Appended) -> bytes:
    return at.log_offset.to_bytes(8, "big") + at.size_bytes.to_bytes(4, "big") + bytes(8)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[_Log]:
    log = _Log(tmp_path)
    yield log
    log.queues.close()
    log.log.close()


# Finding the end


def test_a_walk_goes_over_all_files_to_the_end(log: _Log) -> None:
    found = scan(log.segments, 0, flushed_to=0)
    assert (found.start, found.end) == (0, log.end)
    assert found.last_timestamp_ms == FIRST_MS + 80_000
    assert found.reason == "nothing is written here"


@pytest.mark.parametrize("number", [1, 3, 8])
def test_a_walk_may_begin_at_any_record(log: _Log, number: int) -> None:
    start = log.appended[number].log_offset
    found = scan(log.segments, start, flushed_to=0)
    assert (found.start, found.end) == (start, log.end)


def test_a_walk_from_the_end_finds_nothing(log: _Log) -> None:
    found = scan(log.segments, log.end, flushed_to=0)
    assert (found.end, found.last_timestamp_ms) == (log.end, 0)


def test_the_walk_of_an_empty_log_ends_where_it_begins(tmp_path: Path) -> None:
    segments = Segments(Disk(), tmp_path, SIZE)
    segments.open()
    found = scan(segments, 0, flushed_to=0)
    assert (found.end, found.last_timestamp_ms, found.reason) == (0, 0, "the log is empty")


@pytest.mark.parametrize("number", range(9))
def test_a_walk_ends_before_the_first_damaged_record(log: _Log, number: int) -> None:
    at = log.damage(number)
    found = scan(log.segments, 0, flushed_to=0)
    assert found.end == at
    assert found.reason == "the body does not match its checksum"


def test_a_record_that_tells_another_place_ends_the_walk(log: _Log) -> None:
    first, second = log.appended[:2]
    log.segments[0].put_raw(second.log_offset, bytes(log.log.read(first.log_offset, first.size_bytes)))
    assert scan(log.segments, 0, flushed_to=0).end == second.log_offset


def test_a_blank_that_was_lost_ends_the_walk_before_the_next_file(log: _Log) -> None:
    end = log.appended[2].end
    log.segments[0].put_raw(end, bytes(8))
    assert scan(log.segments, 0, flushed_to=0).end == end


def test_the_walk_of_one_file_counts_its_records(log: _Log) -> None:
    found = scan_segment(log.segments[1], SIZE, flushed_to=0)
    assert (found.end, found.record_count, found.last_record) == (2 * SIZE, 3, log.appended[5].log_offset)


def test_zeros_at_the_end_of_a_record_show_a_crash_only_where_the_log_was_not_on_disk(tmp_path: Path) -> None:
    segments = Segments(Disk(), tmp_path, SIZE)
    segments.open()
    log = CommitLog(segments, store_host=bytes(8), max_body_bytes=SIZE, clock=FakeClock())
    end = log.append(make_message(keys="key")).end
    segments[0].put_raw(end - 1, b"\0")
    assert scan(segments, 0, flushed_to=0).end == 0
    assert scan(segments, 0, flushed_to=end).end == end
    log.close()


# Where to begin


def test_without_queues_everything_is_walked(log: _Log) -> None:
    checkpoint = Checkpoint(indexed_to=log.end, flushed_to=log.end)
    for was_closed in (True, False):
        assert trusted_to(log.segments, log.queues, checkpoint, was_closed=was_closed) == 0


def test_after_a_close_the_walk_begins_where_the_queues_end(log: _Log) -> None:
    log.index(5)
    checkpoint = Checkpoint()
    assert trusted_to(log.segments, log.queues, checkpoint, was_closed=True) == log.appended[4].end


def test_after_a_crash_the_walk_begins_at_the_checkpoint(log: _Log) -> None:
    log.index()
    indexed_to = log.appended[3].end
    checkpoint = Checkpoint(indexed_to=indexed_to, flushed_to=indexed_to)
    assert trusted_to(log.segments, log.queues, checkpoint, was_closed=False) == indexed_to


@pytest.mark.parametrize(
    ("stamp_ms", "segment"),
    [
        (0, 0),  # nothing is known: all of it
        (FIRST_MS + 30_000, 0),  # the second file begins then, but for the margin
        (FIRST_MS + 33_000, 1),
        (FIRST_MS + 62_999, 1),
        (FIRST_MS + 63_000, 2),
        (10**15, 2),
    ],
)
def test_after_a_crash_of_rocketmq_the_walk_begins_with_the_last_file_older_than_its_time(
    log: _Log, stamp_ms: int, segment: int
) -> None:
    log.index()
    checkpoint = Checkpoint(stamp_ms, stamp_ms)
    assert trusted_to(log.segments, log.queues, checkpoint, was_closed=False) == segment * SIZE


def test_a_file_without_a_sound_first_record_is_not_where_a_walk_begins(log: _Log) -> None:
    log.index(6)
    log.damage(6)
    checkpoint = Checkpoint(10**15, 10**15)
    assert trusted_to(log.segments, log.queues, checkpoint, was_closed=False) == SIZE


def test_a_checkpoint_of_another_log_is_not_followed(log: _Log) -> None:
    log.index()
    checkpoint = Checkpoint(indexed_to=100 * SIZE, flushed_to=100 * SIZE)
    assert trusted_to(log.segments, log.queues, checkpoint, was_closed=False) == 0


def test_a_queue_that_points_at_no_message_of_its_own_is_not_trusted(log: _Log) -> None:
    log.index(4)
    stray = log.appended[5]
    log.queues.append(TOPIC, 0, 4, _entry(stray), stray.end)
    log.queues.write()
    assert trusted_to(log.segments, log.queues, Checkpoint(), was_closed=True) == SIZE


def test_a_log_damaged_where_a_queue_ends_is_walked_from_that_file_on(log: _Log) -> None:
    log.index(5)
    log.damage(4)
    assert trusted_to(log.segments, log.queues, Checkpoint(), was_closed=True) == SIZE


def test_closing_a_store_means_that_all_was_on_disk() -> None:
    checkpoint = Checkpoint(indexed_to=5, flushed_to=7)
    assert flushed_to(checkpoint, was_closed=True) == math.inf
    assert flushed_to(checkpoint, was_closed=False) == 7
    assert flushed_to(Checkpoint(), was_closed=False) == 0


# Whether a cut is allowed


def test_a_sound_log_may_be_cut_at_its_end(log: _Log) -> None:
    log.check_cut(log.end, flushed=log.end)
    log.check_cut(log.end, flushed_ms=math.inf)


def test_damage_that_was_on_disk_is_refused_with_file_and_place(log: _Log) -> None:
    at = log.damage(4)
    with pytest.raises(
        CorruptRecord, match="the body does not match its checksum; restore the file from a replica"
    ) as caught:
        log.check_cut(at, flushed=at + 1)
    assert (caught.value.path, caught.value.position) == (log.segments[1].path, at - SIZE)


def test_damage_behind_what_was_on_disk_is_a_crash(log: _Log) -> None:
    at = log.damage(4)
    log.check_cut(at, flushed=at)


def test_damage_in_rocketmqs_log_is_known_by_the_older_records_behind_it(log: _Log) -> None:
    at = log.damage(4)
    log.check_cut(at, flushed_ms=FIRST_MS + 50_000)
    with pytest.raises(CorruptRecord):
        log.check_cut(at, flushed_ms=FIRST_MS + 50_001)


def test_damage_in_the_last_record_of_rocketmqs_log_can_not_be_told_from_a_crash(log: _Log) -> None:
    log.check_cut(log.damage(8), flushed_ms=math.inf)


def test_records_behind_the_damage_are_found_in_later_files_too(log: _Log) -> None:
    at = log.damage(2)
    log.segments[1].put_raw(0, bytes(SIZE))
    with pytest.raises(CorruptRecord):
        log.check_cut(at, flushed_ms=FIRST_MS + 60_001)


def test_a_log_whose_files_are_gone_is_refused(tmp_path: Path) -> None:
    segments = Segments(Disk(), tmp_path, SIZE)
    segments.open()
    with pytest.raises(CorruptRecord, match="the folder is empty"):
        check_cut(segments, scan(segments, 0, flushed_to=0), flushed_to=1, flushed_ms=0)


def test_a_log_whose_last_file_is_gone_is_refused(tmp_path: Path) -> None:
    log = _Log(tmp_path)
    flushed = log.end
    log.log.flush()
    log.log.cut(2 * SIZE)
    with pytest.raises(CorruptRecord):
        log.check_cut(2 * SIZE, flushed=flushed)
    log.log.close()


# Whether an entry points at a message


def test_an_entry_points_at_a_message_of_its_queue_and_offset(log: _Log) -> None:
    at = log.appended[4]
    entry = QueueEntry(at.log_offset, at.size_bytes, 0)

    def is_sound(entry: QueueEntry, topic: str = TOPIC, queue_id: int = 0, queue_offset: int = 4) -> bool:
        return points_at(log.segments, entry, topic=topic, queue_id=queue_id, queue_offset=queue_offset)

    assert is_sound(entry)
    assert is_sound(QueueEntry(0, FILLER_SIZE, 0))
    assert not is_sound(entry, topic="TopicB")
    assert not is_sound(entry, queue_id=1)
    assert not is_sound(entry, queue_offset=5)
    assert not is_sound(entry._replace(size_bytes=at.size_bytes + 1))
    assert not is_sound(entry._replace(log_offset=at.log_offset + 1))
    assert not is_sound(entry._replace(log_offset=100 * SIZE))
    log.damage(4)
    assert not is_sound(entry)
