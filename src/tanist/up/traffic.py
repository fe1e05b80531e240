"""Traffic for whoever wants to see something move: ``tanist up --demo``.

Producers send orders and prices at a gentle rate. A clustering group of two consumers shares the orders,
a broadcasting group of two gets each price twice, once a member. Each kind is a process of its own, so
that one can be killed and the others watched.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path

from tanist.client.consumer import Consumer
from tanist.client.consuming.subscriptions import Start
from tanist.client.errors import NoRoute
from tanist.client.message import Message
from tanist.client.producer import Producer
from tanist.client.received import ReceivedMessage
from tanist.errors import MQError

_log = logging.getLogger(__name__)

ORDERS, PRICES = "DemoOrders", "DemoPrices"
CLUSTERING_GROUP, BROADCASTING_GROUP = "demo-invoices", "demo-screens"
PER_SECOND = 10
"""What each of the two producers sends."""
_MEMBERS = 2
_TELL_S, _LOOK_S = 10.0, 0.2
_REMEMBERED = 10_000
_TAGS = ("created", "paid", "shipped")


class Traffic(StrEnum):
    """What one process does."""

    PRODUCERS = "producers"
    CLUSTERING = "clustering"
    BROADCASTING = "broadcasting"


@dataclass(slots=True)
class Tally:
    """What has gone through one process. A message is known again if it comes soon after its first time."""

    sent: int = 0
    failed: int = 0
    consumed: int = 0
    again: int = 0
    _seen: OrderedDict[tuple[int, str], None] = field(default_factory=OrderedDict[tuple[int, str], None])

    def on_consumed(self, member: int, message_id: str) -> None:
        """A member got a message. Another member that gets it too does so by right if all get all."""
        self.consumed += 1
        if (member, message_id) in self._seen:
            self.again += 1
            return
        self._seen[member, message_id] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def __str__(self) -> str:
        return f"sent={self.sent} failed={self.failed} consumed={self.consumed} again={self.again}"


@asynccontextmanager
async def running_traffic(kind: Traffic, *, name_server: str, offsets_dir: Path) -> AsyncGenerator[str]:
    """Send or consume while the block lasts; what entering gives says what is done."""
    tally = Tally()
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        working = [tasks.create_task(_telling(kind, tally))]
        match kind:
            case Traffic.PRODUCERS:
                told = f"{PER_SECOND} messages a second to {ORDERS} and to {PRICES} each"
                for topic in (ORDERS, PRICES):
                    producer = await stack.enter_async_context(
                        Producer(group=f"demo-{topic}", namesrv=name_server, instance=topic)
                    )
                    working.append(tasks.create_task(_produce(producer, topic, tally)))
            case Traffic.CLUSTERING | Traffic.BROADCASTING:
                told = f"{_MEMBERS} consumers of {_topic(kind)}, {kind.value}"
                for member in range(_MEMBERS):
                    consumer = _consumer(kind, member, name_server, offsets_dir)
                    await stack.enter_async_context(_opened(consumer))
                    working.append(tasks.create_task(_consume(consumer, member, tally)))
        try:
            yield f"The traffic runs: {told}"
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)


def _topic(kind: Traffic) -> str:
    return ORDERS if kind is Traffic.CLUSTERING else PRICES


def _consumer(kind: Traffic, member: int, name_server: str, offsets_dir: Path) -> Consumer:
    is_broadcasting = kind is Traffic.BROADCASTING
    return Consumer(
        group=BROADCASTING_GROUP if is_broadcasting else CLUSTERING_GROUP,
        topics={_topic(kind): "*"},
        namesrv=name_server,
        start=Start.FIRST,
        broadcasting=is_broadcasting,
        instance=f"{kind.value}-{member}",
        offsets_dir=offsets_dir if is_broadcasting else None,
    )


@asynccontextmanager
async def _opened(consumer: Consumer) -> AsyncGenerator[None]:
    """Open it as soon as the first message has made its topic."""
    while True:
        try:
            await consumer.__aenter__()
            break
        except NoRoute:
            await asyncio.sleep(_LOOK_S)
    try:
        yield
    finally:
        await consumer.__aexit__(None, None, None)


async def _produce(producer: Producer, topic: str, tally: Tally) -> None:
    """Send at the rate, also after a pause: what could not be sent is not sent at once later."""
    for number in count():
        try:
            tags = _TAGS[number % len(_TAGS)]
            await producer.send(Message(topic, f"{topic} {number}".encode(), tags=tags, keys=[f"{number}"]))
            tally.sent += 1
        except MQError as error:
            tally.failed += 1
            _log.warning("send failed topic=%s reason=%s", topic, error)
        await asyncio.sleep(1 / PER_SECOND)


async def _consume(consumer: Consumer, member: int, tally: Tally) -> None:
    async def take(message: ReceivedMessage) -> None:
        tally.on_consumed(member, message.message_id)

    await consumer.run(take)


async def _telling(kind: Traffic, tally: Tally) -> None:
    while True:
        await asyncio.sleep(_TELL_S)
        _log.info("traffic %s %s", kind.value, tally)
