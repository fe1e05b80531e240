"""What slave consumption did to a group, written down beside the offsets; see ``json_lines``."""

from pathlib import Path

from tanist.broker.json_lines import KEPT_ENTRIES, MAX_BYTES, JsonLines
from tanist.protocol.bodies.slave_consume import LedgerEntry, LedgerEvent, SlaveConsumeLedger
from tanist.store.disk import Disk

__all__ = ["KEPT_ENTRIES", "MAX_BYTES", "LedgerEntry", "LedgerEvent", "LedgerFile"]

FILE_NAME = "slaveConsumeLedger.jsonl"


class LedgerFile:
    """One broker's. Its calls wait for the disk, and may come from several threads."""

    def __init__(
        self, disk: Disk, root: Path, *, kept_entries: int = KEPT_ENTRIES, max_bytes: int = MAX_BYTES
    ) -> None:
        self._lines = JsonLines(
            disk, root / "config" / FILE_NAME, LedgerEntry, kept_entries=kept_entries, max_bytes=max_bytes
        )

    def append(self, entry: LedgerEntry) -> None:
        """Write an entry down; on return no crash takes it back."""
        self._lines.append((entry,))

    def last(self, count: int) -> SlaveConsumeLedger:
        """The last ``count`` entries, and how many lines among them could not be read."""
        entries, damaged_count = self._lines.last(count)
        return SlaveConsumeLedger(entries=entries, damaged_count=damaged_count)
