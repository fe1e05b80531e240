"""Which queue of a topic takes the next message. Pure.

In turn, so that all get the same; away from brokers that failed; and by sharding key as Java's
SelectMessageQueueByHash does, so that producers of both kinds send a key to the same queue.
"""

from collections.abc import Sequence

from tanist.client.sending.faults import BrokerFaults
from tanist.model.java_hash import java_hash
from tanist.model.route import MessageQueue


class QueueRound:
    """Gives the queues of one topic in turn. ``queues`` must not be empty."""

    def __init__(self, queues: Sequence[MessageQueue], *, start: int) -> None:
        """``start`` is any number: producers that all began with the first queue would crowd it."""
        assert queues
        self._queues = queues
        self._broker_names = frozenset(queue.broker_name for queue in queues)
        self._position = start

    def next(self, faults: BrokerFaults, *, now_s: float, failed_broker: str | None = None) -> MessageQueue:
        """The next queue of the best brokers, and of another one than ``failed_broker`` if there is one."""
        queues = self._queues
        position = self._position
        self._position = position + 1
        if failed_broker is None and faults.are_none:
            return queues[position % len(queues)]
        others = self._broker_names - {failed_broker}
        best = faults.best(others or self._broker_names, now_s=now_s)
        while queues[position % len(queues)].broker_name not in best:
            position += 1
        self._position = position + 1
        return queues[position % len(queues)]


def queue_of_key(queues: Sequence[MessageQueue], sharding_key: str) -> MessageQueue:
    """The queue that all messages with this key go to, as long as the topic has the same queues."""
    return queues[abs(java_hash(sharding_key)) % len(queues)]
