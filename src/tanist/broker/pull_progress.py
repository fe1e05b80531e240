"""How far each group has pulled. Pure, and kept in memory alone.

What a group has pulled and not committed yet is in the hands of its clients: operators see it as
"inflight". Every pull passes here, so noting one is two lookups.
"""

from collections.abc import Callable, Mapping

MAX_NOTED = 200_000
"""Queues of all groups together. Of one more it is not known what its clients have in hand."""
_KEEP_STEP = 2_000


class PullProgress:
    """Where the pulls of the groups of one broker have ended since its start."""

    def __init__(self) -> None:
        self._next_offsets: dict[tuple[str, str], dict[int, int]] = {}
        self._room = MAX_NOTED
        self._unchecked: list[tuple[str, str]] = []
        self.watchers: list[Callable[[str, str], None]] = []
        """Told the group and the topic of every pull that has come further, or back."""

    def note(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """A pull was read: it goes on at ``next_offset``. The caller knows that group and queue exist."""
        key = (group, topic)
        queues = self._next_offsets.get(key)
        if queues is None or queue_id not in queues:
            if not self._room:
                return
            self._room -= 1
            queues = self._next_offsets.setdefault(key, {})
        is_news = bool(self.watchers) and queues.get(queue_id) != next_offset
        queues[queue_id] = next_offset
        if is_news:
            for watcher in self.watchers:
                watcher(group, topic)

    def beyond(self, group: str, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """Of these queues, where a group's last pulls ended, if that is beyond its offset."""
        found = self._next_offsets.get((group, topic), {})
        return {queue: found[queue] for queue, offset in offsets.items() if found.get(queue, 0) > offset}

    def find(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group's last pull of a queue ended; None if there was none."""
        return self._next_offsets.get((group, topic), {}).get(queue_id)

    def keep(self, is_there: Callable[[str, str], bool]) -> None:
        """Forget groups in topics for which ``is_there`` no longer holds.

        A call looks at some of them; the next ones look at the rest, and then at all again.
        """
        if not self._unchecked:
            self._unchecked = list(self._next_offsets)
        checked = self._unchecked[-_KEEP_STEP:]
        del self._unchecked[-_KEEP_STEP:]
        for key in checked:
            if not is_there(*key):
                self._room += len(self._next_offsets.pop(key, {}))
