"""What a store does before its machine crashes: scripts, each of which runs into a crash at any operation."""

import functools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tanist.model.message import Message, SysFlag
from tanist.store.config_table import ConfigTable, ConsumerOffsetTable
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore
from tests.support.clocks import FakeClock
from tests.support.forgetful_disk import ForgetfulDisk
from tests.support.ledger import Ledger, Written
from tests.support.messages import make_message

NOW_MS = 4_000_000_000_000
"""Later than the time of any file, so that all are old enough to be deleted."""

SETTINGS = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=200,
    max_hash_slot_num=150,
    max_index_num=40,
    file_reserved_time=0,
    delete_file_batch_max=5,
)
LONG_QUEUE = StoreSettings(
    mapped_file_size_commit_log=16384,
    mapped_file_size_consume_queue=2560,
    max_hash_slot_num=150,
    max_index_num=1000,
)


@dataclass
class Machine:
    """One disk, the store on it, and what the store has promised."""

    disk: ForgetfulDisk
    root: Path
    settings: StoreSettings
    ledger: Ledger = field(default_factory=Ledger)
    store: MessageStore | None = None

    def open(self) -> MessageStore:
        self.store = MessageStore.open(self.root, self.settings, clock=FakeClock(NOW_MS), disk=self.disk)
        return self.store

    def kill(self) -> None:
        """End the process: what it wrote is there for the next one, synced or not."""
        if self.store is not None:
            self.store._guard.release()
        self.disk.restart()


Script = Callable[[Machine], None]


def write_and_flush(machine: Machine) -> None:
    """Messages, over several files, now and then flushed, dispatched and checkpointed."""
    store, ledger = machine.open(), machine.ledger
    for turn in range(6):
        ledger.append(store, body_bytes=100 + 200 * turn)
        ledger.append_many(store, 3)
        if turn % 2:
            store.dispatch()
            store.queues.write()
        ledger.append(store, sys_flag=SysFlag.PREPARED if turn % 3 else SysFlag.ROLLBACK)
        ledger.flush(store)
        ledger.append(store)
        if turn == 2:
            store.checkpoint()
            store.log.segments.prepare()
    store.close()


def fill_queue_file(machine: Machine) -> None:
    """So many entries in one file that some lie in two sectors, also the first behind the checkpoint."""
    store, ledger = machine.open(), machine.ledger
    for count in (102, 1, 25, 30):
        ledger.append_many(store, _in_one_queue(ledger, count))
        store.dispatch()
        store.queues.write()
        if count == 102:
            store.checkpoint()


def fill_queue_files(machine: Machine) -> None:
    """Several new files of one queue between two checkpoints."""
    store, ledger = machine.open(), machine.ledger
    for count in (4, 20, 20, 4):
        ledger.append_many(store, _in_one_queue(ledger, count))
    store.dispatch()
    store.queues.write()
    store.checkpoint()
    ledger.append_many(store, _in_one_queue(ledger, 20))
    ledger.append_many(store, _in_one_queue(ledger, 20))
    store.dispatch()
    store.queues.write()
    ledger.truncate(store, 30)


def truncate(machine: Machine) -> None:
    """Cut inside a file and across files, before and behind what was flushed, and go on each time."""
    store, ledger = machine.open(), machine.ledger
    ledger.begin_epoch(store, 1)
    for turn, keep_count in enumerate((9, 4, 17)):
        ledger.append_many(store, 10)
        ledger.flush(store)
        store.dispatch()
        store.queues.write()
        store.checkpoint()
        ledger.append(store, body_bytes=900)
        ledger.begin_epoch(store, 2 + turn)
        for _ in range(4):
            ledger.append(store, body_bytes=900)
        store.dispatch()
        store.queues.write()
        store.log.segments.prepare()
        ledger.truncate(store, keep_count)
        ledger.append(store)
        ledger.flush(store)


def truncate_during_checkpoint(machine: Machine) -> None:
    """A checkpoint is begun, and the log is cut before the checkpoint's thread gets to the disk."""
    store, ledger = machine.open(), machine.ledger
    for keep_count in (8, 12):
        ledger.append_many(store, 12)
        store.dispatch()
        store.queues.write()
        pending = store.start_checkpoint()
        ledger.append(store)
        ledger.truncate(store, keep_count)
        ledger.append(store)
        pending.finish()
        ledger.append(store)
        store.dispatch()
        store.queues.write()
        store.checkpoint()


def replicate(machine: Machine) -> None:
    """A slave takes its master's log in pieces that end anywhere, and is made to cut some of it."""
    store, ledger = machine.open(), machine.ledger
    for turn, (data, records) in enumerate(_pieces(700)):
        ledger.append_raw(store, data, records)
        if turn % 2:
            ledger.flush(store)
            store.dispatch()
            store.queues.write()
        if turn % 5 == 4:
            store.checkpoint()
    ledger.truncate(store, 11, keeps_rest=True)
    ledger.append(store)
    ledger.flush(store)


def save_small_files(machine: Machine) -> None:
    """Tables and epochs, each saved over its last version."""
    store, ledger = machine.open(), machine.ledger
    table = ConfigTable(machine.disk, machine.root, ConsumerOffsetTable)
    table.load()
    for number in range(4):
        ledger.save_table(table, number)
        ledger.begin_epoch(store, 2 * number)
        ledger.append(store)
    store.close()


def delete_old_files(machine: Machine) -> None:
    """Retention takes files of the log, and with them files of the queues and of the index."""
    store, ledger = machine.open(), machine.ledger
    for _ in range(2):
        ledger.append_many(store, 6)
        for _ in range(3):
            ledger.append_many(store, _in_one_queue(ledger, 25))
        ledger.flush(store)
        store.dispatch()
        store.queues.write()
        store.checkpoint()
        ledger.append_many(store, 6)
        store.dispatch()
        store.queues.write()
        ledger.clean(store)
    store.close()


def delete_topics(machine: Machine) -> None:
    """A topic is deleted, gets messages again, and is deleted again; the log is flushed, cut and cleaned."""
    store, ledger = machine.open(), machine.ledger
    for keep_count in (10, 21):
        ledger.append_many(store, 9)
        ledger.flush(store)
        ledger.append(store, body_bytes=900)
        ledger.delete_topic(store, "orders")
        ledger.append_many(store, 6)
        store.dispatch()
        ledger.flush(store)
        ledger.delete_topic(store, "payments")
        ledger.append(store, body_bytes=900)
        ledger.truncate(store, keep_count)
        ledger.append_many(store, 3)
        ledger.delete_topic(store, "orders")
        ledger.append_many(store, 3)
        store.checkpoint()
    ledger.clean(store)
    ledger.append_many(store, 3)
    store.close()


def close_and_open(machine: Machine) -> None:
    """A clean stop promises all that was written."""
    store, ledger = machine.open(), machine.ledger
    for _ in range(3):
        ledger.append_many(store, 7)
        store.dispatch()
        store.queues.write()
        ledger.append(store, body_bytes=1500)
        store.close()
        ledger.flushed_to = ledger.written[-1].end
        store = machine.open()
        ledger.resume(store)


SCRIPTS: dict[Script, StoreSettings] = {
    write_and_flush: SETTINGS,
    fill_queue_file: LONG_QUEUE,
    fill_queue_files: SETTINGS,
    truncate: SETTINGS,
    truncate_during_checkpoint: SETTINGS,
    replicate: SETTINGS,
    save_small_files: SETTINGS,
    delete_old_files: SETTINGS,
    delete_topics: SETTINGS,
    close_and_open: SETTINGS,
}


def _in_one_queue(ledger: Ledger, count: int) -> list[Message]:
    """Small messages without keys."""
    first = len(ledger.written)
    return [make_message(number) for number in range(first, first + count)]


@functools.cache
def _master_log() -> tuple[bytes, list[Written]]:
    """A log of two and a half files, and what is in it."""
    ledger = Ledger()
    with (
        tempfile.TemporaryDirectory() as folder,
        MessageStore.open(Path(folder), SETTINGS, clock=FakeClock(NOW_MS)) as store,
    ):
        for number in range(18):
            ledger.append(store, body_bytes=30 * number)
        data = b"".join(segment.view for segment in store.log.segments)[: store.log.log_end]
    return data, ledger.written


def _pieces(size_bytes: int) -> Iterator[tuple[bytes, list[Written]]]:
    """The master's log in pieces, each with the records that end in it."""
    data, records = _master_log()
    for start in range(0, len(data), size_bytes):
        ended = [written for written in records if start < written.end <= start + size_bytes]
        yield data[start : start + size_bytes], ended
