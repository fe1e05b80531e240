import struct
from pathlib import Path

import pytest

from tanist.errors import ForeignFile
from tanist.model.data_version import DataVersion
from tanist.model.timer_progress import TimerProgress
from tanist.protocol.bodies.sync import TimerCheckPoint, encode_timer_check_point
from tanist.store.disk import Disk
from tanist.store.timer_checkpoint import FILE_BYTES, TimerCheckpointFile

PROGRESS = TimerProgress(read_ms=7_000, taken_to=90, first_waiting=40)
POINT = TimerCheckPoint(7_000, 52 * 5, 90, 90, DataVersion(counter=3, timestamp_ms=1))


@pytest.fixture
def file(tmp_path: Path) -> TimerCheckpointFile:
    return TimerCheckpointFile(Disk(), tmp_path)


def rewrite(root: Path, point: TimerCheckPoint) -> None:
    """What RocketMQ does: it writes its numbers and leaves the rest of the file alone."""
    path = root / "config" / "timercheck"
    path.parent.mkdir(exist_ok=True)
    rest = path.read_bytes()[56:] if path.exists() else bytes(FILE_BYTES - 56)
    path.write_bytes(encode_timer_check_point(point) + rest)


def test_without_a_file_the_timer_knows_nothing(file: TimerCheckpointFile) -> None:
    assert file.load() == (TimerProgress(), None)


def test_what_was_saved_is_found(file: TimerCheckpointFile) -> None:
    file.save(TimerProgress(), POINT)
    file.save(PROGRESS, POINT)
    assert file.load() == (PROGRESS, POINT)


def test_the_file_begins_with_what_rocketmq_reads(file: TimerCheckpointFile, tmp_path: Path) -> None:
    file.save(PROGRESS, POINT)
    data = (tmp_path / "config" / "timercheck").read_bytes()
    assert len(data) == 4096
    assert struct.unpack(">7q", data[:56]) == (7_000, 260, 90, 90, 0, 1, 3)


def test_what_rocketmq_wrote_last_counts(file: TimerCheckpointFile, tmp_path: Path) -> None:
    file.save(PROGRESS, POINT)
    theirs = POINT._replace(last_read_time_ms=9_000, last_timer_queue_offset=95, master_timer_queue_offset=97)
    rewrite(tmp_path, theirs)
    assert file.load() == (TimerProgress(read_ms=9_000, taken_to=95, first_waiting=0), theirs)


def test_rocketmq_may_have_written_the_first_one(file: TimerCheckpointFile, tmp_path: Path) -> None:
    rewrite(tmp_path, POINT)
    assert file.load() == (TimerProgress(read_ms=7_000, taken_to=90, first_waiting=0), POINT)


def test_a_file_of_another_size_is_refused(file: TimerCheckpointFile, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "timercheck").write_bytes(bytes(56))
    with pytest.raises(ForeignFile):
        file.load()
