"""The key index: finds messages by key without reading the log.

Derived from the log and built by dispatch. It keeps hashes only, so what it finds are candidates:
whoever asks reads the messages and compares their keys.

The newest keys are kept in memory until there are enough for one write, until somebody asks, or until a
checkpoint is taken: a crash before that finds them in the log again.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tanist.clock import Clock
from tanist.errors import DiskFull, ForeignFile
from tanist.protocol.key_index import Keyed, key_hash
from tanist.store.disk import Disk
from tanist.store.index_file import IndexFile

NAME_DIGITS = 17
_WRITE_KEYS = 256
"""So many new keys are worth a write."""


class KeyIndex:
    """All index files, oldest first. The last one is written to."""

    def __init__(
        self, disk: Disk, directory: Path, *, slot_count: int, max_entries: int, clock: Clock
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._slot_count = slot_count
        self._max_entries = max_entries
        self._clock = clock
        self._files: list[IndexFile] = []
        self._unwritten: list[Keyed] = []

    def open(self) -> None:
        for name in self._disk.names(self._directory):
            path = self._directory / name
            if len(name) != NAME_DIGITS or not name.isascii() or not name.isdecimal():
                raise ForeignFile(
                    path, f"the name is not {NAME_DIGITS} digits", "move it out of the store's folder"
                )
            self._files.append(IndexFile.open(self._disk, path, self._slot_count, self._max_entries))

    @property
    def indexed_to(self) -> int:
        """The log offset of the newest message in the index; -1 if there is none."""
        return self._unwritten[-1][1] if self._unwritten else self._written_to

    @property
    def _written_to(self) -> int:
        """The same of what the files have."""
        for file in reversed(self._files):
            if file.header.entry_count > 1:
                return file.header.end_log_offset
        return -1

    @property
    def indexed_to_ms(self) -> int:
        """The store time of the newest message in the index; 0 if there is none."""
        if self._unwritten:
            return self._unwritten[-1][2]
        return self._files[-1].header.end_timestamp_ms if self._files else 0

    @property
    def full_to_ms(self) -> int:
        """The store time of the last message in a file that is full; 0 if none is."""
        return self._files[-2].header.end_timestamp_ms if len(self._files) > 1 else 0

    def put(self, topic: str, keys: Sequence[str], log_offset: int, store_timestamp_ms: int) -> None:
        """Add a message under all its keys."""
        self.extend([(key_hash(topic, key), log_offset, store_timestamp_ms) for key in keys])

    def extend(self, keyed: Sequence[Keyed]) -> None:
        """Add messages whose keys are hashed already, in the order of the log; not those that are there."""
        if keyed and keyed[0][1] <= (indexed_to := self.indexed_to):
            keyed = [one for one in keyed if one[1] > indexed_to]
        self._unwritten += keyed

    def write_many(self) -> None:
        """Write what was put if that is worth it."""
        if len(self._unwritten) >= _WRITE_KEYS:
            self.write()

    def write(self) -> None:
        """Write what was put. If there is no room for it on disk it stays in memory."""
        while self._unwritten:
            count = _fitting(self._unwritten, self._files[-1].room) if self._files else 0
            if count:
                self._files[-1].put(self._unwritten[:count])
                del self._unwritten[:count]
            else:
                self._add_file()
                self._unwritten = _limited(self._unwritten, self._files[-1].room)

    def find(self, topic: str, key: str, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        """Log offsets of messages that may have this key, newest first, and None for what was passed over."""
        hashed = key_hash(topic, key)
        with suppress(DiskFull):
            self.write()
        for file in self._files[::-1]:
            if not file.is_closed and file.covers(begin_ms, end_ms):
                yield from file.find(hashed, begin_ms, end_ms)

    def cut(self, log_offset: int, *, is_whole: bool = True) -> None:
        """Forget messages at or behind a log offset.

        ``is_whole`` is False after a crash, which may have taken any part of what was written last:
        a slot may then lead to an entry that is not there.
        """
        self._unwritten = [one for one in self._unwritten if one[1] < log_offset]
        while self._files and self._files[-1].is_behind(log_offset):
            self._drop(-1)
        if self._files and (self._files[-1].header.end_log_offset >= log_offset or not is_whole):
            self._files[-1].cut(log_offset)

    def raise_min(self, log_start: int) -> None:
        """Delete the files of messages that the log has deleted; the last one stays."""
        while len(self._files) > 1 and self._files[0].header.end_log_offset < log_start:
            self._drop(0)

    def take_dirty(self) -> list[Path]:
        """The files written since they were taken last: the caller makes them durable."""
        dirty = [file for file in self._files if file.is_dirty]
        for file in dirty:
            file.is_dirty = False
        return [file.path for file in dirty]

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _add_file(self) -> None:
        self._disk.make_dir(self._directory)
        path = self._directory / self._next_name()
        self._files.append(IndexFile.create(self._disk, path, self._slot_count, self._max_entries))

    def _next_name(self) -> str:
        """The local time, to the millisecond; later than the last name even if the clock is not."""
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000).astimezone()
        name = f"{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}"
        last = self._files[-1].path.name if self._files else ""
        return max(name, f"{int(last) + 1:0{NAME_DIGITS}d}" if last else name)

    def _drop(self, position: int) -> None:
        file = self._files.pop(position)
        file.close()
        self._disk.remove(file.path)


def _fitting(keyed: Sequence[Keyed], room: int) -> int:
    """How many go into a file: a message is in one file with all its keys, else it might be added again."""
    if len(keyed) <= room:
        return len(keyed)
    while room and keyed[room][1] == keyed[room - 1][1]:
        room -= 1
    return room


def _limited(keyed: list[Keyed], room: int) -> list[Keyed]:
    """A message that has more keys than a whole file has room for is found by the first of them."""
    end = room
    while end < len(keyed) and keyed[end][1] == keyed[0][1]:
        end += 1
    return keyed[:room] + keyed[end:]
