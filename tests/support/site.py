"""Where tests with stock clients take place, and what they say about what was sent and what came."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import Delivery, Outgoing, PushConsumer, StockClients

BROKER = "broker-a"
"""The broker that all tests share which do not stop theirs."""


@dataclass(frozen=True)
class Site:
    """The clients of one line, and the name server that they are to use."""

    clients: StockClients
    name_server: str
    prefix: str

    def topic(self, name: str) -> str:
        """A name that no other test uses; it serves for groups too."""
        return f"{self.prefix}-{name}"


@dataclass(frozen=True)
class Place:
    """One broker with its name server."""

    namesrv: str
    address: str
    broker_name: str


def numbered(count: int, *, start: int = 0, tags: Sequence[str | None] = (None,)) -> list[Outgoing]:
    return [Outgoing(b"number-%d" % n, tags=tags[n % len(tags)]) for n in range(start, start + count)]


def bodies(messages: Iterable[Outgoing | Delivery]) -> set[bytes]:
    return {message.body for message in messages}


def by_queue(deliveries: Iterable[Delivery]) -> dict[int, list[int]]:
    """The queue offsets in the order in which they came."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for delivery in deliveries:
        offsets[delivery.queue_id].append(delivery.queue_offset)
    return dict(offsets)


def duplicate_count(deliveries: Sequence[Delivery]) -> int:
    return len(deliveries) - len({delivery.place for delivery in deliveries})


def wait_until(is_so: Callable[[], bool], *, timeout_s: float = 60.0, pause_s: float = 0.02) -> float:
    """Wait for something and return how long that took. What is dear to look at is not looked at often."""
    start_s = time.monotonic()
    while not is_so():
        assert time.monotonic() - start_s < timeout_s
        time.sleep(pause_s)
    return time.monotonic() - start_s


def are_shared(members: Sequence[PushConsumer], queue_count: int) -> bool:
    """Whether the members have all queues among them, evenly, and no queue twice."""
    shares = [set(member.assigned()) for member in members]
    is_even = all(len(share) == queue_count // len(members) for share in shares)
    return is_even and set[int]().union(*shares) == set(range(queue_count))


def is_sent(send: Callable[[], object]) -> bool:
    try:
        send()
    except StepFailed:
        return False
    return True
