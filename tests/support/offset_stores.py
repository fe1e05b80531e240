"""Queues and brokers for tests of offset stores."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from tanist.errors import RequestTimeout
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue


def queue_of(number: int, *, broker: str = "broker-a", topic: str = "T") -> MessageQueue:
    return MessageQueue(topic=topic, broker_name=broker, queue_id=number)


def offsets_of(pairs: Iterable[tuple[int, int]]) -> dict[MessageQueue, QueueOffset]:
    """Offsets of queues of one topic by their numbers."""
    return {queue_of(number): QueueOffset(offset) for number, offset in pairs}


@dataclass
class FakeBroker:
    """Keeps offsets. Queues in ``silent`` get no answer, and those of the others wait while it is busy."""

    offsets: dict[MessageQueue, int] = field(default_factory=dict[MessageQueue, int])
    commits: list[tuple[MessageQueue, int]] = field(default_factory=list[tuple[MessageQueue, int]])
    silent: set[MessageQueue] = field(default_factory=set[MessageQueue])
    is_free: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    most_waiting: int = 0

    def __post_init__(self) -> None:
        self.is_free.set()

    async def query(self, queue: MessageQueue) -> int | None:
        await self._answer(queue)
        return self.offsets.get(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        await self._answer(queue)
        self.offsets[queue] = offset
        self.commits.append((queue, offset))

    async def _answer(self, queue: MessageQueue) -> None:
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        try:
            await self.is_free.wait()
        finally:
            self.waiting -= 1
        if queue in self.silent:
            raise RequestTimeout("broker-a", 15, 5.0)
