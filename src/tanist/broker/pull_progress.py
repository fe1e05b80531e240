"""How far each group has pulled. Pure, and kept in memory alone.

What a group has pulled and not committed yet is in the hands of its clients: operators see it as
"inflight". Every pull passes here, so noting one is two lookups.
"""

from collections.abc import Callable


class PullProgress:
    """Where the pulls of the groups of one broker have ended since its start."""

    def __init__(self) -> None:
        self._next_offsets: dict[tuple[str, str], dict[int, int]] = {}

    def note(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """A pull was read: it goes on at ``next_offset``. The caller knows that group and queue exist."""
        key = (group, topic)
        queues = self._next_offsets.get(key)
        if queues is None:
            queues = self._next_offsets[key] = {}
        queues[queue_id] = next_offset

    def find(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group's last pull of a queue ended; None if there was none."""
        return self._next_offsets.get((group, topic), {}).get(queue_id)

    def keep(self, is_there: Callable[[str, str], bool]) -> None:
        """Forget groups in topics for which ``is_there`` no longer holds."""
        gone = [key for key in self._next_offsets if not is_there(*key)]
        for key in gone:
            del self._next_offsets[key]
