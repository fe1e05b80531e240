"""Which member of a group may consume a queue in order.

Pure. A lock is (group, queue) -> client id. Its owner renews it every 20 s and believes in it for
30 s; here it lives for 60 s, so that no other member gets the queue while the owner still believes.
All times are those of the steady clock: a lock ends neither sooner nor later when somebody sets the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tanist.broker.slave_consume.live_view import HeldLock
from tanist.model.route import MessageQueue

LOCK_LIFE_MS = 60_000
MAX_LOCKS = 100_000
"""A table this full gives out no new locks: the client asks again 20 s later."""


@dataclass(slots=True)
class _Lock:
    client_id: str
    renewed_ms: int


class QueueLocks:
    """All locks of one broker. They are kept in memory only: after a restart the owners come back first."""

    def __init__(self) -> None:
        self._locks: dict[str, dict[MessageQueue, _Lock]] = {}
        """By group. A group without a lock is not in it."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def lock(
        self, group: str, queues: Iterable[MessageQueue], *, client_id: str, now_ms: int
    ) -> list[MessageQueue]:
        """Take or renew as many of ``queues`` as the client can have, and return those it now holds."""
        return [queue for queue in queues if self._lock(group, queue, client_id, now_ms)]

    def unlock(self, group: str, queues: Iterable[MessageQueue], *, client_id: str) -> None:
        """Give up ``queues``. What another client holds stays locked."""
        of_group = self._locks.get(group, {})
        for queue in queues:
            held = of_group.get(queue)
            if held is not None and held.client_id == client_id:
                del of_group[queue]
                self._count -= 1
        if not of_group:
            self._locks.pop(group, None)

    def is_any_held(self, group: str, now_ms: int) -> bool:
        """Whether a member of the group holds any lock: then the group consumes in order."""
        return any(not _is_over(held, now_ms) for held in self._locks.get(group, {}).values())

    def held(self, now_ms: int) -> dict[str, tuple[HeldLock, ...]]:
        """All locks that live, by group, with the time that they have left."""
        return {
            group: tuple(
                HeldLock(
                    queue=queue,
                    client_id=held.client_id,
                    left_ms=min(LOCK_LIFE_MS, LOCK_LIFE_MS - (now_ms - held.renewed_ms)),
                )
                for queue, held in of_group.items()
                if not _is_over(held, now_ms)
            )
            for group, of_group in self._locks.items()
        }

    def seed(self, locks: Mapping[str, Iterable[HeldLock]], now_ms: int) -> None:
        """Take over locks of another broker for as long as they live. What was locked here since stays."""
        for group, several in locks.items():
            for one in several:
                renewed_ms = now_ms - LOCK_LIFE_MS + max(0, min(one.left_ms, LOCK_LIFE_MS))
                if one.queue not in self._locks.get(group, {}):
                    self._lock(group, one.queue, one.client_id, renewed_ms)

    def clear(self) -> None:
        """Forget all locks: nobody consumes here any more."""
        self._locks.clear()
        self._count = 0

    def on_tick(self, now_ms: int) -> None:
        """Forget the locks that nobody renewed."""
        kept = {
            group: {queue: held for queue, held in of_group.items() if not _is_over(held, now_ms)}
            for group, of_group in self._locks.items()
        }
        self._locks = {group: of_group for group, of_group in kept.items() if of_group}
        self._count = sum(map(len, self._locks.values()))

    def _lock(self, group: str, queue: MessageQueue, client_id: str, now_ms: int) -> bool:
        held = self._locks.get(group, {}).get(queue)
        if held is None:
            if self._count >= MAX_LOCKS:
                return False
            self._count += 1
        elif held.client_id != client_id and not _is_over(held, now_ms):
            return False
        self._locks.setdefault(group, {})[queue] = _Lock(client_id, now_ms)
        return True


def _is_over(lock: _Lock, now_ms: int) -> bool:
    return now_ms - lock.renewed_ms > LOCK_LIFE_MS
