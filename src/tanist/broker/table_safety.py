"""When a switch can not take back any more what this master's tables have become.

    a change --> slaves are told, and asked by a number --> enough of them have it --> safe
                                                       `--> not in time, or no master any more --> not safe

Under a controller all that may be elected have to have it; with fixed roles a SYNC_MASTER waits for as many
slaves as with a message (``inSyncReplicas``), and an ASYNC_MASTER promises nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tanist.errors import ResponseError
from tanist.ha.replicas import ReplicaTable
from tanist.protocol.codes import ResponseCode

Done = Callable[[ResponseError | None], None]
"""Is told None once it is safe, or why it is not."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Who has to have the tables; of one mastership."""

    replicas: ReplicaTable
    needed: Callable[[], int | frozenset[int]]
    """So many slaves, or those with these ids."""
    timeout_s: float

    def lacking(self, number: int) -> str | None:
        """Who has yet to say that they have what this question was about; None if it is safe."""
        held = [one for one in self.replicas if one.counts and one.tables_held >= number]
        needed = self.needed()
        if isinstance(needed, int):
            return None if len(held) >= needed else f"{len(held)} of {needed} slaves have confirmed it"
        missing = sorted(needed - {one.broker_id for one in held})
        return f"replicas {missing} of the sync state set have not confirmed it" if missing else None

    @property
    def can_be_asked(self) -> bool:
        """Whether enough slaves are there that answer such a question.

        Those of a set that are away come back or leave it; one of RocketMQ's is there and never answers.
        """
        needed = self.needed()
        if isinstance(needed, int):
            return sum(one.counts and one.dialect.has_tables for one in self.replicas) >= needed
        return not any(one.broker_id in needed and not one.dialect.has_tables for one in self.replicas)


@dataclass(slots=True, eq=False)
class _Waiting:
    number: int
    copies: Copies
    done: Done
    timer: asyncio.TimerHandle


class TableSafety:
    """Of one broker, through all its roles. As a slave, and before it is a master, it promises nothing."""

    def __init__(self) -> None:
        self.askers: list[Callable[[int], None]] = []
        """Each asks one slave with a number, behind all that has changed before."""
        self.asked = 0
        self._copies: Copies | None = None
        self._waiting: list[_Waiting] = []

    def use(self, copies: Copies | None) -> None:
        """A mastership begins, or has ended: who waited in the last one is told that."""
        self._copies = copies
        for waiting in [*self._waiting]:
            self._end(
                waiting, _not_safe("this broker is no master any more; ask the one that is what became of it")
            )

    def when_safe(self, done: Done) -> None:
        """Tell ``done`` once whether what the tables are now is safe; at once if nobody has to have it."""
        copies = self._copies
        if copies is None or not copies.needed():
            done(None)
            return
        self.asked += 1
        if not copies.can_be_asked:
            done(
                ResponseError(
                    ResponseCode.SLAVE_NOT_AVAILABLE,
                    "a switch may undo it, for too few slaves are there that can say that they have it, which"
                    " RocketMQ's can not; start one, and ask the same once more",
                )
            )
            return
        timer = asyncio.get_running_loop().call_later(copies.timeout_s, self._on_late, self.asked)
        self._waiting.append(_Waiting(self.asked, copies, done, timer))
        for ask in [*self.askers]:
            ask(self.asked)
        self.on_held()

    def on_held(self) -> None:
        """A slave has taken more over, or other slaves count."""
        for waiting in [*self._waiting]:
            if waiting.copies.lacking(waiting.number) is None:
                self._end(waiting, None)

    def _on_late(self, number: int) -> None:
        for waiting in [*self._waiting]:
            if waiting.number == number:
                lacking = waiting.copies.lacking(number)
                timeout_s = waiting.copies.timeout_s
                late = _not_safe(f"{lacking} after {timeout_s:g} s; ask the same once more")
                self._end(waiting, None if lacking is None else late)

    def _end(self, waiting: _Waiting, failure: ResponseError | None) -> None:
        self._waiting.remove(waiting)
        waiting.timer.cancel()
        waiting.done(failure)


def _not_safe(why: str) -> ResponseError:
    return ResponseError(ResponseCode.FLUSH_SLAVE_TIMEOUT, f"a switch may undo it, for {why}")
