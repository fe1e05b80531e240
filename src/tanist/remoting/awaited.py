"""The answers that one connection waits for, as futures, with one timer for all their deadlines."""

import asyncio
from typing import TypeAlias

from tanist.errors import ConnectionLost, RequestTimeout, TooBusy
from tanist.protocol.command import Command
from tanist.remoting.outstanding import OutstandingRequests

# the answer, the request's code, timeout_s
_Waiting: TypeAlias = tuple[asyncio.Future[Command], int, float]


class AwaitedAnswers:
    """The shell around OutstandingRequests: it has the event loop's clock, timer and futures."""

    __slots__ = ("_loop", "_outstanding", "_peer", "_timer")

    def __init__(self, peer: str, max_count: int) -> None:
        self._peer = peer
        self._outstanding: OutstandingRequests[_Waiting] = OutstandingRequests(max_count)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._outstanding)

    @property
    def is_one(self) -> bool:
        """Whether just one answer is waited for."""
        return len(self._outstanding) == 1

    def enter(self, request: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Give a request its opaque and wait for its answer. Raises TooBusy if too many wait already."""
        if self._outstanding.is_full:
            raise TooBusy(self._peer, f"{len(self._outstanding)} requests wait for their answers")
        answer: asyncio.Future[Command] = self._loop.create_future()
        deadline_s = self._loop.time() + timeout_s
        request.opaque = self._outstanding.add((answer, request.code, timeout_s), deadline_s)
        if self._timer is None or deadline_s < self._timer.when():
            self._set_timer(deadline_s)
        return answer

    def withdraw(self, request: Command) -> None:
        """Forget a request that could not be sent, or whose answer nobody wants any more."""
        self._outstanding.take(request.opaque)

    def resolve(self, answer: Command) -> None:
        """Hand an answer to who waits for it. One that comes too late, or was never asked for, is dropped."""
        waiting = self._outstanding.take(answer.opaque)
        if waiting is not None and not waiting[0].done():
            waiting[0].set_result(answer)

    def fail_all(self, reason: str) -> None:
        """The connection is gone, and no answer comes any more."""
        if self._timer is not None:
            self._timer.cancel()
        for answer, _code, _timeout_s in self._outstanding.drain():
            if not answer.done():
                answer.set_exception(ConnectionLost(self._peer, reason))

    def _set_timer(self, deadline_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline_s, self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer = None
        for answer, code, timeout_s in self._outstanding.expire(self._loop.time()):
            if not answer.done():
                answer.set_exception(RequestTimeout(self._peer, code, timeout_s))
        next_deadline_s = self._outstanding.next_deadline_s
        if next_deadline_s is not None:
            self._set_timer(next_deadline_s)
