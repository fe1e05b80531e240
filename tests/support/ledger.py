"""What a store was asked to do and what it promised, and whether a store found later keeps to that.

A ``Ledger`` uses a store on behalf of a test. Before each step it writes down what the step may
change, after it what the store has promised by returning. ``check`` compares an opened store with
that, and with itself: log, consume queues and key index must tell the same story.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tanist.model.epochs import EpochHistory
from tanist.model.message import TRANSACTION_MASK, Appended, Message, SysFlag
from tanist.model.offsets import QueueOffset
from tanist.protocol.key_index import INDEX_ENTRY
from tanist.protocol.properties import find_property
from tanist.protocol.queue_entry import ENTRY_BYTES, QueueEntry
from tanist.protocol.record import Record, check_record, decode_record
from tanist.protocol.tags import index_keys, tags_code
from tanist.store.config_table import ConfigTable, ConsumerOffsetTable
from tanist.store.disk import Disk
from tanist.store.diverged import diverged_folders, read_diverged, read_report
from tanist.store.store import MessageStore
from tests.support.messages import make_message

QUEUES = (("orders", 0), ("orders", 1), ("payments", 0))

Epochs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A message and, once the store has said so, where and how it lies in the log."""

    message: Message
    log_offset: int = -1
    raw: bytes = b""

    @property
    def end(self) -> int:
        return self.log_offset + len(self.raw)


class Ledger:
    """The use of one store by one test, over as many openings as the test likes."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        """What the log holds, oldest first."""
        self.in_flight: Sequence[Message] = ()
        """What is being appended: it may be there, or the first part of it."""
        self.flushed_to = 0
        self.truncating_to: int | None = None
        self.kept_rest: list[tuple[int, bytes | memoryview]] = []
        """What was on disk and was to be cut, by log offset: the log has it, or a folder beside it."""
        self.log_starts = range(1)
        """Where the log may begin."""
        self.epochs: list[Epochs] = [()]
        """The epochs that may stand on disk: one history, or two while they are changed."""
        self.deletions: dict[str, list[int]] = {}
        """The places at which a topic may have been deleted last: one, or two while it is deleted again."""
        self.tables = [ConsumerOffsetTable()]
        """The tables that may stand on disk, likewise."""
        self._message_count = 0

    # Using the store

    def next_message(self, *, body_bytes: int = 40, sys_flag: int = 0) -> Message:
        """A message like no other, with a tag, a key of its own and one that it shares with others."""
        number = self._message_count
        self._message_count += 1
        topic, queue_id = QUEUES[number % len(QUEUES)]
        return make_message(
            number,
            topic=topic,
            queue_id=queue_id,
            body_bytes=body_bytes,
            keys=f"all fifth-{number % 5}",
            tag=f"tag-{number % 2}",
            sys_flag=sys_flag,
            UNIQ_KEY=f"id-{number}",
        )

    def append(self, store: MessageStore, *, body_bytes: int = 40, sys_flag: int = 0) -> None:
        self.in_flight = [self.next_message(body_bytes=body_bytes, sys_flag=sys_flag)]
        self._landed(store, [store.append(self.in_flight[0])])

    def append_many(self, store: MessageStore, messages: int | Iterable[Message]) -> None:
        """Append these messages, or so many new ones, one after the other."""
        if isinstance(messages, int):
            messages = [self.next_message() for _ in range(messages)]
        for message in messages:
            self.in_flight = [message]
            self._landed(store, [store.append(message)])

    def append_raw(self, store: MessageStore, data: bytes, records: Sequence[Written]) -> None:
        """Append bytes that a master sent; these records are whole with them."""
        self.in_flight = [written.message for written in records]
        store.append_raw(store.log.log_end, data)
        self.written += records
        self.in_flight = ()

    def flush(self, store: MessageStore) -> None:
        # What a master sent may end inside a record, of which nothing is promised.
        flushed_to = store.flush()
        self.flushed_to = max(
            (written.end for written in self.written if written.end <= flushed_to), default=0
        )

    def truncate(self, store: MessageStore, keep_count: int, *, keeps_rest: bool = False) -> None:
        """Cut behind the first messages. The rest is gone, or kept as what no other replica has."""
        log_offset = self.written[keep_count].log_offset
        if keeps_rest:
            self.flush(store)
            self.kept_rest = [
                (written.log_offset, written.message.body) for written in self.written[keep_count:]
            ]
            store.keep_diverged(log_offset)
        self.truncating_to = log_offset
        cut = EpochHistory(store.epochs.epochs)
        cut.cut(log_offset)
        self.epochs = [*self.epochs, cut.epochs]
        store.truncate_to(log_offset)
        self.truncating_to = None
        self.written = self.written[:keep_count]
        self._cut_deletions(log_offset)
        self.epochs = [cut.epochs]
        self.flushed_to = store.log.flushed_to

    def begin_epoch(self, store: MessageStore, epoch: int) -> None:
        begun = EpochHistory(store.epochs.epochs)
        begun.begin(epoch, store.log.log_end)
        self.epochs = [*self.epochs, begun.epochs]
        store.begin_epoch(epoch)
        self.epochs = [begun.epochs]

    def clean(self, store: MessageStore) -> None:
        self.log_starts = range(self.log_starts.start, store.log.segments[-1].start + 1)
        store.clean(is_asked=True)
        self.log_starts = range(store.log.log_start, store.log.log_start + 1)

    def delete_topic(self, store: MessageStore, topic: str) -> None:
        before = self.deletions.get(topic, [0])
        self.deletions[topic] = [*before, store.log.log_end]
        store.delete_topics([topic])
        self.deletions[topic] = [store.log.log_end]

    def save_table(self, table: ConfigTable[ConsumerOffsetTable], offset: int) -> None:
        """Save offsets of many groups, more than a sector of them."""
        queues = {queue_id: QueueOffset(offset) for queue_id in range(2)}
        saved = ConsumerOffsetTable(offset_table={f"orders@group-{number}": queues for number in range(20)})
        self.tables = [*self.tables, saved]
        table.save(saved)
        self.tables = [saved]

    def resume(self, store: MessageStore) -> None:
        """Go on with a store that was opened again: what it found is now what it holds."""
        self.check(store)
        self.written = [Written(message_of(record), record.log_offset, raw) for record, raw in walk(store)]
        self.in_flight = ()
        self.flushed_to = store.log.flushed_to
        self.truncating_to = None
        self.epochs = [store.epochs.epochs]
        self.deletions = {topic: [first_kept(store, topic)] for topic in self.deletions}

    def _cut_deletions(self, log_end: int) -> None:
        self.deletions = {
            topic: [min(place, log_end) for place in places] for topic, places in self.deletions.items()
        }

    def _landed(self, store: MessageStore, appended: Sequence[Appended]) -> None:
        for message, at in zip(self.in_flight, appended, strict=True):
            raw = bytes(store.log.read(at.log_offset, at.size_bytes))
            self.written.append(Written(message, at.log_offset, raw))
        self.in_flight = ()

    # Checking a store

    def promises(self) -> bytes:
        """The hash of all that ``check`` holds a store to: with the same promises the same store is sound."""
        told = {name: value for name, value in vars(self).items() if name != "_message_count"}
        return hashlib.sha256(repr(told).encode()).digest()

    def check(self, store: MessageStore) -> None:
        """Everything promised is there, and nothing that was never asked for."""
        found = walk(store)
        self._check_log(store, found)
        self._check_deletions(store)
        check_indexes(store, found)
        assert store.epochs.last is None or store.epochs.last.start <= store.log.log_end
        histories = [_without_lost(epochs, store.log.log_end) for epochs in self.epochs]
        assert store.epochs.epochs in histories, f"{store.epochs.epochs} is none of {histories}"
        if self.kept_rest:
            self._check_rest(store, found)
        table = ConfigTable(Disk(), store.root, ConsumerOffsetTable).load()
        assert table in self.tables, "the table is neither the old one nor the new one"

    def _check_rest(self, store: MessageStore, found: "list[tuple[Record, bytes]]") -> None:
        in_log = [(record.log_offset, bytes(record.body)) for record, _ in found]
        reports = {folder: read_report(folder) for folder in diverged_folders(store.root)}
        kept = [
            [(record.log_offset, bytes(record.body)) for record in read_diverged(folder, report)]
            for folder, report in reports.items()
            if report is not None
        ]
        assert set(self.kept_rest) <= set(in_log) or self.kept_rest in kept, "what was cut is not kept"

    def _check_log(self, store: MessageStore, found: "list[tuple[Record, bytes]]") -> None:
        log_start, log_end = store.log.log_start, store.log.log_end
        assert log_start in self.log_starts
        expected = [written for written in self.written if written.log_offset >= log_start]
        expected += [Written(message) for message in self.in_flight]
        assert len(found) <= len(expected), f"{len(found)} messages where {len(expected)} were written"
        for (record, raw), written in zip(found, expected, strict=False):
            assert message_of(record) == written.message
            assert not written.raw or (record.log_offset, raw) == (written.log_offset, written.raw)
        # A truncation that was begun is done or it is not: nothing between is promised, or allowed.
        is_cut = self.truncating_to is not None and log_end <= self.truncating_to
        promised_to = min(self.flushed_to, self.truncating_to or 0) if is_cut else self.flushed_to
        assert log_end >= promised_to, f"the log ends at {log_end} and was flushed to {promised_to}"

    def _check_deletions(self, store: MessageStore) -> None:
        """A topic was deleted where it was asked, or where the log ends if a crash took more than that."""
        for topic, places in self.deletions.items():
            log_start, log_end = store.log.log_start, store.log.log_end
            allowed = {max(log_start, min(place, log_end)) for place in places}
            if self.truncating_to is not None:
                allowed |= {min(place, self.truncating_to) for place in allowed}
            assert first_kept(store, topic) in allowed, f"{topic} is deleted at none of {allowed}"


def first_kept(store: MessageStore, topic: str) -> int:
    return store._deletions.first_kept(topic, store.log.log_start)


def walk(store: MessageStore) -> list[tuple[Record, bytes]]:
    """Every record of the log, checked, up to its end, behind which there must be zeros."""
    found: list[tuple[Record, bytes]] = []
    for segment in store.log.segments:
        position = 0
        end = max(min(store.log.log_end - segment.start, segment.size_bytes), 0)
        while position < end:
            size = check_record(segment.view, position, log_offset=segment.start + position)
            if size:
                raw = bytes(segment.view[position : position + size])
                found.append((decode_record(memoryview(raw)), raw))
            position = position + size if size else segment.size_bytes
        assert position == end, f"the log ends inside a record of {segment.path}"
        assert not any(segment.view[end:]), f"{segment.path} goes on behind the log's end"
    return found


def message_of(record: Record) -> Message:
    """The message that was sent, out of what the log holds."""
    return Message(
        topic=record.topic,
        queue_id=record.queue_id,
        body=bytes(record.body),
        properties=bytes(record.properties),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp_ms=record.born_timestamp_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
    )


def check_indexes(store: MessageStore, found: "list[tuple[Record, bytes]]") -> None:
    """Consume queues and key index hold what the log's records say, and nothing else."""
    records = [record for record, _ in found]
    _check_queues(store, records)
    _check_keys(store, records)


def _check_queues(store: MessageStore, records: list[Record]) -> None:
    """Each queue holds one entry for each of its messages that the log has and that are not deleted."""
    expected: dict[tuple[str, int], list[tuple[int, QueueEntry]]] = defaultdict(list)
    for record in records:
        is_deleted = record.log_offset < first_kept(store, record.topic)
        if record.sys_flag & TRANSACTION_MASK in (0, SysFlag.COMMIT) and not is_deleted:
            code = tags_code(find_property(bytes(record.properties), "TAGS"))
            entry = QueueEntry(record.log_offset, record.size_bytes, code)
            expected[record.topic, record.queue_id].append((record.queue_offset, entry))
    for key, queue in store.queues:
        entries = queue.entries(queue.min_offset, queue.max_offset - queue.min_offset)
        assert list(enumerate(entries, queue.min_offset)) == expected.pop(key, []), f"queue {key}"
        assert store.log.next_queue_offsets[key] == queue.max_offset
        for path in (store.root / "consumequeue" / key[0] / str(key[1])).iterdir():
            behind = max(queue.max_offset * ENTRY_BYTES - int(path.name), 0)
            assert not any(path.read_bytes()[behind:]), f"{path} goes on behind the queue's end"
    assert not expected, f"queues are missing: {list(expected)}"


def _check_keys(store: MessageStore, records: list[Record]) -> None:
    """Each key finds its messages, newest first, and the files hold no other entries."""
    expected: dict[tuple[str, str], list[int]] = defaultdict(list)
    for record in reversed(records):
        if record.sys_flag & TRANSACTION_MASK != SysFlag.ROLLBACK:
            for key in index_keys(record.properties):
                expected[record.topic, key].append(record.log_offset)
    for (topic, key), all_offsets in expected.items():
        log_offsets = [log_offset for log_offset in all_offsets if log_offset >= first_kept(store, topic)]
        found = [record.log_offset for record in store.find_by_key(topic, key, max_count=1 << 20)]
        assert found == log_offsets, f"key {key} of {topic} finds {found} instead of {log_offsets}"
    known = sorted(log_offset for log_offsets in expected.values() for log_offset in log_offsets)
    indexed = [
        INDEX_ENTRY.unpack_from(file._map, file._entry_position(number))[1]
        for file in store.index._files
        for number in range(1, file.header.entry_count)
    ]
    assert [log_offset for log_offset in indexed if log_offset >= store.log.log_start] == known


def _without_lost(epochs: Epochs, log_end: int) -> Epochs:
    """The epochs, but for those that a crash took the first byte of."""
    return tuple((epoch, start) for epoch, start in epochs if start <= log_end)
