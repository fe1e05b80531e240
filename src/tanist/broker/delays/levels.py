"""Messages with a delay level: up to where each level is delivered, and when to look at it again.

    RESTING   nothing waits in the level's queue             -> looked at when the queue grows
    WAITING   its first message is due at ``wake_ms``        -> looked at then
    READY     something may be due, or nobody has looked yet -> looked at in the next turn

Pure but for the file, which has RocketMQ's form. Whoever delivers reads the queues and reports here.
The next offset of a level goes up by what was delivered and by nothing else.
"""

import logging
from collections.abc import Callable, Sequence

from tanist.clock import Clock
from tanist.model.integers import INT64_MAX
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import DelayOffsetTable
from tanist.store.config_table import ConfigTable

_log = logging.getLogger(__name__)

_CHANGES_A_VERSION = 200
_READY_MS = 0


class LevelSchedule:
    """The delay levels by number, from 1 on. Make one with ``LevelSchedule.open``."""

    def __init__(
        self,
        file: ConfigTable[DelayOffsetTable],
        table: DelayOffsetTable,
        *,
        delays_ms: Sequence[int],
        clock: Clock,
    ) -> None:
        self._file = file
        self._clock = clock
        self._delays_ms = tuple(delays_ms)
        self._offsets = _offsets_of(table)
        self._wake_ms: dict[int, int] = {}
        self._change_count = 0
        self._saved_count = 0
        self._data_version = table.data_version
        self.watchers: list[Callable[[int], None]] = []
        """Told the level of every delivery."""

    @classmethod
    def open(
        cls, file: ConfigTable[DelayOffsetTable], *, delays_ms: Sequence[int], clock: Clock
    ) -> "LevelSchedule":
        return cls(file, file.load(), delays_ms=delays_ms, clock=clock)

    @property
    def levels(self) -> list[int]:
        """The levels that have an offset."""
        return list(self._offsets)

    @property
    def next_wake_ms(self) -> int | None:
        """When the next level is to be looked at; None if all of them rest."""
        return min(self._wake_ms.values(), default=None)

    def ready_levels(self, now_ms: int) -> list[int]:
        """The levels to look at now, the one that has waited longest first."""
        ready = [
            level for level, wake_ms in self._wake_ms.items() if not self._is_to_wait(level, wake_ms, now_ms)
        ]
        return sorted(ready, key=self._wake_ms.__getitem__)

    def next_offset(self, level: int) -> int:
        """The first message of a level that is not delivered yet."""
        return self._offsets.get(level, 0)

    def table(self) -> DelayOffsetTable:
        """A copy of all offsets as they are now."""
        offsets = {level: QueueOffset(offset) for level, offset in self._offsets.items()}
        return DelayOffsetTable(data_version=self._data_version, offset_table=offsets)

    def on_opened(self, level: int, *, min_offset: int, max_offset: int) -> None:
        """The level has a queue with these bounds: what is not in it can not be delivered any more."""
        offset = self.next_offset(level)
        self._offsets[level] = min(max(offset, min_offset), max_offset)
        if offset < min_offset:
            _log.error(
                "delayed messages are gone with their files level=%d count=%d", level, min_offset - offset
            )
        elif offset > max_offset:
            _log.warning("delay offset is past its queue level=%d from=%d to=%d", level, offset, max_offset)
        self.on_grown(level)

    def on_grown(self, level: int) -> None:
        """A message has come. While the level waits it is behind the one that the level waits for."""
        self._wake_ms.setdefault(level, _READY_MS)

    def due_count(self, level: int, dues_ms: Sequence[int], now_ms: int) -> int:
        """How many of the next messages, whose due times these are, may be delivered now.

        A message is due at once if it would have to wait longer than its level now says: the clock was
        set back, or ``messageDelayLevel`` was changed. RocketMQ does the same. A level that there is no
        more keeps its times.
        """
        for count, due_ms in enumerate(dues_ms):
            if self._is_to_wait(level, due_ms, now_ms):
                return count
        return len(dues_ms)

    def on_looked(self, level: int, *, first_due_ms: int | None) -> None:
        """All that was due is delivered: the level waits for its next message, or rests without one."""
        if first_due_ms is None:
            self._wake_ms.pop(level, None)
        else:
            self._wake_ms[level] = first_due_ms

    def on_delivered(self, level: int, next_offset: int) -> None:
        """All before ``next_offset`` is in the log under its own topic, or can not be delivered."""
        assert next_offset >= self.next_offset(level)
        self._offsets[level] = next_offset
        self._change_count += 1
        if self._change_count % _CHANGES_A_VERSION == 0:
            self._data_version = self._data_version.bumped(now_ms=self._clock.now_ms())
        for watcher in self.watchers:
            watcher(level)

    def follow(self, table: DelayOffsetTable) -> bool:
        """Take over up to where the master has delivered; False if that is known already.

        Only for a slave, which delivers nothing: who delivers goes on from here, and never back.
        """
        offsets = _offsets_of(table)
        if offsets == self._offsets and table.data_version == self._data_version:
            return False
        self._offsets, self._data_version = offsets, table.data_version
        self._change_count += 1
        return True

    def step_back(self, count: int, lowest: Callable[[int], int]) -> None:
        """Have each level deliver so many messages again, from the ``lowest`` on that it has.

        Only for a slave: whoever delivers next finds those that were delivered in the log.
        """
        self._offsets = {
            level: min(offset, max(offset - count, lowest(level))) for level, offset in self._offsets.items()
        }
        self._change_count += 1

    def rest(self) -> None:
        """Look at no level any more."""
        self._wake_ms.clear()

    def start_save(self) -> Callable[[], None] | None:
        """The disk's part of saving what changed, which may run on another thread; None if nothing did."""
        if self._change_count == self._saved_count:
            return None
        table, change_count = self.table(), self._change_count

        def finish() -> None:
            self._file.save(table)
            self._saved_count = change_count

        return finish

    def _is_to_wait(self, level: int, due_ms: int, now_ms: int) -> bool:
        is_known = level <= len(self._delays_ms)
        return 0 < due_ms - now_ms <= (self._delays_ms[level - 1] if is_known else INT64_MAX)


def _offsets_of(table: DelayOffsetTable) -> dict[int, int]:
    return {level: max(0, offset) for level, offset in table.offset_table.items()}
