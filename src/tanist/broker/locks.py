"""Which member of a group may consume a queue in order.

Pure. A lock is (group, queue) -> client id. Its owner renews it every 20 s and believes in it for
30 s; here it lives for 60 s, so that no other member gets the queue while the owner still believes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

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
        self._locks: dict[tuple[str, MessageQueue], _Lock] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def lock(
        self, group: str, queues: Iterable[MessageQueue], *, client_id: str, now_ms: int
    ) -> list[MessageQueue]:
        """Take or renew as many of ``queues`` as the client can have, and return those it now holds."""
        return [queue for queue in queues if self._lock((group, queue), client_id, now_ms)]

    def unlock(self, group: str, queues: Iterable[MessageQueue], *, client_id: str) -> None:
        """Give up ``queues``. What another client holds stays locked."""
        for queue in queues:
            held = self._locks.get((group, queue))
            if held is not None and held.client_id == client_id:
                del self._locks[group, queue]

    def on_tick(self, now_ms: int) -> None:
        """Forget the locks that nobody renewed."""
        self._locks = {key: held for key, held in self._locks.items() if not _is_over(held, now_ms)}

    def _lock(self, key: tuple[str, MessageQueue], client_id: str, now_ms: int) -> bool:
        held = self._locks.get(key)
        if held is None:
            if len(self._locks) >= MAX_LOCKS:
                return False
        elif held.client_id != client_id and not _is_over(held, now_ms):
            return False
        self._locks[key] = _Lock(client_id, now_ms)
        return True


def _is_over(lock: _Lock, now_ms: int) -> bool:
    return now_ms - lock.renewed_ms > LOCK_LIFE_MS
