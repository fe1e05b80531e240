"""What happened, written down beside the offsets: one line of JSON an event, the newest last.

A line that a crash cut short, or that a disk damaged, is passed over and told; it costs no other. When there
are too many lines the oldest go.
"""

import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tanist.protocol.java_json import BAD_JSON
from tanist.store.disk import Disk

_log = logging.getLogger(__name__)

KEPT_ENTRIES = 1_000
MAX_BYTES = 64 * 1024 * 1024
"""An entry may hold the offsets of all groups, so counting entries is not enough."""
_SLACK_ENTRIES = 100
"""So many come on top before the oldest go: to write all of them anew is not for every event."""

EntryT = TypeVar("EntryT", bound=msgspec.Struct)


class JsonLines(Generic[EntryT]):
    """One such file. Its calls wait for the disk, and may come from several threads."""

    def __init__(
        self,
        disk: Disk,
        path: Path,
        entry_type: type[EntryT],
        *,
        kept_entries: int = KEPT_ENTRIES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._disk = disk
        self._path = path
        self._type = entry_type
        self._kept_entries = kept_entries
        self._max_bytes = max_bytes
        self._line_count: int | None = None
        self._lock = threading.Lock()

    def append(self, entries: Iterable[EntryT]) -> None:
        """Write entries down; on return no crash takes them back."""
        lines = [msgspec.json.encode(entry) + b"\n" for entry in entries]
        if not lines:
            return
        with self._lock:
            if self._line_count is None:
                self._line_count = len(self._lines())
            size_bytes = self._append(b"".join(lines))
            self._line_count += len(lines)
            if self._line_count >= self._kept_entries + _SLACK_ENTRIES or size_bytes > self._max_bytes:
                self._drop_oldest()

    def last(self, count: int) -> tuple[list[EntryT], int]:
        """The last ``count`` entries, and how many lines among them could not be read."""
        with self._lock:
            lines = self._lines()
        entries: list[EntryT] = []
        damaged_count = 0
        for line in reversed(lines):
            if len(entries) >= count:
                break
            try:
                entries.append(msgspec.json.decode(line, type=self._type))
            except BAD_JSON:
                damaged_count += 1
        if damaged_count:
            _log.warning("lines are damaged path=%s count=%d", self._path, damaged_count)
        return entries[::-1], damaged_count

    def _append(self, data: bytes) -> int:
        """Write behind what is there, and say how long the file is then."""
        if not self._disk.exists(self._path):
            self._disk.make_dir(self._path.parent)
            self._disk.write_durably(self._path, data)
            return len(data)
        with self._disk.open(self._path) as file:
            end = file.size_bytes
            if end and file.read(end - 1, 1) != b"\n":
                # The last line was cut short. It must not take this one with it.
                data = b"\n" + data
            file.write(end, data)
            file.sync()
            return end + len(data)

    def _drop_oldest(self) -> None:
        """Keep the newest, which may be half of what fits: the next ones shall find room too."""
        kept: list[bytes] = []
        room = self._max_bytes // 2
        for line in reversed(self._lines()[-self._kept_entries :]):
            room -= len(line) + 1
            if kept and room < 0:
                break
            kept.append(line)
        self._disk.write_durably(self._path, b"".join(line + b"\n" for line in reversed(kept)))
        self._line_count = len(kept)

    def _lines(self) -> list[bytes]:
        try:
            return self._disk.read(self._path).splitlines()
        except FileNotFoundError:
            return []
