"""What slave consumption did to a group, written down: one line of JSON an event, the newest last.

The file is beside the offsets. A line that a crash cut short, or that a disk damaged, is passed over and
told; it costs no other. When there are too many lines the oldest go.
"""

import logging
import threading
from pathlib import Path

import msgspec

from tanist.protocol.bodies.slave_consume import LedgerEntry, LedgerEvent, SlaveConsumeLedger
from tanist.store.disk import Disk

__all__ = ["KEPT_ENTRIES", "MAX_BYTES", "LedgerEntry", "LedgerEvent", "LedgerFile"]

_log = logging.getLogger(__name__)

FILE_NAME = "slaveConsumeLedger.jsonl"
KEPT_ENTRIES = 1_000
MAX_BYTES = 64 * 1024 * 1024
"""An entry may hold the offsets of all groups, so counting entries is not enough."""
_SLACK_ENTRIES = 100
"""So many come on top before the oldest go: to write all of them anew is not for every event."""


class LedgerFile:
    """One broker's. Its calls wait for the disk, and may come from several threads."""

    def __init__(
        self, disk: Disk, root: Path, *, kept_entries: int = KEPT_ENTRIES, max_bytes: int = MAX_BYTES
    ) -> None:
        self._disk = disk
        self._path = root / "config" / FILE_NAME
        self._kept_entries = kept_entries
        self._max_bytes = max_bytes
        self._line_count: int | None = None
        self._lock = threading.Lock()

    def append(self, entry: LedgerEntry) -> None:
        """Write an entry down; on return no crash takes it back."""
        line = msgspec.json.encode(entry) + b"\n"
        with self._lock:
            if self._line_count is None:
                self._line_count = len(self._lines())
            size_bytes = self._append(line)
            self._line_count += 1
            if self._line_count >= self._kept_entries + _SLACK_ENTRIES or size_bytes > self._max_bytes:
                self._drop_oldest()

    def last(self, count: int) -> SlaveConsumeLedger:
        """The last ``count`` entries, and how many lines among them could not be read."""
        with self._lock:
            lines = self._lines()
        entries: list[LedgerEntry] = []
        damaged_count = 0
        for line in reversed(lines):
            if len(entries) >= count:
                break
            try:
                entries.append(msgspec.json.decode(line, type=LedgerEntry))
            except (msgspec.DecodeError, UnicodeDecodeError):
                damaged_count += 1
        if damaged_count:
            _log.warning("lines of the ledger are damaged path=%s count=%d", self._path, damaged_count)
        return SlaveConsumeLedger(entries=entries[::-1], damaged_count=damaged_count)

    def _append(self, line: bytes) -> int:
        """Write behind what is there, and say how long the file is then."""
        if not self._disk.exists(self._path):
            self._disk.make_dir(self._path.parent)
            self._disk.write_durably(self._path, line)
            return len(line)
        with self._disk.open(self._path) as file:
            end = file.size_bytes
            if end and file.read(end - 1, 1) != b"\n":
                # The last line was cut short. It must not take this one with it.
                line = b"\n" + line
            file.write(end, line)
            file.sync()
            return end + len(line)

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
