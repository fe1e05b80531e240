import errno
import itertools
import json
import shutil
from pathlib import Path

import pytest

from tanist.errors import DiskFull, OffsetOutOfRange
from tanist.model.message import SysFlag
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.store import MessageStore, plain_records
from tanist.store.diverged import FOLDER_NAME, diverged_folders, read_diverged, read_report
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk, Stopped
from tests.support.messages import kill, make_message, numbered, open_store, tree


def _fill(store: MessageStore) -> list[int]:
    """Twenty messages of two topics and two epochs, over several files; where each lies."""
    store.begin_epoch(1)
    places: list[int] = []
    for number in range(20):
        if number == 5:
            store.begin_epoch(3)
        topic = "orders" if number % 4 else "payments"
        places.append(store.append(make_message(number, topic=topic, body_bytes=700)).log_offset)
    return places


def _bodies(folder: Path) -> list[bytes]:
    report = read_report(folder)
    assert report is not None
    return [bytes(record.body).rstrip(b".") for record in read_diverged(folder, report)]


def test_what_is_kept_can_be_read_and_tells_what_it_is(tmp_path: Path) -> None:
    with open_store(tmp_path, clock=FakeClock(1_789_000_000_123)) as store:
        places = _fill(store)
        store.keep_diverged(places[3])
        end = store.log.log_end
        (folder,) = diverged_folders(tmp_path)
        assert folder.name == f"20260910T002640.123Z-{places[3]}"
        assert json.loads((folder / "report.json").read_bytes()) == {
            "start": places[3],
            "end": end,
            "cutMs": 1_789_000_000_123,
            "epochs": [{"epoch": 1, "start": 0}, {"epoch": 3, "start": store.epochs.epochs[1].start}],
            "messageCount": 17,
            "topics": {"orders": 13, "payments": 4},
        }
        kept = (folder / f"{places[3]:020}").read_bytes()
        assert kept == b"".join(segment.view for segment in store.log.segments)[places[3] : end]
        assert _bodies(folder) == numbered(*range(3, 20))
        # An epoch that was over before is none of it.
        store.keep_diverged(places[5])
        report = read_report(diverged_folders(tmp_path)[1])
        assert report is not None
        assert [part.epoch for part in report.epochs] == [3]


@pytest.mark.parametrize("is_native", [True, False])
def test_messages_of_every_kind_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_native: bool
) -> None:
    if not is_native:
        monkeypatch.setattr(plain_records, "native", None)
    with open_store(tmp_path) as store:
        for number in range(30):
            store.append(
                make_message(number, topic=f"topic-{number % 3}", queue_id=number % 2, body_bytes=200)
            )
            store.append(make_message(number, topic="half", sys_flag=SysFlag.PREPARED))
            store.append(make_message(number, topic="long" * 40))
            store.append(make_message(number, topic=SCHEDULE_TOPIC, queue_id=2, DELAY="3"))
        store.keep_diverged(0)
    (folder,) = diverged_folders(tmp_path)
    report = read_report(folder)
    assert report is not None
    assert report.topics == {
        **{f"topic-{number}": 10 for number in range(3)},
        "half": 30,
        "long" * 40: 30,
        SCHEDULE_TOPIC: 30,
    }
    assert len(list(read_diverged(folder, report))) == report.message_count == 120


def test_what_was_kept_before_stays_when_the_clock_does_not_go_on(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        places = _fill(store)
        for _ in range(3):
            store.keep_diverged(places[3])
        assert [_bodies(folder) for folder in diverged_folders(tmp_path)] == 3 * [numbered(*range(3, 20))]


@pytest.mark.parametrize("half_bytes", [0, 10, 200])
def test_part_of_a_record_is_no_message_and_not_kept(tmp_path: Path, half_bytes: int) -> None:
    with open_store(tmp_path / "master") as master, open_store(tmp_path / "slave") as slave:
        places = _fill(master)
        slave.append_raw(0, master.log.read(0, places[2] + half_bytes))
        slave.keep_diverged(places[2])
        assert diverged_folders(tmp_path / "slave") == []
        slave.keep_diverged(places[1])
        assert [_bodies(folder) for folder in diverged_folders(tmp_path / "slave")] == [numbered(1)]


def test_from_within_a_record_nothing_is_kept(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        places = _fill(store)
        with pytest.raises(OffsetOutOfRange, match="no record begins"):
            store.keep_diverged(places[3] + 1)
        assert diverged_folders(tmp_path) == []


def test_a_full_disk_leaves_no_part_of_a_copy(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_store(tmp_path, disk=disk) as store:
        places = _fill(store)
        disk.is_full = True
        with pytest.raises((DiskFull, OSError)) as caught:
            store.keep_diverged(places[3])
        assert getattr(caught.value, "errno", errno.ENOSPC) == errno.ENOSPC
        disk.is_full = False
        assert diverged_folders(tmp_path) == []
        assert (tmp_path / FOLDER_NAME).exists()


def test_a_copy_that_was_interrupted_has_no_report_and_the_next_one_is_whole(tmp_path: Path) -> None:
    with open_store(tmp_path / "before") as store:
        places = _fill(store)
    for stop_at in itertools.count():
        root = tmp_path / str(stop_at)
        shutil.copytree(tmp_path / "before", root)
        disk = FailingDisk()
        store = open_store(root, disk=disk)
        disk._stop_at = disk.operation_count + stop_at
        try:
            store.keep_diverged(places[3])
        except Stopped:
            is_done = False
        else:
            is_done = True
        kill(store)
        reports = [read_report(folder) for folder in diverged_folders(root)]
        if is_done:
            assert None not in reports
            assert stop_at >= 5
            return
        with open_store(root) as store:
            assert store.log.log_end > places[19]
            store.keep_diverged(places[3])
        assert _bodies(diverged_folders(root)[-1]) == numbered(*range(3, 20))


def test_a_store_that_cuts_nothing_keeps_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        _fill(store)
        store.keep_diverged(store.log.log_end)
        assert not any(name.startswith(FOLDER_NAME) for name in tree(tmp_path))
