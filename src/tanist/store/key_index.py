"""The key index: finds messages by key without reading the log.

Derived from the log and built by dispatch. It keeps hashes only, so what it finds are candidates:
whoever asks reads the messages and compares their keys.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from tanist.clock import Clock
from tanist.errors import ForeignFile
from tanist.protocol.key_index import Keyed, key_hash
from tanist.store.disk import Disk
from tanist.store.index_file import IndexFile

NAME_DIGITS = 17


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
        for file in reversed(self._files):
            if file.header.entry_count > 1:
                return file.header.end_log_offset
        return -1

    @property
    def indexed_to_ms(self) -> int:
        """The store time of the newest message in the index; 0 if there is none."""
        return self._files[-1].header.end_timestamp_ms if self._files else 0

    @property
    def full_to_ms(self) -> int:
        """The store time of the last message in a file that is full; 0 if none is."""
        return self._files[-2].header.end_timestamp_ms if len(self._files) > 1 else 0

    def put(self, topic: str, keys: Sequence[str], log_offset: int, store_timestamp_ms: int) -> None:
        """Add a message under all its keys. It is found when ``write`` has put it into a file."""
        self.extend([(key_hash(topic, key), log_offset, store_timestamp_ms) for key in keys])

    def extend(self, keyed: Iterable[Keyed]) -> None:
        """Add messages whose keys are hashed already, in the order of the log."""
        self._unwritten += keyed

    def write(self) -> None:
        """Write what was put, but for messages that are there already.

        What a full disk refuses is not kept: whoever put it does so again.
        """
        unwritten, self._unwritten = self._unwritten, []
        if unwritten and unwritten[0][1] <= (indexed_to := self.indexed_to):
            unwritten = [keyed for keyed in unwritten if keyed[1] > indexed_to]
        while unwritten:
            count = _fitting(unwritten, self._files[-1].room) if self._files else 0
            if count:
                self._files[-1].put(unwritten[:count])
                del unwritten[:count]
            else:
                self._add_file()
                unwritten = _limited(unwritten, self._files[-1].room)

    def find(self, topic: str, key: str, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        """Log offsets of messages that may have this key, newest first, and None for what was passed over."""
        hashed = key_hash(topic, key)
        for file in self._files[::-1]:
            if not file.is_closed and file.covers(begin_ms, end_ms):
                yield from file.find(hashed, begin_ms, end_ms)

    def cut(self, log_offset: int, *, is_whole: bool = True) -> None:
        """Forget messages at or behind a log offset.

        ``is_whole`` is False after a crash, which may have taken any part of what was written last:
        a slot may then lead to an entry that is not there.
        """
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
