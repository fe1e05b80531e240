"""Finds out that a broker is silent at which pulls wait.

A pull that finds nothing waits for half a minute, and nobody says anything meanwhile: that its broker is
frozen or cut off would not be known for as long. So one that has answered nothing for a moment is asked
something small. Whatever it answers, it is there. If it does not answer, its connection is given up, and
whoever waits there looks for another replica.
"""

import asyncio
from dataclasses import dataclass

from tanist.client.session.tasks import OwnedTasks
from tanist.client.session.wire import Wire
from tanist.errors import RemotingError, RequestTimeout
from tanist.model.route import MessageQueue
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.offsets import GetMaxOffsetRequest

_LOOK_S = 2.0


@dataclass(slots=True)
class _Broker:
    """Where pulls wait."""

    queue: MessageQueue
    """One that is pulled there."""
    waiting_count: int = 0
    was_heard: bool = False
    """Whether a pull has ended since the last look."""


class Pulse:
    """Looks after the brokers at which one consumer's pulls wait."""

    def __init__(self, wire: Wire, tasks: OwnedTasks, *, answer_s: float) -> None:
        """A broker that does not answer within ``answer_s`` is silent."""
        self._wire = wire
        self._tasks = tasks
        self._answer_s = answer_s
        self._brokers: dict[str, _Broker] = {}
        self._looking: asyncio.Task[None] | None = None

    def begin(self, address: str, queue: MessageQueue) -> None:
        """A pull waits there from now on."""
        self._brokers.setdefault(address, _Broker(queue)).waiting_count += 1
        if self._looking is None:
            self._looking = self._tasks.start(self._look(), "pulse")

    def end(self, address: str) -> None:
        """A pull waits there no more."""
        broker = self._brokers[address]
        broker.waiting_count -= 1
        broker.was_heard = True

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            idle = [address for address, broker in self._brokers.items() if not broker.waiting_count]
            for address in idle:
                del self._brokers[address]
            silent = {
                address: broker.queue for address, broker in self._brokers.items() if not broker.was_heard
            }
            for broker in self._brokers.values():
                broker.was_heard = False
            await asyncio.gather(*(self._ask(address, queue) for address, queue in silent.items()))

    async def _ask(self, address: str, queue: MessageQueue) -> None:
        header = GetMaxOffsetRequest(topic=queue.topic, queue_id=queue.queue_id)
        request = Command.request(RequestCode.GET_MAX_OFFSET, header)
        try:
            await self._wire.exchange(address, request, timeout_s=self._answer_s)
        except RequestTimeout:
            self._wire.give_up(address, f"it has answered nothing for {self._answer_s:g} s")
        except RemotingError:
            return  # Whoever waits there hears of it too.
