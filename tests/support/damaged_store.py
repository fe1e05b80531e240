"""The folder of a broker, as a master or a slave left it, and what was promised of it."""

import asyncio
import random
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Final

from tanist.errors import MQError, StoreError
from tanist.model.offsets import QueueOffset
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.sync import ConsumerOffsetTable, DelayOffsetTable, TopicConfigTable
from tanist.protocol.record import decode_record
from tanist.store import MessageStore
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tanist.store.scrub import Scrub
from tests.support.clocks import FakeClock
from tests.support.messages import TOPIC, kill, make_message, open_store

QUEUE_COUNT: Final = 2
OLDER, DISPATCHED, FLUSHED, WRITTEN = 12, 20, 26, 30
"""How many messages there are when the older version of all files is kept, when the queues are on disk, when
the log is, and when the process is killed."""

Tables = tuple[TopicConfigTable, ConsumerOffsetTable, DelayOffsetTable]


def _newest(root: Path, pattern: str) -> Path:
    return max(root.glob(pattern))


STORE_FILES: Final[Mapping[str, Callable[[Path, random.Random], Path]]] = {
    "commitlog": lambda root, rng: rng.choice(sorted(root.glob("commitlog/*"))),
    "consume queue": lambda root, rng: rng.choice(sorted(root.glob("consumequeue/*/*/*"))),
    "key index": lambda root, _: _newest(root, "index/*"),
    "epoch file": lambda root, _: root / "epochFileCheckpoint",
    "checkpoint": lambda root, _: root / "checkpoint",
}
TABLE_FILES: Final = ("topics.json", "consumerOffset.json", "delayOffset.json")


@dataclass(frozen=True, slots=True)
class Left:
    """What a process left, with an earlier version of it, and the messages that the disk has for sure."""

    root: Path
    older: Path
    promised: dict[tuple[int, int], bytes]
    """Bodies, by queue id and queue offset."""
    written: dict[tuple[int, int], bytes]
    """The same of all that may be there."""

    def copied(self, to: Path) -> Path:
        copytree(self.root, to)
        return to


def leave_master(folder: Path, *, is_closed: bool) -> Left:
    """A master's folder: two epochs, two queues, keys."""
    store = open_store(folder / "store")
    store.begin_epoch(1)
    return _filled(folder, store, lambda number: _append(store, number), is_closed=is_closed)


def leave_slave(folder: Path, *, is_closed: bool) -> Left:
    """A slave's folder: the bytes and the epochs are those that a master sent."""
    with open_store(folder / "peer") as master:
        store = open_store(folder / "store")
        store.follow_epoch(1, 0)

        def follow(number: int) -> tuple[int, int, bytes]:
            place = _append(master, number)
            end = store.log.log_end
            while end < master.log.log_end:
                end = store.append_raw(end, master.log.read_ahead(end, master.log.log_end - end))
            return place

        return _filled(folder, store, follow, is_closed=is_closed)


def _append(store: MessageStore, number: int) -> tuple[int, int, bytes]:
    message = make_message(number, queue_id=number % QUEUE_COUNT, body_bytes=300, keys=f"key-{number}")
    at = store.append(message)
    store.flush()
    return message.queue_id, at.queue_offset, bytes(message.body)


def _filled(
    folder: Path, store: MessageStore, add: Callable[[int], tuple[int, int, bytes]], *, is_closed: bool
) -> Left:
    root, older = folder / "store", folder / "older"
    written: dict[tuple[int, int], bytes] = {}
    promised: dict[tuple[int, int], bytes] = {}
    for number in range(WRITTEN):
        queue_id, queue_offset, body = add(number)
        written[queue_id, queue_offset] = body
        if number + 1 == OLDER:
            save_tables(root, 1)
            store.dispatch()
            store.checkpoint()
            copytree(root, older)
            store.follow_epoch(2, store.log.log_end)
        if number + 1 == DISPATCHED:
            store.dispatch()
        if number + 1 == FLUSHED:
            store.checkpoint()
            promised = dict(written)
    save_tables(root, 2)
    if is_closed:
        store.close()
        promised = written
    else:
        store.dispatch()
        kill(store)
    return Left(root, older, promised, written)


def tables(number: int) -> Tables:
    topics = {f"Topic{n}": TopicConfig(topic_name=f"Topic{n}", read_queue_count=n + 1) for n in range(number)}
    offsets = {f"{TOPIC}@group": {queue_id: QueueOffset(7 * number) for queue_id in range(QUEUE_COUNT)}}
    return (
        TopicConfigTable(topics=topics),
        ConsumerOffsetTable(offset_table=offsets),
        DelayOffsetTable(offset_table={1: QueueOffset(number)}),
    )


def save_tables(root: Path, number: int) -> None:
    topics, offsets, delays = tables(number)
    for file, table in (
        (ConfigTable(Disk(), root, TopicConfigTable), topics),
        (ConfigTable(Disk(), root, ConsumerOffsetTable), offsets),
        (ConfigTable(Disk(), root, DelayOffsetTable), delays),
    ):
        file.load()
        file.save(table)  # pyright: ignore[reportArgumentType]  # Each is the table of its file.


def load_tables(root: Path) -> Tables:
    return (
        ConfigTable(Disk(), root, TopicConfigTable).load(),
        ConfigTable(Disk(), root, ConsumerOffsetTable).load(),
        ConfigTable(Disk(), root, DelayOffsetTable).load(),
    )


@contextmanager
def refused_or_open(root: Path) -> Generator[MessageStore | StoreError]:
    """The store, or why it is refused."""
    try:
        store = open_store(root)
    except StoreError as refusal:
        yield refusal
        return
    try:
        yield store
    finally:
        kill(store)


def shown(store: MessageStore) -> dict[tuple[int, int], bytes]:
    """What consumers can read, by queue id and queue offset, as the bodies that they get."""
    found: dict[tuple[int, int], bytes] = {}
    for queue_id in range(QUEUE_COUNT):
        queue = store.queues.find(TOPIC, queue_id)
        if queue is None:
            continue
        for queue_offset, entry in queue.walk(queue.min_offset):
            try:
                body = bytes(decode_record(store.log.read(entry.log_offset, entry.size_bytes)).body)
            except MQError as error:
                body = str(error).encode()
            found[queue_id, queue_offset] = body
    return found


def scrubbed(store: MessageStore) -> list[str]:
    """What a broker with this store finds damaged while it runs."""
    scrub = Scrub(store, FakeClock())
    asyncio.run(scrub.run_round())
    return [str(damage) for damage in scrub.damage]
