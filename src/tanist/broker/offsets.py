"""Where every group stands in every queue.

A commit changes memory alone; the disk gets all of them together every few seconds, so a crash takes
a group back by that much. The version counts commits by the hundreds: slaves need not know each one.
"""

import logging
from collections.abc import Callable, Mapping

from tanist.clock import Clock
from tanist.errors import ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.groups import TRANSACTION_GROUP
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.codes import ResponseCode
from tanist.store.config_table import ConfigTable

_log = logging.getLogger(__name__)

MAX_OFFSETS = 500_000
"""Of all groups together. Each costs memory, and the whole table must fit one frame: slaves ask for it."""
_COMMITS_A_VERSION = 500
_SEPARATOR = "@"


class OffsetTable:
    """The offsets by topic, group and queue. Make one with ``OffsetTable.open``."""

    def __init__(
        self, file: ConfigTable[ConsumerOffsetTable], table: ConsumerOffsetTable, clock: Clock
    ) -> None:
        self._file = file
        self._clock = clock
        self._offsets: dict[str, dict[int, QueueOffset]] = dict(table.offset_table)
        self._count = sum(map(len, self._offsets.values()))
        self._commit_count = 0
        self._change_count = 0
        self._saved_count = 0
        self.data_version = table.data_version

    @classmethod
    def open(cls, file: ConfigTable[ConsumerOffsetTable], clock: Clock) -> "OffsetTable":
        return cls(file, file.load(), clock)

    @property
    def is_dirty(self) -> bool:
        """Whether the disk lacks a change."""
        return self._change_count != self._saved_count

    def table(self) -> ConsumerOffsetTable:
        """A copy of all offsets as they are now."""
        offsets = {key: dict(queues) for key, queues in self._offsets.items()}
        return ConsumerOffsetTable(data_version=self.data_version, offset_table=offsets)

    def find(self, group: str, topic: str, queue_id: int) -> QueueOffset | None:
        """The next message a group will read in a queue; None if it never said."""
        offset = self._offsets.get(_key(group, topic), {}).get(queue_id)
        # A table that RocketMQ wrote may hold negative offsets, which mean none.
        return offset if offset is not None and offset >= 0 else None

    def queues(self, group: str, topic: str) -> Mapping[int, QueueOffset]:
        """Where a group stands in all queues of a topic."""
        return dict(self._offsets.get(_key(group, topic), {}))

    def topics_of(self, group: str) -> set[str]:
        """The topics a group has offsets in."""
        return {topic for topic, of_group in map(_parts, self._offsets) if of_group == group}

    def topics_by_group(self) -> dict[str, set[str]]:
        """The topics that each group has offsets in."""
        found: dict[str, set[str]] = {}
        for topic, group in map(_parts, self._offsets):
            found.setdefault(group, set()).add(topic)
        return found

    def groups_of(self, topic: str) -> set[str]:
        """The groups that have offsets in a topic."""
        found = {group for of_topic, group in map(_parts, self._offsets) if of_topic == topic}
        return {group for group in found if _SEPARATOR not in group}

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Take a group's offset as it says, also if it goes back: a reset does that, or a lost member.

        Raises ResponseError if it is the first of its queue and there are too many.
        """
        key = _key(group, topic)
        queues = self._offsets.get(key) or {}
        before = queues.get(queue_id)
        if before == offset:
            return
        if before is None:
            # The broker's own progress is two offsets, and it can not do without them.
            if group != TRANSACTION_GROUP:
                self._check_room(1)
            self._count += 1
            self._offsets[key] = queues
        queues[queue_id] = QueueOffset(offset)
        self._change_count += 1
        self._commit_count += 1
        if self._commit_count % _COMMITS_A_VERSION == 0:
            self._bump()
        if before is not None and offset < before:
            _log.info(
                "consumer offset goes back group=%s topic=%s queue=%d from=%d to=%d",
                *(group, topic, queue_id, before, offset),
            )

    def clone(self, source_group: str, destination_group: str, topic: str) -> None:
        """Let one group stand in a topic where another does."""
        if queues := self._offsets.get(_key(source_group, topic)):
            destination = _key(destination_group, topic)
            growth = len(queues) - len(self._offsets.get(destination, {}))
            self._check_room(growth)
            self._count += growth
            self._offsets[destination] = dict(queues)
            self._changed()

    def delete_group(self, group: str) -> None:
        """Forget a group's offsets in all topics."""
        self._delete([key for key in self._offsets if _parts(key)[1] == group])

    def delete_topic(self, topic: str) -> None:
        """Forget all groups' offsets in a topic."""
        self._delete([key for key in self._offsets if _parts(key)[0] == topic])

    def start_save(self) -> Callable[[], None] | None:
        """The disk's part of saving what changed, which may run on another thread; None if nothing did."""
        if not self.is_dirty:
            return None
        table, change_count = self.table(), self._change_count

        def finish() -> None:
            self._file.save(table)
            # Not earlier: what could not be saved is still to be saved.
            self._saved_count = change_count

        return finish

    def save(self) -> None:
        """Save what changed, if anything did."""
        if finish := self.start_save():
            finish()

    def _delete(self, keys: list[str]) -> None:
        for key in keys:
            self._count -= len(self._offsets.pop(key))
        if keys:
            self._changed()

    def _check_room(self, growth: int) -> None:
        if growth > 0 and self._count + growth > MAX_OFFSETS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD] groups have {self._count} offsets; delete groups that nobody uses",
            )

    def _changed(self) -> None:
        self._change_count += 1
        self._bump()

    def _bump(self) -> None:
        version: DataVersion = self.data_version
        self.data_version = version.bumped(now_ms=self._clock.now_ms(), state_version=version.state_version)


def check_client_may_commit(group: str) -> None:
    """Refuse to move the offsets by which the broker knows its transactions: some would be lost."""
    if group == TRANSACTION_GROUP:
        raise ResponseError(ResponseCode.NO_PERMISSION, f"the offsets of {group} are for the broker to move")


def _key(group: str, topic: str) -> str:
    return f"{topic}{_SEPARATOR}{group}"


def _parts(key: str) -> tuple[str, str]:
    """Topic and group. RocketMQ 5 has keys of three parts too, for broadcasting: those name no group."""
    topic, _, group = key.partition(_SEPARATOR)
    return topic, group
