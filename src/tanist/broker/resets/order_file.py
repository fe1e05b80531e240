"""The orders on disk: ``config/resetOrders.json``, and the audit log beside it."""

import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tanist.broker.json_lines import JsonLines
from tanist.broker.resets.audit import FILE_NAME as AUDIT_FILE_NAME
from tanist.broker.resets.audit import KEPT_ENTRIES, AuditEntry
from tanist.errors import RemoteProtocolError
from tanist.protocol.bodies.reset import ResetOrderView
from tanist.protocol.java_json import BAD_JSON
from tanist.store.backed_file import BackedFile
from tanist.store.disk import Disk

FILE_NAME = "resetOrders.json"


class SavedOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One order, and what a broker has to know of it beside what it shows."""

    view: ResetOrderView
    timestamp_ms: int = -1
    is_by_time: bool = False
    is_server_side: bool = False
    are_offsets_saved: bool = False
    """Whether the file of offsets has had those of the order since it was applied."""
    queue_id: int = -1
    is_of_slave: bool = False
    """Whether it was given while this broker was read in its master's place."""
    superseded: list[int] = []
    """Queues that another order has taken over."""
    is_judging: bool = False
    """Whether members of which nothing was known were still to be judged by what they do."""


class SavedOrders(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The file."""

    version: int = 0
    orders: list[SavedOrder] = []


class OrderFile:
    """One broker's. Its calls wait for the disk, and may come from several threads."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._file = BackedFile(disk, root / "config" / FILE_NAME)
        self._audit = JsonLines(
            disk, root / "config" / AUDIT_FILE_NAME, AuditEntry, kept_entries=KEPT_ENTRIES
        )
        self._lock = threading.Lock()
        self._saved_number = 0

    def load(self) -> SavedOrders:
        """What was saved last. Raises ForeignFile if neither the file nor its backup can be read."""
        return self._file.load(_decode) or SavedOrders()

    def save(self, number: int, version: int, orders: Sequence[bytes], audit: Sequence[AuditEntry]) -> None:
        """Replace what was saved, unless that had a greater number; on return no crash takes it back."""
        with self._lock:
            self._audit.append(audit)
            if number <= self._saved_number:
                return
            raws = [msgspec.Raw(order) for order in orders]
            self._file.save(msgspec.json.encode({"version": version, "orders": raws}))
            self._saved_number = number

    def last_audit(self, count: int) -> list[AuditEntry]:
        """The last entries of the audit log."""
        return self._audit.last(count)[0]


def encode_order(order: SavedOrder) -> bytes:
    return msgspec.json.encode(order)


def decode_order(data: bytes) -> SavedOrder:
    """Raises RemoteProtocolError if it is none."""
    try:
        return msgspec.json.decode(data, type=SavedOrder)
    except BAD_JSON as error:
        raise RemoteProtocolError(f"no order to reset offsets: {error}") from error


def _decode(data: bytes) -> SavedOrders:
    try:
        return msgspec.json.decode(data, type=SavedOrders)
    except BAD_JSON as error:
        raise RemoteProtocolError(f"no orders to reset offsets: {error}") from error
