"""What tests of consumers share: a scenario in an event loop, messages to consume, and waiting for them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tanist.client import Consumer, Message, MessageQueue, Producer, ReceivedMessage
from tanist.client.consuming.handling import MessageHandler
from tanist.model.topics import RETRY_PREFIX

TOPIC = "Orders"
DEADLINE_S = 60.0
QUICK_RETRIES = {"messageDelayLevel": "1s 1s 1s 1s 1s 1s"}
"""A broker's setting by which what is sent back comes again after a second."""


def in_loop(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario. When it is over, no task that it began may be left."""

    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE_S * 2):
            await scenario
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(bounded())


async def until(is_so: Callable[[], bool], *, timeout_s: float = DEADLINE_S) -> None:
    """Wait for something that other tasks do, without taking their time."""
    async with asyncio.timeout(timeout_s):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.01)


async def send(
    namesrv: str,
    count: int,
    *,
    topic: str = TOPIC,
    start: int = 0,
    tags: Sequence[str | None] = (None,),
    queue: MessageQueue | None = None,
) -> list[bytes]:
    """Send numbered messages, with these tags in turn; their bodies."""
    numbers = range(start, start + count)
    async with Producer(group="senders", namesrv=namesrv) as producer:
        for number in numbers:
            message = Message(topic, b"%d" % number, tags=tags[number % len(tags)])
            await producer.send(message, queue=queue, timeout_s=DEADLINE_S)
    return [b"%d" % number for number in numbers]


async def take(consumer: Consumer, count: int) -> list[ReceivedMessage]:
    """The next messages; all but the last are acknowledged."""
    taken: list[ReceivedMessage] = []
    async with asyncio.timeout(DEADLINE_S):
        async for message in consumer:
            taken.append(message)
            if len(taken) == count:
                break
    return taken


def bodies(messages: Iterable[ReceivedMessage]) -> list[bytes]:
    return [message.body for message in messages]


def own_queues(consumer: Consumer) -> set[MessageQueue]:
    """The queues of a member without that of the group's retries."""
    return {queue for queue in consumer.assignment if not queue.topic.startswith(RETRY_PREFIX)}


def are_shared(members: Sequence[Consumer], queue_count: int) -> bool:
    """Whether the members have all queues among them, evenly, and no queue twice."""
    shares = [own_queues(member) for member in members]
    is_even = all(len(share) == queue_count // len(members) for share in shares)
    return is_even and len(set[MessageQueue]().union(*shares)) == queue_count


class Handled:
    """A handler that keeps what it got, and fails as often as it is told, for each body."""

    def __init__(self, *, failures: int = 0, error: Callable[[], Exception] = RuntimeError) -> None:
        self.messages: list[ReceivedMessage] = []
        self.tries: defaultdict[bytes, int] = defaultdict(int)
        self._failures = failures
        self._error = error

    async def __call__(self, message: ReceivedMessage) -> None:
        self.tries[message.body] += 1
        if self.tries[message.body] <= self._failures:
            raise self._error()
        self.messages.append(message)

    @property
    def bodies(self) -> list[bytes]:
        return bodies(self.messages)


class Turnstile:
    """A handler that lets as many messages through as a test allows."""

    def __init__(self) -> None:
        self.messages: list[ReceivedMessage] = []
        self._slots = asyncio.Semaphore(0)

    def allow(self, count: int) -> None:
        """Let so many more through."""
        for _ in range(count):
            self._slots.release()

    async def __call__(self, message: ReceivedMessage) -> None:
        await self._slots.acquire()
        self.messages.append(message)

    @property
    def bodies(self) -> list[bytes]:
        return bodies(self.messages)


@asynccontextmanager
async def running(
    consumer: Consumer, handler: MessageHandler, *, concurrency: int = 2
) -> AsyncGenerator[None]:
    """Have a consumer's messages handled for the length of the block."""
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(consumer.run(handler, concurrency=concurrency))
        try:
            yield
        finally:
            run.cancel()
