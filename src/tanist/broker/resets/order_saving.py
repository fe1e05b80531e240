"""Which orders the disk does not have as they are, and the notes of the audit log that it lacks."""

from collections.abc import Callable, Collection

from tanist.broker.resets.audit import AuditEntry
from tanist.broker.resets.order import ResetOrder
from tanist.broker.resets.order_file import OrderFile, encode_order
from tanist.errors import DiskFull


class OrderSaving:
    """Of one table. An order is encoded when it has changed, and not when another one has."""

    def __init__(self, file: OrderFile | None) -> None:
        self._file = file
        self._notes: list[AuditEntry] = []
        self._encoded: dict[str, bytes] = {}
        self._number = 0
        self._is_dirty = False

    def touch(self, order_id: str) -> None:
        """An order has changed, or is gone."""
        self._encoded.pop(order_id, None)
        self._is_dirty = True

    def note(self, entry: AuditEntry) -> None:
        self._notes.append(entry)

    def forget_notes(self, order_id: str) -> None:
        """What was noted of an order and is not on disk did not come to pass."""
        self._notes = [entry for entry in self._notes if entry.order_id != order_id]

    def start(self, orders: Collection[ResetOrder], version: int) -> Callable[[], None] | None:
        """The disk's part, which may run on another thread; None if the disk has everything."""
        if self._file is None or not (self._is_dirty or self._notes):
            return None
        file, notes, encoded = self._file, self._notes, [self._encode(order) for order in orders]
        self._number += 1
        number = self._number
        self._notes, self._is_dirty = [], False

        def finish() -> None:
            try:
                file.save(number, version, encoded, notes)
            except (OSError, DiskFull):
                # What could not be saved is still to be saved.
                self._notes, self._is_dirty = notes + self._notes, True
                raise

        return finish

    def _encode(self, order: ResetOrder) -> bytes:
        if order.order_id not in self._encoded:
            self._encoded[order.order_id] = encode_order(order.saved())
        return self._encoded[order.order_id]
