"""Reads a piece of a file of the log from the disk and says what in it, and in the queues, is not sound.

It reads files and not mappings: when the disk does not give a page any more, a mapping kills the process. And
it only looks: what it finds may have been cut meanwhile, so whoever owns the store has the last word. Any
thread may do it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.message import is_queued
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.protocol.compiled import native
from tanist.protocol.queue_entry import ENTRY_BYTES, QueueEntry, decode_entries, encode_entry
from tanist.protocol.record import (
    BLANK_BYTES,
    MAGIC_BLANK,
    MAGIC_PREFIX,
    RECORD_HEAD,
    Record,
    check_record,
    decode_record,
    peek_record,
)
from tanist.protocol.record_sums import pass_sound
from tanist.protocol.tags import find_tag, tags_code
from tanist.store.disk import Disk, File
from tanist.store.dispatch import check_queue
from tanist.store.segment import segment_name

PIECE_BYTES = 1 << 20
_MAGIC_AT = 4
_AHEAD_BYTES = 4096
_MOST_AHEAD = 2048
"""Of so many queues what was read ahead is kept."""
_WALK_RECORDS = 1024


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A place in the log where a sound record has to begin, and none does."""

    log_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class QueueRun:
    """What a queue must have of some records of the log that follow each other in it."""

    topic: str
    queue_id: int
    first_offset: int
    entries: bytes

    def has_like(self, found: bytes) -> bool:
        """Whether a queue that has ``found`` there has this."""
        if self.topic != SCHEDULE_TOPIC:
            return found == self.entries
        entries = zip(decode_entries(self.entries), decode_entries(found), strict=False)
        return len(found) == len(self.entries) and all(self.is_like(*pair) for pair in entries)

    def is_like(self, due: QueueEntry, entry: QueueEntry) -> bool:
        """When a delayed message is due depends on the settings of its day, so that is not compared."""
        return entry == due or (self.topic == SCHEDULE_TOPIC and entry[:2] == due[:2])


@dataclass(frozen=True, slots=True)
class Piece:
    """What was found in one piece."""

    end: int
    """Where the next piece begins."""
    bad_record: BadRecord | None = None
    """What the piece begins with."""
    unlike: tuple[QueueRun, ...] = ()
    """Where the queues' files have something else."""


class Soundness:
    """Looks at the records of one file of the log, and at what the queues have of them."""

    def __init__(self, disk: Disk, queues: Path, queue_file_bytes: int) -> None:
        self._disk = disk
        self._queues = queues
        self._queue_file_bytes = queue_file_bytes
        self._ahead: dict[Path, tuple[int, bytes]] = {}
        """By queue what was read of it last, and where that lies: the next run follows it."""

    def look(self, file: File, *, start: int, size_bytes: int, log_offset: int, end: int) -> Piece:
        """Look at the records from an offset on, where one has to begin, to ``end`` at most.

        The file has ``size_bytes`` from ``start`` on, and all before ``end`` is on disk, the queues included.
        """
        try:
            data = file.read(log_offset - start, min(PIECE_BYTES, end - log_offset))
            passed = pass_sound(data, log_offset)
            if passed:
                runs = _runs(memoryview(data)[:passed], log_offset)
                return Piece(log_offset + passed, unlike=self._unlike(runs))
            record = _one(file, start=start, file_end=start + size_bytes, log_offset=log_offset, end=end)
        except (RemoteProtocolError, OSError) as error:
            behind = _next_record(file, start=start, log_offset=log_offset, end=end)
            return Piece(behind, BadRecord(log_offset, str(error)))
        if record is None:
            return Piece(start + size_bytes)
        return Piece(log_offset + len(record), unlike=self._unlike(_runs(memoryview(record), log_offset)))

    def _unlike(self, runs: Iterator[QueueRun]) -> tuple[QueueRun, ...]:
        return tuple(run for run in runs if not run.has_like(self._entries(run)))

    def _entries(self, run: QueueRun) -> bytes:
        """What a queue's files have where a run belongs; less if a file is not there."""
        found = bytearray()
        position = run.first_offset * ENTRY_BYTES
        end = position + len(run.entries)
        directory = self._queues / run.topic / str(run.queue_id)
        while position < end and (data := self._read(directory, position, end)):
            found += data
            position += len(data)
        return bytes(found)

    def _read(self, directory: Path, position: int, end: int) -> bytes:
        """Some of the bytes of a queue from a position on, which all lie in one file; none if it is gone."""
        ahead_at, ahead = self._ahead.get(directory, (0, b""))
        if ahead_at <= position < ahead_at + len(ahead):
            return ahead[position - ahead_at : end - ahead_at]
        start = position - position % self._queue_file_bytes
        size = min(max(end - position, _AHEAD_BYTES), start + self._queue_file_bytes - position)
        try:
            with self._disk.open(directory / segment_name(start), read_only=True) as file:
                data = file.read(position - start, size)
        except OSError:
            # Whoever owns the queues looks again, and can tell a file that is gone from a bad one.
            return b""
        if len(self._ahead) >= _MOST_AHEAD:
            self._ahead.clear()
        self._ahead[directory] = position, data
        return data[: end - position]


def _one(file: File, *, start: int, file_end: int, log_offset: int, end: int) -> bytes | None:
    """The record that begins here, sound; None if it is the blank that fills the file.

    Raises RemoteProtocolError for what is no sound record.
    """
    head = file.read(log_offset - start, BLANK_BYTES)
    size, magic = peek_record(head, 0)
    if magic == MAGIC_BLANK and log_offset + size == file_end:
        return None
    # What can not be so large is refused by its size.
    record = file.read(log_offset - start, min(max(size, BLANK_BYTES), end - log_offset))
    check_record(memoryview(record), 0, log_offset=log_offset, is_flushed=True)
    return record


def _next_record(file: File, *, start: int, log_offset: int, end: int) -> int:
    """Where a record behind a bad one says that it begins; ``end`` if none does."""
    position = log_offset + 1
    while position < end:
        try:
            data = file.read(position - start, min(PIECE_BYTES, end - position))
        except OSError:
            position += PIECE_BYTES
            continue
        if len(data) < RECORD_HEAD.size:
            break
        found = data.find(MAGIC_PREFIX)
        while found >= 0:
            head = data[max(found - _MAGIC_AT, 0) :][: RECORD_HEAD.size]
            if found >= _MAGIC_AT and len(head) == RECORD_HEAD.size:
                at = position + found - _MAGIC_AT
                if RECORD_HEAD.unpack(head)[2] == at:
                    return at
            found = data.find(MAGIC_PREFIX, found + 1)
        # The head of one may lie in both pieces.
        position += max(len(data) - RECORD_HEAD.size, 1)
    return end


def _runs(data: memoryview, log_offset: int) -> Iterator[QueueRun]:
    """What the queues must have of sound records."""
    position = 0
    while position < len(data):
        walked = None
        if native is not None:
            # Without delay levels messages that wait for their time are not of the usual kind.
            walked = native.walk_records(data, position, len(data), log_offset, _WALK_RECORDS, ())
        if walked is None:
            record = decode_record(data, position)
            position += record.size_bytes
            if (run := _run_of(record)) is not None:
                yield run
            continue
        position = walked[0]
        for topic, queue_id, first_offset, entries, _indexed_to in walked[2]:
            yield QueueRun(topic, queue_id, first_offset, entries)


def _run_of(record: Record) -> QueueRun | None:
    """The same of one record; None if it is in no queue."""
    try:
        check_queue(record)
    except LocalProtocolError:
        return None
    if not is_queued(record.sys_flag):
        return None
    code = tags_code(find_tag(bytes(record.properties)))
    entry = encode_entry(record.log_offset, record.size_bytes, code)
    return QueueRun(record.topic, record.queue_id, record.queue_offset, entry)
