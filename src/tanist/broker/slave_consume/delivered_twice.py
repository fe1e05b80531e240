"""How many messages groups got twice because another broker is read than before. Pure.

    following --learn--> it is known up to where the broker that is read has delivered
    begin --> this broker is read: what is pulled before that place comes for the second time
    end --> it is not read any more, and learns again

Nobody but the broker that delivered a message knows that it did. So it tells where its pulls have ended, with
the offsets: a slave hears it from its master all the time, a master from its slave at the hand-back.
"""

from collections.abc import Mapping


class DeliveredTwice:
    """One broker's. What it has counted stays for as long as it runs."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """By group."""
        self._known: dict[str, dict[int, int]] = {}
        """By ``topic@group`` and queue, where pulls had ended at the other broker."""
        self._counted: dict[tuple[str, int], int] = {}
        """Up to where messages have been counted: whoever gets them a third time has other reasons."""
        self._is_counting = False

    def learn(self, pulled: Mapping[str, Mapping[int, int]], *, is_whole: bool = False) -> None:
        """The broker that is read has delivered so much; with ``is_whole``, and nothing else."""
        if self._is_counting:
            return
        if is_whole:
            self._known = {}
        for key, queues in pulled.items():
            if queues:
                self._known[key] = dict(queues)
            else:
                self._known.pop(key, None)

    def begin(self) -> None:
        """This broker is read from now on."""
        self._is_counting = True
        self._counted = {}

    def end(self) -> None:
        """If it was read, it is so no more."""
        if self._is_counting:
            self._is_counting = False
            self._known = {}

    def on_pulled(
        self, group: str, topic: str, queue_id: int, *, start: int, end: int, message_count: int
    ) -> None:
        """A group was given so many messages from the offsets between these."""
        if not self._is_counting or not self._known:
            return
        key = f"{topic}@{group}"
        queues = self._known.get(key, {})
        before = queues.get(queue_id, 0)
        first = max(start, self._counted.get((key, queue_id), 0))
        overlap = min(end, before) - first
        if overlap > 0:
            # A filter passes over some of them.
            self.counts[group] = self.counts.get(group, 0) + min(overlap, message_count)
            self._counted[key, queue_id] = first + overlap
        if end >= before and queues.pop(queue_id, None) is not None and not queues:
            del self._known[key]
