"""The offsets of a broadcasting consumer: every member reads all queues and keeps its own place.

Memory is what counts, and the file is a copy that lags behind by as long as the consumer waits between
two persists. Rebalance therefore reads memory first: an offset that was corrected or reset holds at
once, whatever the file says.
"""

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Self

from tanist.client.errors import InvalidArgument
from tanist.client.offsets.offset_file import Kept, OffsetFile, Offsets
from tanist.client.offsets.offset_store import OffsetMemory
from tanist.errors import ForeignFile, StoreError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue

_log = logging.getLogger(__name__)


class LocalOffsets:
    """An OffsetStore in a file that Java's clients read and write too.

    Reading raises ForeignFile if neither the file nor its backup can be read. Persisting mends them.

    >>> async def next_of(queue: MessageQueue) -> QueueOffset | None:
    ...     offsets = LocalOffsets.of_member("10.0.0.5@DEFAULT", "billing")
    ...     await offsets.load()
    ...     return await offsets.read_for_rebalance(queue)
    """

    def __init__(self, path: Path) -> None:
        self._file = OffsetFile(path)
        self._memory = OffsetMemory()
        self._saved: Offsets = {}

    @classmethod
    def of_member(cls, client_id: str, group: str, *, directory: Path | None = None) -> Self:
        """The store of one member, where Java's clients have it: by default under ``~/.rocketmq_offsets``."""
        for argument, name in (("client_id", client_id), ("group", group)):
            if not name or name in (".", "..") or "/" in name or "\0" in name:
                raise InvalidArgument(argument, name, "use a name that can be that of a folder")
        root = Path.home() / ".rocketmq_offsets" if directory is None else directory
        return cls(root / client_id / group / "offsets.json")

    async def load(self) -> None:
        """Take what the file has into memory."""
        kept = await asyncio.to_thread(self._file.read)
        self._saved = kept.offsets
        for queue, offset in kept.offsets.items():
            self._memory.take(queue, offset)
        _log.info("offsets loaded path=%s queues=%d", self._file.path, len(kept.offsets))

    def in_memory(self, queue: MessageQueue) -> QueueOffset | None:
        return self._memory.find(queue)

    async def read(self, queue: MessageQueue) -> QueueOffset | None:
        found = self._memory.find(queue)
        if found is None:
            found = (await asyncio.to_thread(self._file.read)).offsets.get(queue)
        return found

    async def read_for_rebalance(self, queue: MessageQueue) -> QueueOffset | None:
        offset = await self.read(queue)
        # What was set while the file was read is newer.
        if (newer := self._memory.find(queue)) is not None:
            offset = newer
        self._memory.take(queue, offset)
        return offset

    def update(self, queue: MessageQueue, offset: QueueOffset, *, increase_only: bool) -> None:
        self._memory.update(queue, offset, increase_only=increase_only)

    def freeze(self, queue: MessageQueue, offset: QueueOffset) -> None:
        self._memory.freeze(queue, offset)

    async def persist(self, queues: Collection[MessageQueue]) -> frozenset[MessageQueue]:
        if not queues:
            return frozenset()
        try:
            await asyncio.to_thread(self._save, frozenset(queues))
        except (OSError, StoreError) as error:
            _log.warning("offsets not saved path=%s queues=%d error=%s", self._file.path, len(queues), error)
            return frozenset(queue for queue in queues if self._is_unsaved(queue))
        return frozenset()

    def remove(self, queue: MessageQueue) -> None:
        """Forget a queue, unless the file could not be written: the last place known is then here only."""
        if not self._is_unsaved(queue):
            self._memory.forget(queue)

    def _is_unsaved(self, queue: MessageQueue) -> bool:
        offset = self._memory.find(queue)
        return offset is not None and offset != self._saved.get(queue)

    def _save(self, queues: frozenset[MessageQueue]) -> None:
        """Runs beside the event loop, and to its end even if nobody waits any more."""
        with self._file.locked():
            # Not earlier: of two that wait for the lock, the later one must not write what is older.
            ours = {queue: offset for queue, offset in self._memory.copy().items() if queue in queues}
            if not ours:
                return
            kept = self._read_kept()
            offsets = kept.offsets | ours
            if kept.data is None or offsets != kept.offsets:
                self._file.write(offsets, kept)
            self._saved = offsets

    def _read_kept(self) -> Kept:
        try:
            return self._file.read()
        except ForeignFile as error:
            # Somebody broke the file and its backup since the start. Memory counts: they are made anew.
            _log.warning("offsets are written anew path=%s reason=%s", self._file.path, error)
            return Kept(self._saved)
