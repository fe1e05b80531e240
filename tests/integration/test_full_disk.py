"""A full disk stops what needs space, loses nothing, and everything goes on when there is room again."""

import itertools
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tanist.errors import DiskFull
from tanist.store.config_table import ConfigTable, ConsumerOffsetTable
from tanist.store.disk import Disk
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore
from tests.support.ledger import QUEUES, Ledger
from tests.support.messages import kill
from tests.support.small_disk import Scenario, SmallDisk, run_on_small_disk

SEGMENT_BYTES = 64 * 1024
PAGE_BYTES = 4096
SETTINGS = StoreSettings(
    mapped_file_size_commit_log=SEGMENT_BYTES,
    mapped_file_size_consume_queue=2000,
    max_hash_slot_num=1000,
    max_index_num=200,
)


def open_on(disk: SmallDisk) -> MessageStore:
    return MessageStore.open(disk.path / "store", SETTINGS)


def check_found_again(disk: SmallDisk, ledger: Ledger) -> None:
    """All that was written is there, after a kill and after a clean stop, and more can be written."""
    # On this disk, which is memory, a kill loses nothing.
    ledger.flushed_to = ledger.written[-1].end
    store = open_on(disk)
    ledger.check(store)
    store.close()
    with open_on(disk) as store:
        ledger.check(store)
        ledger.append(store)
        assert store.dispatch() == 1


def failure_of(step: Callable[[], object]) -> DiskFull | None:
    try:
        step()
    except DiskFull as full:
        return full
    return None


def append_for_ever(store: MessageStore, ledger: Ledger) -> None:
    try:
        while True:
            ledger.append(store, body_bytes=2000)
    finally:
        # A message that was refused is not in the log.
        ledger.in_flight = ()


def make_names_for_ever(folder: Path) -> None:
    for number in itertools.count():
        (folder / str(number)).touch(exist_ok=False)


def append_until_full(disk: SmallDisk) -> None:
    disk.fill(leave_bytes=3 * SEGMENT_BYTES + SEGMENT_BYTES // 2)
    store, ledger = open_on(disk), Ledger()
    with pytest.raises(DiskFull) as full:
        append_for_ever(store, ledger)
    path = store.log.segments.directory / f"{store.log.segments.end:020d}"
    assert len(store.log.segments) == 3
    assert (full.value.path, full.value.needed_bytes) == (path, SEGMENT_BYTES)
    assert not path.exists()
    for written in ledger.written:
        assert store.log.read(written.log_offset, len(written.raw)) == written.raw
    # A message that still fits into the last file is taken, and can be flushed.
    disk.fill()
    ledger.append(store)
    assert store.flush() == store.log.log_end
    disk.free()
    for _ in range(40):
        ledger.append(store, body_bytes=2000)
    store.dispatch()
    kill(store)
    check_found_again(disk, ledger)


def dispatch_until_full(disk: SmallDisk) -> None:
    """The disk is full at every page that dispatch needs, each time with a new store."""
    page_count = 0
    is_full = True
    while is_full:
        store, ledger = open_on(disk), Ledger()
        for _ in range(150):
            ledger.append(store)
        disk.fill(leave_bytes=page_count * PAGE_BYTES)

        index = partial(write_indexes, store)
        full = failure_of(index)
        is_full = full is not None
        if full is not None:
            assert Path(str(full.path)).is_relative_to(disk.path / "store")
            assert full.needed_bytes > 0
            # Trying again and again does no harm.
            assert failure_of(index)
            assert failure_of(index)
            for _ in range(2):
                failure_of(store.checkpoint)
        disk.free()
        ledger.append(store)
        store.dispatch()
        ledger.check(store)
        kill(store)
        check_found_again(disk, ledger)
        shutil.rmtree(disk.path / "store")
        page_count += 1
    assert page_count > 8


def write_indexes(store: MessageStore) -> None:
    """Index all there is, down to the files."""
    store.dispatch()
    store.queues.write()
    store.index.write()


def close_and_open_when_full(disk: SmallDisk) -> None:
    store, ledger = open_on(disk), Ledger()
    for _ in range(20):
        ledger.append(store)
    disk.fill()
    with pytest.raises(DiskFull):
        store.close()
    # All of it can be read: what the queues have no room for on disk they have in memory. Keys wait.
    store = open_on(disk)
    queues = [store.queues.find(*queue) for queue in QUEUES]
    assert sum(queue.max_offset for queue in queues if queue is not None) == len(ledger.written)
    for written in ledger.written:
        assert store.log.read(written.log_offset, len(written.raw)) == written.raw
    disk.free()
    ledger.append(store)
    store.dispatch()
    kill(store)
    check_found_again(disk, ledger)


def open_when_full_after_a_clean_close(disk: SmallDisk) -> None:
    """Everything is indexed: all of it can be read, and a crash afterwards is one."""
    store, ledger = open_on(disk), Ledger()
    for _ in range(20):
        ledger.append(store)
    store.close()
    disk.fill()
    store = open_on(disk)
    ledger.check(store)
    ledger.append(store)
    kill(store)
    disk.free()
    with open_on(disk) as store:
        assert not store.recovery.was_closed
        store.dispatch()
        ledger.flushed_to = ledger.written[-1].end
        ledger.check(store)


def truncate_when_full(disk: SmallDisk) -> None:
    store, ledger = open_on(disk), Ledger()
    for _ in range(20):
        ledger.append(store)
    disk.fill()
    # Neither can what is kept be indexed nor, when it is, the cut be noted. Nothing is cut, then.
    assert failure_of(lambda: write_indexes(store))
    assert failure_of(lambda: ledger.truncate(store, 15))
    disk.free()
    ledger.truncating_to = None
    ledger.truncate(store, 15)
    store.dispatch()
    disk.fill()
    assert failure_of(lambda: ledger.truncate(store, 10))
    ledger.truncating_to = None
    ledger.check(store)
    ledger.append(store)
    disk.free()
    ledger.truncate(store, 5)
    ledger.append(store)
    store.dispatch()
    ledger.check(store)
    kill(store)
    check_found_again(disk, ledger)


def save_table_when_full(disk: SmallDisk) -> None:
    """The old table stays, unless the new one finds room where the backup was that it replaces."""
    ledger = Ledger()
    table = ConfigTable(Disk(), disk.path / "store", ConsumerOffsetTable)
    failure_count = 0
    for number in range(3):
        ledger.save_table(table, number)
        # The room of its checksum, which goes first, would be enough for a table as small as this.
        (disk.path / "store" / "config" / "consumerOffset.json.sum").unlink()
        disk.fill()
        for attempt in range(3):
            if failure_of(lambda offset=100 + attempt: ledger.save_table(table, offset)):
                failure_count += 1
                ledger.tables = ledger.tables[:1]
            found = ConfigTable(Disk(), disk.path / "store", ConsumerOffsetTable).load()
            assert [found] == ledger.tables
        disk.free()
    assert failure_count


def run_out_of_names(disk: SmallDisk) -> None:
    """Space is there, but the file system has no room for one more file."""
    store, ledger = open_on(disk), Ledger()
    table = ConfigTable(Disk(), disk.path / "store", ConsumerOffsetTable)
    ledger.save_table(table, 1)
    ledger.append(store)
    names = disk.path / "names"
    names.mkdir()
    with pytest.raises(OSError, match="No space"):
        make_names_for_ever(names)
    assert failure_of(store.dispatch)
    assert failure_of(lambda: ledger.save_table(table, 2))
    ledger.tables = ledger.tables[:1]
    assert failure_of(lambda: append_for_ever(store, ledger))
    shutil.rmtree(names)
    ledger.append(store, body_bytes=2000)
    store.dispatch()
    ledger.check(store)
    ledger.save_table(table, 3)
    kill(store)
    check_found_again(disk, ledger)


SCENARIOS: dict[Scenario, str] = {
    append_until_full: "size=512k",
    dispatch_until_full: "size=512k",
    close_and_open_when_full: "size=512k",
    open_when_full_after_a_clean_close: "size=512k",
    truncate_when_full: "size=512k",
    save_table_when_full: "size=512k",
    run_out_of_names: "size=4m,nr_inodes=64",
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_full_disk_loses_nothing(scenario: Scenario, tmp_path: Path) -> None:
    run_on_small_disk(scenario, tmp_path / "disk", SCENARIOS[scenario])
