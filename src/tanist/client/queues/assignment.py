"""Which queues a consumer takes and which it gives up. Pure; ``rebalancing`` does it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tanist.client.queues.allocation import AllocationStrategy, sort_client_ids, sort_queues
from tanist.model.route import MessageQueue


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done to come from what is owned to what should be."""

    to_take: tuple[MessageQueue, ...]
    to_keep: tuple[MessageQueue, ...]
    to_drop: tuple[MessageQueue, ...]


def plan(owned: Iterable[MessageQueue], wanted: Iterable[MessageQueue]) -> Change:
    """The change from the queues that are owned to those that are wanted."""
    had, wanted = dict.fromkeys(owned), dict.fromkeys(wanted)
    return Change(
        to_take=tuple(queue for queue in wanted if queue not in had),
        to_keep=tuple(queue for queue in had if queue in wanted),
        to_drop=tuple(queue for queue in had if queue not in wanted),
    )


def share_of(
    group: str,
    client_id: str,
    *,
    queues: Collection[MessageQueue],
    members: Collection[str],
    strategy: AllocationStrategy,
) -> list[MessageQueue]:
    """The queues of one topic that are this member's. Every member works it out alone.

    >>> from tanist.client.queues.allocation import Averagely
    >>> queues = [MessageQueue(topic="T", broker_name="b", queue_id=n) for n in range(4)]
    >>> share = share_of("G", "two", queues=queues, members=["two", "one"], strategy=Averagely())
    >>> [queue.queue_id for queue in share]
    [2, 3]
    """
    return strategy.allocate(group, client_id, sort_queues(queues), sort_client_ids(members))


class Corrections:
    """How often brokers corrected the offset of a queue without one message consumed in between.

    Once is nothing unusual: messages expired. A queue that is corrected again and again waits longer
    each time, and somebody should look at it.
    """

    ALARMING_COUNT = 3
    _MOST_S = 20.0

    def __init__(self) -> None:
        self._counts: dict[MessageQueue, int] = {}
        self._not_before_s: dict[MessageQueue, float] = {}

    def on_corrected(self, queue: MessageQueue, now_s: float) -> int:
        """Note a correction; how many there were in a row."""
        count = self._counts.get(queue, 0) + 1
        self._counts[queue] = count
        if count > 1:
            self._not_before_s[queue] = now_s + min(self._MOST_S, 2.0 ** (count - 2))
        return count

    def on_consumed(self, queue: MessageQueue) -> None:
        """There are messages: it goes on."""
        if self._counts:
            self._counts.pop(queue, None)
            self._not_before_s.pop(queue, None)

    def may_take(self, queue: MessageQueue, now_s: float) -> bool:
        """Whether a queue may be tried again by now."""
        return self._not_before_s.get(queue, now_s) <= now_s
