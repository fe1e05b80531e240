"""The tables under ``config/``: topics, groups, consumer offsets, delay offsets; RocketMQ's files.

Written as standard JSON, read in the dialect that Java writes too.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.protocol.bodies.base import Body, encode_body
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.protocol.java_json import decode_java_json
from tanist.store.backed_file import BackedFile
from tanist.store.disk import Disk

FILE_NAMES: dict[type[Body], str] = {
    TopicConfigTable: "topics.json",
    SubscriptionGroupTable: "subscriptionGroup.json",
    ConsumerOffsetTable: "consumerOffset.json",
    DelayOffsetTable: "delayOffset.json",
}

_CONTENT: dict[type[Body], bytes] = {
    TopicConfigTable: b'"topicConfigTable"',
    SubscriptionGroupTable: b'"subscriptionGroupTable"',
    ConsumerOffsetTable: b'"offsetTable"',
    DelayOffsetTable: b'"offsetTable"',
}
"""What stands in every such file. Fields that nobody knows are passed over, so a table whose name is damaged
would be an empty one."""

TableT = TypeVar("TableT", TopicConfigTable, SubscriptionGroupTable, ConsumerOffsetTable, DelayOffsetTable)


class ConfigTable(Generic[TableT]):
    """One table on disk."""

    def __init__(self, disk: Disk, root: Path, table_type: type[TableT]) -> None:
        self._file = BackedFile(disk, root / "config" / FILE_NAMES[table_type], is_summed=True)
        self._type = table_type
        self._saving = threading.Lock()
        self._on_disk: TableT | None = None

    def load(self) -> TableT:
        """The table on disk; empty if there is none."""
        self._on_disk = self._file.load(self._decode) or self._type()
        return self._on_disk

    def save(self, table: TableT) -> None:
        """Replace the table on disk, laid out so that a person can read it.

        Two threads may save: one that keeps up with a master, and the event loop's.
        """
        data = msgspec.json.format(encode_body(table), indent=1)
        with self._saving:
            self._file.save(data)
            self._on_disk = table

    def start_save(self, table: TableT) -> Callable[[], None] | None:
        """The work of saving a table that is never changed, for another thread; None if it was saved last."""
        return None if table is self._on_disk else lambda: self.save(table)

    def _decode(self, data: bytes) -> TableT:
        table = decode_java_json(data, self._type, is_trusted=True)
        if (name := _CONTENT[self._type]) not in data:
            raise RemoteProtocolError(f"it has no {name.decode()}")
        return table
