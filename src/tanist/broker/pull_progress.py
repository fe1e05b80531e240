"""How far each group has pulled, and how fast. Pure, and kept in memory alone.

What a group has pulled and not committed yet is in the hands of its clients: operators see it as
"inflight". Every pull passes here, so noting one is two lookups and an addition; the time is told
by a tick every few seconds.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

TICK_MS = 10_000
_SAMPLE_COUNT = 7
"""The ends of the last six spans between ticks: a minute, as RocketMQ reckons."""


@dataclass(slots=True)
class _Progress:
    """One group in one topic."""

    next_offsets: dict[int, int] = field(default_factory=dict[int, int])
    message_count: int = 0
    # now_ms, message_count
    samples: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLE_COUNT))


class PullProgress:
    """What the groups of one broker have pulled since its start."""

    def __init__(self) -> None:
        self._by_group: dict[tuple[str, str], _Progress] = {}

    def note(self, group: str, topic: str, queue_id: int, next_offset: int, message_count: int) -> None:
        """A pull was read: it goes on at ``next_offset``. The caller knows that group and queue exist."""
        key = (group, topic)
        progress = self._by_group.get(key)
        if progress is None:
            progress = self._by_group[key] = _Progress()
        progress.next_offsets[queue_id] = next_offset
        progress.message_count += message_count

    def find(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group's last pull of a queue ended; None if there was none."""
        progress = self._by_group.get((group, topic))
        return None if progress is None else progress.next_offsets.get(queue_id)

    def rate(self, group: str, topic: str) -> float:
        """Messages a second that a group was given of a topic over the last minute."""
        progress = self._by_group.get((group, topic))
        if progress is None or len(progress.samples) < 2:
            return 0.0
        (first_ms, first_count), (last_ms, last_count) = progress.samples[0], progress.samples[-1]
        return (last_count - first_count) * 1000 / max(last_ms - first_ms, 1)

    def on_tick(self, now_ms: int, is_there: Callable[[str, str], bool]) -> None:
        """Sample the counts. Groups in topics for which ``is_there`` no longer holds are forgotten."""
        gone = [key for key in self._by_group if not is_there(*key)]
        for key in gone:
            del self._by_group[key]
        for progress in self._by_group.values():
            if not progress.samples:
                # It began with nothing since the tick before.
                progress.samples.append((now_ms - TICK_MS, 0))
            progress.samples.append((now_ms, progress.message_count))
