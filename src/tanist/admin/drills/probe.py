"""What producers and consumers see of a drill: one of each on a topic of its own, and their figures."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise

from tanist.admin.asking import Access
from tanist.admin.rows import Row
from tanist.admin.sending import TOOLS_PRODUCER_GROUP
from tanist.client import Consumer, Message, Producer, Start
from tanist.errors import MQError, lone_error

_PACE_S = 0.02
_SEND_TIMEOUT_S = 1.0
_PATIENCE_S = 10.0
"""For so long what was acknowledged is waited for at the end."""


class Seen(Row, frozen=True, kw_only=True):
    """What clients saw of one stretch of time."""

    sent_count: int
    failed_count: int
    longest_send_gap_ms: int
    """The longest time without an acknowledged send."""
    consumed_count: int
    longest_consume_gap_ms: int
    lost_count: int
    """Acknowledged and not consumed by the end."""
    duplicate_count: int


@dataclass(slots=True)
class Probe:
    """Counts what a producer and a consumer do. Times are of one steady clock, in seconds."""

    started_s: float
    acknowledged: dict[bytes, float] = field(default_factory=dict[bytes, float])
    failed_count: int = 0
    consumed: list[tuple[bytes, float]] = field(default_factory=list[tuple[bytes, float]])
    got_all: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nothing more is sent, and all that was acknowledged is consumed."""
    _is_stopped: bool = field(default=False, init=False)
    _waited_for: set[bytes] = field(default_factory=set[bytes], init=False)

    def seen(self, now_s: float) -> Seen:
        """The figures up to now."""
        times = Counter(body for body, _ in self.consumed)
        return Seen(
            sent_count=len(self.acknowledged),
            failed_count=self.failed_count,
            longest_send_gap_ms=longest_gap_ms(list(self.acknowledged.values()), self.started_s, now_s),
            consumed_count=len(times),
            longest_consume_gap_ms=longest_gap_ms([at for _, at in self.consumed], self.started_s, now_s),
            lost_count=len(self.acknowledged.keys() - times.keys()),
            duplicate_count=sum(count - 1 for count in times.values()),
        )

    def on_consumed(self, body: bytes, at_s: float) -> None:
        self.consumed.append((body, at_s))
        self._waited_for.discard(body)
        if self._is_stopped and not self._waited_for:
            self.got_all.set()

    def on_stopped(self) -> None:
        """No more is sent: what was acknowledged is waited for."""
        self._is_stopped = True
        self._waited_for = self.acknowledged.keys() - {body for body, _ in self.consumed}
        if not self._waited_for:
            self.got_all.set()


def longest_gap_ms(times_s: Sequence[float], start_s: float, end_s: float) -> int:
    """The longest time in ``[start_s, end_s]`` in which nothing happened.

    >>> longest_gap_ms([1.0, 1.5, 3.0], 0.5, 3.2)
    1500
    """
    marks = [start_s, *sorted(times_s), end_s]
    return round(max(later - earlier for earlier, later in pairwise(marks)) * 1000)


@asynccontextmanager
async def probing(access: Access, name_servers: list[str], topic: str) -> AsyncGenerator[Probe]:
    """Send and consume while the block lasts; then wait a moment for what is still on its way."""
    probe = Probe(time.monotonic())
    producer = Producer(
        group=TOOLS_PRODUCER_GROUP,
        namesrv=name_servers,
        credentials=access.credentials,
        tls=access.tls,
        timeout_s=_SEND_TIMEOUT_S,
    )
    consumer = Consumer(
        group=topic,
        topics={topic: "*"},
        namesrv=name_servers,
        start=Start.FIRST,
        credentials=access.credentials,
        tls=access.tls,
    )

    async def consume() -> None:
        async for message in consumer:
            probe.on_consumed(message.body, time.monotonic())

    with lone_error():
        async with producer, consumer, asyncio.TaskGroup() as tasks:
            sender = tasks.create_task(_send(producer, probe, topic))
            receiver = tasks.create_task(consume())
            try:
                yield probe
            finally:
                sender.cancel()
                probe.on_stopped()
                with suppress(TimeoutError):
                    await asyncio.wait_for(probe.got_all.wait(), _PATIENCE_S)
                receiver.cancel()


async def _send(producer: Producer, probe: Probe, topic: str) -> None:
    number = 0
    while True:
        number += 1
        body = str(number).encode()
        try:
            await producer.send(Message(topic, body))
        except MQError:
            # It may be stored all the same; a body that was never acknowledged is not asked for later.
            probe.failed_count += 1
        else:
            probe.acknowledged[body] = time.monotonic()
        await asyncio.sleep(_PACE_S)
