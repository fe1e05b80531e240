import struct
from pathlib import Path

import pytest

from tanist.store.disk import Disk
from tanist.store.timer_log import TimerLog, TimerUnit
from tests.support.failing_disk import FailingDisk

FILE_BYTES = 3 * 52 + 20
T = 1_700_000_000_000


def opened(root: Path, disk: Disk | None = None, *, precision_ms: int = 1_000) -> TimerLog:
    return TimerLog(disk or Disk(), root, file_bytes=FILE_BYTES, precision_ms=precision_ms)


def add(log: TimerLog, *slots_ms: int, is_cancel: bool = False) -> None:
    for number, slot_ms in enumerate(slots_ms):
        log.add(TimerUnit(slot_ms, T, 1000 * number, 300, 84, is_cancel))


def units(root: Path, start: int = 0) -> list[tuple[int, ...]]:
    data = (root / "timerlog" / f"{start:020}").read_bytes()
    assert len(data) == FILE_BYTES
    found = [struct.unpack(">iqiqiqiiq", data[at : at + 52]) for at in range(0, 156, 52)]
    return [unit for unit in found if unit[0]]


def slot(root: Path, slot_ms: int, precision_ms: int = 1_000) -> tuple[int, ...]:
    with (root / "timerwheel").open("rb") as wheel:
        wheel.seek(slot_ms // precision_ms % 1_209_600 * 32)
        return struct.unpack(">qqqii", wheel.read(32))


def test_units_of_a_slot_are_chained_and_the_slot_leads_to_both_ends(tmp_path: Path) -> None:
    log = opened(tmp_path)
    add(log, T + 3_000, T + 9_000, T + 3_000)
    log.start_save(0)()
    assert units(tmp_path) == [
        (52, -1, 1, T, 3_000, 0, 300, 84, 0),
        (52, -1, 1, T, 9_000, 1000, 300, 84, 0),
        (52, 0, 1, T, 3_000, 2000, 300, 84, 0),
    ]
    assert slot(tmp_path, T + 3_000) == ((T + 3_000) // 1000, 0, 104, 2, 0)
    assert slot(tmp_path, T + 9_000) == ((T + 9_000) // 1000, 52, 52, 1, 0)
    assert (tmp_path / "timerwheel").stat().st_size == 38_707_200
    assert log.end == 156


def test_a_chain_goes_on_in_the_next_save_and_the_next_file(tmp_path: Path) -> None:
    log = opened(tmp_path)
    add(log, T, T)
    log.start_save(0)()
    add(log, T, T)
    log.start_save(0)()
    data = (tmp_path / "timerlog" / f"{0:020}").read_bytes()
    # What is left of a full file is a blank.
    assert struct.unpack(">iqi", data[156:172]) == (20, 0, -875286124)
    assert [unit[1] for unit in units(tmp_path)] == [-1, 0, 52]
    assert [unit[1] for unit in units(tmp_path, FILE_BYTES)] == [104]
    assert slot(tmp_path, T)[1:4] == (0, FILE_BYTES, 4)
    assert log.end == FILE_BYTES + 52


def test_a_message_that_takes_another_back_is_marked(tmp_path: Path) -> None:
    log = opened(tmp_path)
    add(log, T)
    add(log, T, is_cancel=True)
    log.start_save(0)()
    assert [unit[2] for unit in units(tmp_path)] == [1, 5]
    assert slot(tmp_path, T)[3] == 0


def test_the_precision_decides_about_the_slots(tmp_path: Path) -> None:
    log = opened(tmp_path, precision_ms=100)
    add(log, T + 100, T + 200)
    log.start_save(0)()
    assert slot(tmp_path, T + 100, 100)[:3] == ((T + 100) // 100, 0, 0)
    assert slot(tmp_path, T + 200, 100)[:3] == ((T + 200) // 100, 52, 52)


def test_what_is_added_after_a_save_began_waits_for_the_next(tmp_path: Path) -> None:
    log = opened(tmp_path)
    add(log, T)
    finish = log.start_save(0)
    add(log, T)
    finish()
    assert len(units(tmp_path)) == 1
    log.start_save(0)()
    assert len(units(tmp_path)) == 2


def test_what_the_disk_refused_is_written_the_next_time(tmp_path: Path) -> None:
    disk = FailingDisk()
    log = opened(tmp_path, disk)
    add(log, T, T + 1_000)
    disk.is_sync_broken = True
    finish = log.start_save(0)
    with pytest.raises(OSError, match="Input/output"):
        finish()
    assert log.end == 0
    disk.is_sync_broken = False
    add(log, T)
    log.start_save(0)()
    assert [unit[1] for unit in units(tmp_path)] == [-1, -1, 0]
    assert slot(tmp_path, T)[1:4] == (0, 104, 2)


def test_files_go_when_all_their_slots_have_passed(tmp_path: Path) -> None:
    log = opened(tmp_path)
    add(log, T, T, T + 9_000, T, T, T, T)
    log.start_save(T + 9_000)()
    names = [f"{n * FILE_BYTES:020}" for n in range(3)]
    assert sorted(path.name for path in (tmp_path / "timerlog").iterdir()) == names
    log.start_save(T + 10_000)()
    assert sorted(path.name for path in (tmp_path / "timerlog").iterdir()) == names[2:]


def test_a_new_beginning_leaves_nothing_of_the_old(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.clear()
    add(log, T, T, T, T)
    log.start_save(0)()
    log.close()
    again = opened(tmp_path)
    again.clear()
    add(again, T)
    again.start_save(0)()
    assert [unit[1] for unit in units(tmp_path)] == [-1]
    assert slot(tmp_path, T)[1:4] == (0, 0, 1)
    assert [path.name for path in (tmp_path / "timerlog").iterdir()] == [f"{0:020}"]


def test_what_is_too_far_ahead_is_to_be_stored_once_more_by_rocketmq(tmp_path: Path) -> None:
    log = opened(tmp_path)
    reach_ms = (7 * 86_400 - 60) * 1000
    add(log, T + reach_ms, T + 30 * reach_ms)
    log.start_save(0)()
    assert [(unit[2], unit[4]) for unit in units(tmp_path)] == [(1, reach_ms), (3, reach_ms)]
    assert log.leads_to_all(T + reach_ms)
    assert not log.leads_to_all(T + reach_ms + 1000)


def test_a_message_that_is_months_late_has_a_unit_too(tmp_path: Path) -> None:
    log = opened(tmp_path)
    late_ms = T - 90 * 86_400_000
    add(log, late_ms)
    log.start_save(0)()
    assert [unit[3:5] for unit in units(tmp_path)] == [(late_ms, 0)]
    assert log.leads_to_all(T)
