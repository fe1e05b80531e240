import logging
from pathlib import Path

import pytest

from tanist.broker.slave_consume.ledger import FILE_NAME, LedgerEntry, LedgerEvent, LedgerFile
from tanist.broker.slave_consume.trigger import Condition
from tanist.store.disk import Disk
from tests.support.failing_disk import FailingDisk, Stopped


def _entry(term: int, event: LedgerEvent = LedgerEvent.SWITCH) -> LedgerEntry:
    return LedgerEntry(
        at_ms=1_700_000_000_000,
        event=event,
        group="broker-a",
        term=term,
        broker="10.0.0.2:10911",
        reason="the master is gone",
        conditions=[Condition("link to the master down", True, "down")],
        offsets={"TopicA@g1": {0: 90, 1: 100}},
        duplicates={"g1": 10},
        duplicates_at_most=10,
    )


def _path(root: Path) -> Path:
    return root / "config" / FILE_NAME


def _terms(root: Path, count: int = 100) -> list[int]:
    return [entry.term for entry in LedgerFile(Disk(), root).last(count).entries]


def test_a_broker_without_a_ledger_has_no_entries(tmp_path: Path) -> None:
    assert LedgerFile(Disk(), tmp_path).last(10).entries == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_down_is_there_after_a_restart(tmp_path: Path) -> None:
    written = [_entry(1), _entry(1, LedgerEvent.HAND_BACK)]
    for entry in written:
        LedgerFile(Disk(), tmp_path).append(entry)
    assert LedgerFile(Disk(), tmp_path).last(10).entries == written


def test_only_the_last_ones_are_read_if_that_is_asked(tmp_path: Path) -> None:
    ledger = LedgerFile(Disk(), tmp_path)
    for term in range(1, 6):
        ledger.append(_entry(term))
    assert _terms(tmp_path, 2) == [4, 5]


def test_an_entry_is_on_the_disk_when_append_returns(tmp_path: Path) -> None:
    disk = FailingDisk()
    ledger = LedgerFile(disk, tmp_path)
    ledger.append(_entry(1))
    before = disk.sync_count
    ledger.append(_entry(2))
    assert disk.sync_count == before + 1


def test_a_line_that_was_cut_short_is_passed_over_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LedgerFile(Disk(), tmp_path).append(_entry(1))
    with _path(tmp_path).open("ab") as file:
        file.write(b'{"atMs":17')
    LedgerFile(Disk(), tmp_path).append(_entry(3))
    with caplog.at_level(logging.WARNING):
        found = LedgerFile(Disk(), tmp_path).last(10)
    assert ([entry.term for entry in found.entries], found.damaged_count) == ([1, 3], 1)
    assert "damaged" in caplog.text


@pytest.mark.parametrize("line", [b"\xff\xfe", b"null", b"", b'{"event":"DANCED"}'])
def test_a_damaged_line_costs_no_other(tmp_path: Path, line: bytes) -> None:
    LedgerFile(Disk(), tmp_path).append(_entry(1))
    with _path(tmp_path).open("ab") as file:
        file.write(line + b"\n")
    LedgerFile(Disk(), tmp_path).append(_entry(3))
    assert _terms(tmp_path) == [1, 3]


def test_the_oldest_entries_go_when_there_are_too_many(tmp_path: Path) -> None:
    ledger = LedgerFile(Disk(), tmp_path, kept_entries=10)
    for term in range(1, 131):
        ledger.append(_entry(term))
    terms = _terms(tmp_path, 1000)
    assert terms[-10:] == list(range(121, 131))
    assert len(terms) < 120
    assert len(_path(tmp_path).read_bytes().splitlines()) == len(terms)


def test_the_count_goes_on_after_a_restart(tmp_path: Path) -> None:
    for term in range(1, 131):
        LedgerFile(Disk(), tmp_path, kept_entries=10).append(_entry(term))
    assert len(_terms(tmp_path, 1000)) < 120


def test_the_oldest_entries_go_when_they_take_too_much_room(tmp_path: Path) -> None:
    ledger = LedgerFile(Disk(), tmp_path, max_bytes=2_000)
    for term in range(1, 50):
        ledger.append(_entry(term))
        assert _path(tmp_path).stat().st_size <= 2_000
    assert _terms(tmp_path)[-2:] == [48, 49]


def test_the_newest_entry_stays_also_if_it_is_too_long_alone(tmp_path: Path) -> None:
    ledger = LedgerFile(Disk(), tmp_path, max_bytes=100)
    for term in (1, 2):
        ledger.append(_entry(term))
    assert _terms(tmp_path) == [2]


def test_wherever_a_crash_comes_no_entry_before_it_is_lost(tmp_path: Path) -> None:
    for stop_at in range(100):
        root = tmp_path / str(stop_at)
        written: list[int] = []
        ledger = LedgerFile(FailingDisk(stop_at=stop_at), root, kept_entries=2, max_bytes=1_200)
        try:
            for term in range(1, 8):
                ledger.append(_entry(term))
                written.append(term)
        except Stopped:
            # The one that was under way may be there or not.
            assert _terms(root)[-2:] in (written[-2:], [*written, len(written) + 1][-2:])
        else:
            assert stop_at > 0
            return
    pytest.fail("the disk always stopped")
