"""Requests of ours on one connection that wait for their answers.

Pure: the connection gives it the time and does what it says. An answer is matched by its opaque.
Deadlines lie in a heap, so that one timer does for all of them. An answered request stays in the
heap until its deadline or until most of the heap is such, when it is built anew: adding a request
costs the same however many wait.
"""

import heapq
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tanist.model.integers import INT32_MAX

_REBUILD_FROM = 64

W = TypeVar("W")


@dataclass(slots=True)
class OutstandingRequests(Generic[W]):
    """Who waits for which answer, and until when. ``W`` is whatever stands for the one who waits."""

    max_count: int
    _waiting: dict[int, W] = field(default_factory=dict[int, W], init=False)
    # deadline_s, opaque. An opaque is used again only after two billion others, long past its deadline.
    _deadlines: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]], init=False)
    _last_opaque: int = field(default=0, init=False)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self.max_count

    @property
    def next_deadline_s(self) -> float | None:
        """The first deadline of those that wait; None if nobody does."""
        while self._deadlines and self._deadlines[0][1] not in self._waiting:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def add(self, waiter: W, deadline_s: float) -> int:
        """Enter one request and give it its opaque, which no other waiting request has."""
        assert not self.is_full
        opaque = self._last_opaque
        while True:
            opaque = opaque + 1 if opaque < INT32_MAX else 0
            if opaque not in self._waiting:
                break
        self._last_opaque = opaque
        self._waiting[opaque] = waiter
        heapq.heappush(self._deadlines, (deadline_s, opaque))
        if len(self._deadlines) > _REBUILD_FROM + 2 * len(self._waiting):
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._waiting]
            heapq.heapify(self._deadlines)
        return opaque

    def take(self, opaque: int) -> W | None:
        """Who waits for this answer. None if nobody does: it came too late, or was never asked for."""
        return self._waiting.pop(opaque, None)

    def expire(self, now_s: float) -> list[W]:
        """Take out those whose deadline has come."""
        expired: list[W] = []
        while self._deadlines and self._deadlines[0][0] <= now_s:
            waiter = self._waiting.pop(heapq.heappop(self._deadlines)[1], None)
            if waiter is not None:
                expired.append(waiter)
        return expired

    def drain(self) -> list[W]:
        """Take out all: the connection is gone."""
        waiters = list(self._waiting.values())
        self._waiting.clear()
        self._deadlines.clear()
        return waiters
