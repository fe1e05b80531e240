"""Where every group stands in every queue.

A commit changes memory alone; the disk gets all of them together every few seconds, so a crash takes
a group back by that much. The version counts commits by the hundreds: slaves need not know each one.

A slave takes its master's offsets as they are, also where they go back. What was committed to the slave
itself, while its master was away, gives way to them.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping

from tanist.clock import Clock
from tanist.errors import ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.groups import TRANSACTION_GROUP
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.codes import ResponseCode
from tanist.store.config_table import ConfigTable

_log = logging.getLogger(__name__)

Watcher = Callable[[Iterable[str]], None]
"""Is told the keys of what changed; see ``OffsetTable.keys``."""

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
        self.watchers: list[Watcher] = []
        """Told of every change that this broker makes."""
        self._take(dict(table.offset_table))
        self._commit_count = 0
        self._change_count = 0
        self._saved_count = 0
        self._disk = threading.Lock()
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
        return {_parts(key)[0] for key in self._keys_by_group.get(group, ())}

    def groups_of(self, topic: str) -> set[str]:
        """The groups that have offsets in a topic."""
        found = {_parts(key)[1] for key in self._keys_by_topic.get(topic, ())}
        return {group for group in found if _SEPARATOR not in group}

    def keys(self) -> list[str]:
        """What the offsets lie under, to go through them in steps; see ``queues_at``."""
        return list(self._offsets)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each topic and group of which there are offsets."""
        found = map(_parts, self.keys())
        return (pair for pair in found if _SEPARATOR not in pair[1])

    def queues_at(self, key: str) -> dict[int, QueueOffset]:
        """The offsets under one of ``keys``, as they are now; none if they were deleted meanwhile."""
        return dict(self._offsets.get(key, {}))

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Take a group's offset as it says, also if it goes back: a reset does that, or a lost member.

        Raises ResponseError if it is the first of its queue and there are too many.
        """
        key = _key(group, topic)
        queues = self._offsets.get(key)
        before = None if queues is None else queues.get(queue_id)
        if before == offset:
            return
        if before is None:
            # The broker's own progress is two offsets, and it can not do without them.
            if group != TRANSACTION_GROUP:
                self._check_room(1)
            self._count += 1
        if queues is None:
            queues = self._offsets[key] = {}
            self._index(key)
        queues[queue_id] = QueueOffset(offset)
        self._change_count += 1
        self._commit_count += 1
        if self._commit_count % _COMMITS_A_VERSION == 0:
            self._bump()
        for watcher in self.watchers:
            watcher((key,))
        if before is not None and offset < before:
            _log.info(
                "consumer offset goes back group=%s topic=%s queue=%d from=%d to=%d",
                *(group, topic, queue_id, before, offset),
            )

    def clone(self, source_group: str, destination_group: str, topics: Iterable[str]) -> None:
        """Let one group stand in all these topics where another does.

        Raises ResponseError, and copies nothing, if that would be too many offsets.
        """
        copies = {
            _key(destination_group, topic): dict(queues)
            for topic in topics
            if (queues := self._offsets.get(_key(source_group, topic)))
        }
        growth = sum(len(copy) - len(self._offsets.get(key, {})) for key, copy in copies.items())
        self._check_room(growth)
        self._count += growth
        self._offsets |= copies
        for key in copies:
            self._index(key)
        if copies:
            self._changed(copies)

    def delete_group(self, group: str) -> None:
        """Forget a group's offsets in all topics."""
        self._delete([*self._keys_by_group.get(group, ())])

    def delete_topic(self, topic: str) -> None:
        """Forget all groups' offsets in a topic."""
        self._delete([*self._keys_by_topic.get(topic, ())])

    def follow(self, table: ConsumerOffsetTable) -> bool:
        """Take all of the master's offsets over, and no others; False if they are ours already."""
        is_same = table.offset_table == self._offsets
        if is_same and table.data_version == self.data_version:
            return False
        self.data_version = table.data_version
        if not is_same:
            self._take(dict(table.offset_table))
        self._change_count += 1
        return True

    def follow_keys(
        self, changes: Mapping[str, dict[int, QueueOffset] | None], data_version: DataVersion
    ) -> None:
        """Take over what the master has under these keys, None for nothing, and leave the rest."""
        for key, queues in changes.items():
            if key in self._offsets:
                self._forget(key)
            if queues:
                self._offsets[key] = queues
                self._count += len(queues)
                self._index(key)
        self.data_version = data_version
        self._change_count += 1

    def adopt(self, changes: Mapping[str, Mapping[int, QueueOffset]]) -> None:
        """Let groups stand in these queues where somebody else says, by ``keys``, and leave all others.

        Raises ResponseError, and adopts nothing, if that would be too many offsets.
        """
        news = {
            key: queues
            for key, queues in changes.items()
            if not queues.items() <= self.queues_at(key).items()
        }
        growth = sum(len(queues.keys() - self.queues_at(key).keys()) for key, queues in news.items())
        self._check_room(growth)
        self._count += growth
        for key, queues in news.items():
            if key not in self._offsets:
                self._offsets[key] = {}
                self._index(key)
            self._offsets[key].update(queues)
        if news:
            self._changed(news)

    def move(self, group: str, topic: str, offsets: Mapping[int, QueueOffset]) -> None:
        """Let a group stand in all these queues of a topic where somebody says, at once.

        Raises ResponseError, and moves nothing, if that would be too many offsets.
        """
        self.adopt({_key(group, topic): offsets})

    def changed_since(
        self, base: Mapping[str, Mapping[int, QueueOffset]]
    ) -> dict[str, dict[int, QueueOffset]]:
        """The offsets that are other than in ``base``, or not in it, by ``keys`` and queue."""
        changed: dict[str, dict[int, QueueOffset]] = {}
        for key, queues in self._offsets.items():
            before = base.get(key, {})
            if news := {
                queue_id: offset for queue_id, offset in queues.items() if before.get(queue_id) != offset
            }:
                changed[key] = news
        return changed

    def lower_to(self, queue_end: Callable[[str, int], int]) -> int:
        """Take every group back that stands behind the end of its queue; how many offsets went back.

        The log may be shorter than the one that they were committed against: what comes there next must not
        be passed over.
        """
        lowered = 0
        for key, queues in self._offsets.items():
            topic, _ = _parts(key)
            behind = {
                queue_id: QueueOffset(end)
                for queue_id, offset in queues.items()
                if offset > (end := queue_end(topic, queue_id))
            }
            if behind:
                queues.update(behind)
                lowered += len(behind)
        if lowered:
            self._change_count += 1
            self._bump()
        return lowered

    def start_save(self) -> Callable[[], None] | None:
        """The disk's part of saving what changed, which may run on another thread; None if nothing did."""
        if not self.is_dirty:
            return None
        table, change_count = self.table(), self._change_count

        def finish() -> None:
            with self._disk:
                if change_count <= self._saved_count:
                    return
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
            self._forget(key)
        if keys:
            self._changed(keys)

    def _take(self, offsets: dict[str, dict[int, QueueOffset]]) -> None:
        self._offsets = offsets
        self._keys_by_group: dict[str, set[str]] = {}
        self._keys_by_topic: dict[str, set[str]] = {}
        for key in offsets:
            self._index(key)
        self._count = sum(map(len, offsets.values()))

    def _index(self, key: str) -> None:
        """A walk over all keys would take a tenth of a second."""
        topic, group = _parts(key)
        self._keys_by_topic.setdefault(topic, set()).add(key)
        self._keys_by_group.setdefault(group, set()).add(key)

    def _check_room(self, growth: int) -> None:
        if growth > 0 and self._count + growth > MAX_OFFSETS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD] groups have {self._count} offsets; delete groups that nobody uses",
            )

    def _forget(self, key: str) -> None:
        self._count -= len(self._offsets.pop(key))
        topic, group = _parts(key)
        _discard(self._keys_by_topic, topic, key)
        _discard(self._keys_by_group, group, key)

    def _changed(self, keys: Iterable[str]) -> None:
        self._change_count += 1
        self._bump()
        for watcher in self.watchers:
            watcher(keys)

    def _bump(self) -> None:
        self.data_version = self.data_version.bumped(now_ms=self._clock.now_ms())


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


def _discard(keys_by_name: dict[str, set[str]], name: str, key: str) -> None:
    keys = keys_by_name[name]
    keys.discard(key)
    if not keys:
        del keys_by_name[name]
