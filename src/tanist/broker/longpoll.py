"""Parked pulls: requests that wait for a message to arrive in their queue.

Pure. A pull is parked with the offset from which it has seen nothing that it wants. A message in its
queue takes it out, to be tried again; so does its deadline, and then it is answered as it is; and so
does the end of its connection. A pull that is out is never handed out again.

How many may wait is bounded, for one connection and for all: each costs memory, and time at every
message that it does not want.
"""

import heapq
import itertools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

OwnerT = TypeVar("OwnerT")

MAX_PARKED = 65_536
MAX_PARKED_PER_PEER = 4_096
"""A client has one connection, on which every queue of each of its consumers has one pull."""
MAX_PARKED_CHARS = 8 << 20
"""Of the expressions that parked pulls bring along, all together. Their tags take many times as much."""
_SLACK = 1024


@dataclass(slots=True, eq=False)
class ParkedPull(Generic[OwnerT]):
    """One waiting pull. ``owner`` is what the shell needs to go on with it."""

    topic: str
    queue_id: int
    queue_offset: int
    """Nothing that the pull wants lies before this."""
    deadline_ms: int
    """On a clock that only grows: a pull must not wait longer because the wall clock was set back."""
    peer: Hashable
    """Whose it is: the connection on which it came."""
    owner: OwnerT
    text_chars: int = 0
    """How long the expression is that it brings along."""
    is_waiting: bool = field(default=False, init=False)


class ParkedPulls(Generic[OwnerT]):
    """All parked pulls of a broker, by queue, by deadline and by peer."""

    def __init__(self, *, max_count: int = MAX_PARKED, max_per_peer: int = MAX_PARKED_PER_PEER) -> None:
        self._max_count = max_count
        self._max_per_peer = max_per_peer
        self._by_queue: dict[tuple[str, int], dict[ParkedPull[OwnerT], None]] = {}
        self._by_deadline: list[tuple[int, int, ParkedPull[OwnerT]]] = []
        self._by_peer: dict[Hashable, set[ParkedPull[OwnerT]]] = {}
        self._numbers = itertools.count()
        self._count = 0
        self._text_chars = 0

    def __len__(self) -> int:
        return self._count

    @property
    def next_deadline_ms(self) -> int | None:
        """When ``expire`` has something to do again."""
        self._forget_answered()
        return self._by_deadline[0][0] if self._by_deadline else None

    def has_room(self, peer: Hashable, text_chars: int = 0) -> bool:
        """Whether one more pull of this peer may wait, with an expression of this length."""
        return (
            self._count < self._max_count
            and self._text_chars + text_chars <= MAX_PARKED_CHARS
            and len(self._by_peer.get(peer, ())) < self._max_per_peer
        )

    def park(self, pull: ParkedPull[OwnerT]) -> None:
        """Let a pull wait, for which there is room."""
        assert not pull.is_waiting
        pull.is_waiting = True
        self._count += 1
        self._text_chars += pull.text_chars
        self._by_queue.setdefault((pull.topic, pull.queue_id), {})[pull] = None
        self._by_peer.setdefault(pull.peer, set()).add(pull)
        heapq.heappush(self._by_deadline, (pull.deadline_ms, next(self._numbers), pull))
        if len(self._by_deadline) > 2 * self._count + _SLACK:
            # Most were answered long before their time: a busy queue parks thousands a second.
            self._by_deadline = [entry for entry in self._by_deadline if entry[2].is_waiting]
            heapq.heapify(self._by_deadline)

    def behind(self, topic: str, queue_id: int, max_offset: int) -> list[ParkedPull[OwnerT]]:
        """The pulls that have not seen all of a queue, which has grown. They wait until they are taken."""
        waiting = self._by_queue.get((topic, queue_id), ())
        return [pull for pull in waiting if pull.queue_offset < max_offset]

    def waiting(self, topic: str, queue_id: int) -> list[ParkedPull[OwnerT]]:
        """All pulls of a queue. They wait until they are taken."""
        return [*self._by_queue.get((topic, queue_id), ())]

    def take(self, pull: ParkedPull[OwnerT]) -> bool:
        """Take out a pull to go on with it; False if it waits no longer."""
        if not pull.is_waiting:
            return False
        self._take((pull,))
        return True

    def expire(self, now_ms: int) -> ParkedPull[OwnerT] | None:
        """Take out the pull whose time has been over for longest; None if no pull's is."""
        self._forget_answered()
        if not self._by_deadline or self._by_deadline[0][0] > now_ms:
            return None
        pull = heapq.heappop(self._by_deadline)[2]
        self._take((pull,))
        return pull

    def drop_peer(self, peer: Hashable) -> None:
        """A connection has ended: nobody is there to answer its pulls to."""
        self._take(list(self._by_peer.get(peer, ())))

    def drain(self) -> list[ParkedPull[OwnerT]]:
        """Take out all, because the broker stops."""
        due = [pull for waiting in self._by_queue.values() for pull in waiting]
        self._take(due)
        return due

    def _take(self, pulls: Iterable[ParkedPull[OwnerT]]) -> None:
        for pull in pulls:
            pull.is_waiting = False
            self._count -= 1
            self._text_chars -= pull.text_chars
            of_queue = self._by_queue[pull.topic, pull.queue_id]
            del of_queue[pull]
            if not of_queue:
                del self._by_queue[pull.topic, pull.queue_id]
            of_peer = self._by_peer[pull.peer]
            of_peer.remove(pull)
            if not of_peer:
                del self._by_peer[pull.peer]

    def _forget_answered(self) -> None:
        while self._by_deadline and not self._by_deadline[0][2].is_waiting:
            heapq.heappop(self._by_deadline)
