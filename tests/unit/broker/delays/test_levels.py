import logging
from pathlib import Path

import pytest

from tanist.broker.delays.levels import LevelSchedule
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import DelayOffsetTable
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk

NOW_MS = 1_000_000


def opened(root: Path, *delays_ms: int, disk: Disk | None = None) -> LevelSchedule:
    file = ConfigTable(disk or Disk(), root, DelayOffsetTable)
    return LevelSchedule.open(file, delays_ms=delays_ms or (1_000, 5_000), clock=FakeClock())


def test_a_level_with_a_queue_is_looked_at_once_and_then_rests(tmp_path: Path) -> None:
    levels = opened(tmp_path)
    assert levels.next_wake_ms is None
    levels.on_opened(1, min_offset=0, max_offset=0)
    assert levels.ready_levels(NOW_MS) == [1]
    levels.on_looked(1, first_due_ms=None)
    assert levels.next_wake_ms is None
    levels.on_grown(1)
    assert levels.ready_levels(NOW_MS) == [1]


def test_a_level_sleeps_until_its_first_message_is_due(tmp_path: Path) -> None:
    levels = opened(tmp_path)
    for level, due_ms in ((1, NOW_MS + 900), (2, NOW_MS + 500)):
        levels.on_grown(level)
        levels.on_looked(level, first_due_ms=due_ms)
    assert levels.next_wake_ms == NOW_MS + 500
    # What comes now is behind the message that the level waits for.
    levels.on_grown(1)
    assert levels.ready_levels(NOW_MS) == []
    assert levels.ready_levels(NOW_MS + 500) == [2]
    assert levels.ready_levels(NOW_MS + 900) == [2, 1]


@pytest.mark.parametrize(
    ("dues_ms", "count"),
    [
        ([], 0),
        ([NOW_MS - 5, NOW_MS], 2),
        ([NOW_MS - 5, NOW_MS + 1, NOW_MS - 7], 1),
        ([NOW_MS + 1_000], 0),
        ([0, NOW_MS + 1], 1),
    ],
)
def test_messages_are_due_in_order(tmp_path: Path, dues_ms: list[int], count: int) -> None:
    assert opened(tmp_path).due_count(1, dues_ms, NOW_MS) == count


def test_a_message_that_would_wait_longer_than_its_level_says_is_due(tmp_path: Path) -> None:
    levels = opened(tmp_path)
    assert levels.due_count(1, [NOW_MS + 1_001, NOW_MS + 5_000], NOW_MS) == 2
    assert levels.due_count(2, [NOW_MS + 1_001, NOW_MS + 5_000], NOW_MS) == 0


def test_a_level_that_there_is_no_more_keeps_its_times(tmp_path: Path) -> None:
    levels = opened(tmp_path)
    assert levels.due_count(18, [NOW_MS, NOW_MS + 7_200_000], NOW_MS) == 1


def test_offsets_are_kept_in_the_file_of_rocketmq(tmp_path: Path) -> None:
    levels = opened(tmp_path)
    assert levels.start_save() is None
    levels.on_delivered(2, 7)
    finish = levels.start_save()
    assert finish is not None
    levels.on_delivered(2, 8)
    finish()
    assert opened(tmp_path).next_offset(2) == 7
    assert levels.start_save() is not None


@pytest.mark.parametrize("key", ["3", '"3"'])
def test_quoted_and_bare_levels_are_read(tmp_path: Path, key: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "delayOffset.json").write_text(f'{{"offsetTable":{{{key}:41}}}}')
    assert opened(tmp_path).next_offset(3) == 41


def test_what_could_not_be_saved_is_still_to_be_saved(tmp_path: Path) -> None:
    disk = FailingDisk()
    levels = opened(tmp_path, disk=disk)
    levels.on_delivered(1, 1)
    disk.is_sync_broken = True
    finish = levels.start_save()
    assert finish is not None
    with pytest.raises(OSError, match="Input/output"):
        finish()
    assert levels.start_save() is not None


def test_the_version_counts_deliveries_by_the_hundreds(tmp_path: Path) -> None:
    levels = opened(tmp_path)
    before = levels.table().data_version
    for offset in range(1, 200):
        levels.on_delivered(1, offset)
    assert levels.table().data_version == before
    levels.on_delivered(1, 200)
    assert levels.table().data_version.counter == before.counter + 1
    assert levels.table().offset_table == {1: 200}


def test_an_offset_outside_its_queue_is_moved_into_it_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = DelayOffsetTable(offset_table={1: QueueOffset(2), 2: QueueOffset(90), 3: QueueOffset(-4)})
    ConfigTable(Disk(), tmp_path, DelayOffsetTable).save(table)
    levels = opened(tmp_path)
    with caplog.at_level(logging.WARNING):
        levels.on_opened(1, min_offset=10, max_offset=20)
        levels.on_opened(2, min_offset=10, max_offset=20)
    assert (levels.next_offset(1), levels.next_offset(2), levels.next_offset(3)) == (10, 20, 0)
    assert "level=1 count=8" in caplog.text
    assert "level=2 from=90 to=20" in caplog.text
