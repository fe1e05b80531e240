"""One file of the key index on disk.

A file is mapped and sparse; the space for its slots is made sure of at once,
that for its entries piece by piece, so a small store does not pay for the 400 MB a file may grow to.
"""

import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

from tanist.errors import ForeignFile, RemoteProtocolError
from tanist.protocol.key_index import (
    HEADER_BYTES,
    INDEX_ENTRY,
    INDEX_ENTRY_BYTES,
    SLOT,
    SLOT_BYTES,
    IndexHeader,
    Keyed,
    decode_index_header,
    encode_index_header,
    put_keys,
)
from tanist.store.disk import Disk, File
from tanist.store.search import first_lost
from tanist.store.settings import REBUILD_INDEXES

_ALLOCATE_BYTES = 1 << 20


class IndexFile:
    """One file: it takes entries until it is full."""

    def __init__(self, file: File, slot_count: int, max_entries: int) -> None:
        self.path = file.path
        self._file = file
        self._slot_count = slot_count
        self._max_entries = max_entries
        self._entries_start = HEADER_BYTES + slot_count * SLOT_BYTES
        self._size_bytes = self._entries_start + max_entries * INDEX_ENTRY_BYTES
        self._map = file.map(self._size_bytes)
        self._allocated_to = 0
        self.is_closed = False
        self.header = decode_index_header(self._map[:HEADER_BYTES])
        self.is_dirty = False
        """Whether it was written since somebody made it durable."""

    @classmethod
    def create(cls, disk: Disk, path: Path, slot_count: int, max_entries: int) -> "IndexFile":
        file = disk.create(path)
        try:
            file.resize(HEADER_BYTES + slot_count * SLOT_BYTES + max_entries * INDEX_ENTRY_BYTES)
            file.allocate(0, HEADER_BYTES + slot_count * SLOT_BYTES)
            return cls(file, slot_count, max_entries)
        except BaseException:
            file.close()
            disk.remove(path)
            raise

    @classmethod
    def open(cls, disk: Disk, path: Path, slot_count: int, max_entries: int) -> "IndexFile":
        file = disk.open(path)
        try:
            expected = HEADER_BYTES + slot_count * SLOT_BYTES + max_entries * INDEX_ENTRY_BYTES
            if file.size_bytes < expected and not any(file.written_ranges(0)):
                # A crash came between the making of the file and its first entry.
                file.resize(expected)
            if file.size_bytes != expected:
                raise ForeignFile(
                    path,
                    f"it has {file.size_bytes} bytes and an index file has {expected}",
                    f"set maxHashSlotNum and maxIndexNum as the store was made with, or {REBUILD_INDEXES}",
                )
            file.allocate(0, HEADER_BYTES + slot_count * SLOT_BYTES)
            opened = cls(file, slot_count, max_entries)
            if opened.room < 0:
                raise ForeignFile(path, f"it claims {opened.header.entry_count} entries", REBUILD_INDEXES)
            return opened
        except RemoteProtocolError as error:
            file.close()
            raise ForeignFile(path, str(error), REBUILD_INDEXES) from error
        except BaseException:
            file.close()
            raise

    def is_behind(self, log_offset: int) -> bool:
        """Whether no message before a log offset is in the file."""
        return self.header.entry_count == 1 or self.header.begin_log_offset >= log_offset

    @property
    def room(self) -> int:
        """How many more entries fit."""
        return self._max_entries - self.header.entry_count

    def put(self, keyed: list[Keyed]) -> None:
        """Add messages under the hashes of their keys; the caller has seen that there is room.

        The header comes last: what a killed process had not counted yet does not count.
        """
        header = self.header
        count, used = header.entry_count, header.used_slot_count
        _, begin_log_offset, begin_timestamp_ms = keyed[0]
        if count > 1:
            begin_log_offset, begin_timestamp_ms = header.begin_log_offset, header.begin_timestamp_ms
        self._allocate(count + len(keyed))
        with memoryview(self._map) as file:
            used += put_keys(
                file,
                keyed,
                slot_count=self._slot_count,
                first=count,
                begin_timestamp_ms=begin_timestamp_ms,
            )
        count += len(keyed)
        self.is_dirty = True
        self._set_header(
            IndexHeader(begin_timestamp_ms, keyed[-1][2], begin_log_offset, keyed[-1][1], used, count)
        )

    def find(self, hashed: int, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        """Log offsets of messages whose key has this hash and whose time lies in the range, newest first.

        None stands for an entry that was passed over: there may be millions in a row.
        """
        header = self.header
        (number,) = SLOT.unpack_from(self._map, HEADER_BYTES + hashed % self._slot_count * SLOT_BYTES)
        # Whoever asks may take a rest, and the file may be dropped meanwhile.
        while 0 < number < header.entry_count and not self.is_closed:
            found, log_offset, seconds, previous = INDEX_ENTRY.unpack_from(
                self._map, self._entry_position(number)
            )
            # Times are whole seconds here, so the entry's own time is up to a second later.
            at_ms = header.begin_timestamp_ms + seconds * 1000
            if at_ms + 999 < begin_ms:
                return
            yield log_offset if found == hashed and at_ms <= end_ms else None
            if previous >= number:
                return
            number = previous

    def covers(self, begin_ms: int, end_ms: int) -> bool:
        header = self.header
        return (
            header.entry_count > 1
            and header.begin_timestamp_ms <= end_ms
            # After a cut the end is known to the second only, so the last message may be up to one later.
            and header.end_timestamp_ms + 999 >= begin_ms
        )

    def cut(self, log_offset: int) -> None:
        """Forget the entries of messages at or behind a log offset, and build the slots from the others.

        Entries stand in the order of the log. After a loss of power a slot may be there and its entry
        not, so the slots are not believed.
        """
        numbers = range(1, self.header.entry_count)
        kept = first_lost(numbers, lambda number: not self._is_before(number, log_offset))
        slots = array("i", bytes(self._slot_count * 4))
        first, last = self._entry_position(1), self._entry_position(kept)
        for number, entry in enumerate(INDEX_ENTRY.iter_unpack(self._map[first:last]), 1):
            slots[entry[0] % self._slot_count] = number
        used = self._slot_count - slots.count(0)
        if sys.byteorder == "little":
            slots.byteswap()
        self.is_dirty = True
        self._map[HEADER_BYTES : self._entries_start] = slots.tobytes()
        self._file.zero_from(last)
        if kept == 1:
            self._set_header(IndexHeader())
            return
        _, end_log_offset, seconds, _ = INDEX_ENTRY.unpack_from(self._map, self._entry_position(kept - 1))
        end_timestamp_ms = self.header.begin_timestamp_ms + seconds * 1000
        self._set_header(
            self.header._replace(
                end_timestamp_ms=end_timestamp_ms,
                end_log_offset=end_log_offset,
                used_slot_count=used,
                entry_count=kept,
            )
        )

    def close(self) -> None:
        self.is_closed = True
        self._map.close()
        self._file.close()

    def _entry_position(self, number: int) -> int:
        return self._entries_start + number * INDEX_ENTRY_BYTES

    def _is_before(self, number: int, log_offset: int) -> bool:
        hashed, found, _, _ = INDEX_ENTRY.unpack_from(self._map, self._entry_position(number))
        _, before, _, _ = INDEX_ENTRY.unpack_from(self._map, self._entry_position(number - 1))
        is_written = found > 0 or hashed > 0
        # Offsets never fall, unless a crash tore an entry and its offset reads as zero.
        return is_written and before <= found < log_offset

    def _allocate(self, entry_count: int) -> None:
        needed = self._entry_position(entry_count)
        if needed > self._allocated_to:
            start = self._allocated_to or self._entries_start
            size = min(needed - start + _ALLOCATE_BYTES, self._size_bytes - start)
            self._file.allocate(start, size)
            self._allocated_to = start + size

    def _set_header(self, header: IndexHeader) -> None:
        self._map[:HEADER_BYTES] = encode_index_header(header)
        self.header = header
