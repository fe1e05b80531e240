"""How far groups are in the queues of their topics: figures that operators ask for.

Reads the tables and the store, changes nothing.
"""

from collections.abc import Generator

from tanist.broker.queue_look import queue_bounds, store_time_ms
from tanist.broker.state import BrokerState
from tanist.model.integers import INT64_MAX
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.stats import QueueConsumeStats, QueueTimeSpan

_NO_TIME = -1
_STEP_QUEUES = 512


def consumed_topics(state: BrokerState, group: str, topics: set[str]) -> list[str]:
    """Those of ``topics`` that a group consumes, sorted.

    A group with members online consumes what they subscribe to. Offsets that it left in other topics
    before would count as a backlog for ever.
    """
    wanted = state.clients.subscriptions(group)
    return sorted(topic for topic in topics if not wanted or topic in wanted)


def queue_consume_stats(state: BrokerState, group: str, topic: str, queue_id: int) -> QueueConsumeStats:
    """Where a group stands in a queue. One that never said stands at 0."""
    _, high = queue_bounds(state.store, topic, queue_id)
    offset = state.offsets.find(group, topic, queue_id) or QueueOffset(0)
    pulled = state.pull_progress.find(group, topic, queue_id) or 0
    last_ms = store_time_ms(state.store, topic, queue_id, offset - 1)
    return QueueConsumeStats(
        broker_offset=high,
        consumer_offset=offset,
        pull_offset=QueueOffset(max(offset, pulled)),
        last_timestamp_ms=last_ms or 0,
    )


def queue_time_span(state: BrokerState, group: str, topic: str, queue_id: int) -> QueueTimeSpan:
    """When a queue's first, last and last consumed message came, and how long the next one waits."""

    def time_at(queue_offset: int) -> int | None:
        return store_time_ms(state.store, topic, queue_id, queue_offset)

    low, high = queue_bounds(state.store, topic, queue_id)
    offset = state.offsets.find(group, topic, queue_id) or 0
    first_ms, last_ms, next_ms = time_at(low), time_at(high - 1), time_at(offset)
    consumed_ms = time_at(offset - 1) if offset > 0 else first_ms
    return QueueTimeSpan(
        queue=MessageQueue(topic=topic, broker_name=state.settings.broker_name, queue_id=queue_id),
        min_timestamp_ms=_NO_TIME if first_ms is None else first_ms,
        max_timestamp_ms=_NO_TIME if last_ms is None else last_ms,
        consume_timestamp_ms=_NO_TIME if consumed_ms is None else consumed_ms,
        delay_ms=0 if next_ms is None else max(0, state.clock.now_ms() - next_ms),
    )


def correction_offsets(
    state: BrokerState, topic: str, *, compare_group: str, left_out: set[str]
) -> Generator[None, None, dict[int, QueueOffset]]:
    """The least offset of all groups by queue; the greatest number of all where one group is behind it.

    An offset of which the queue has no message any more does not count. RocketMQ forgets the offsets
    of the groups that are left out; here they are only left out. Yields after every few queues.
    """
    least: dict[int, QueueOffset] = {}
    for group in state.offsets.groups_of(topic) - left_out:
        for number, (queue_id, offset) in enumerate(state.offsets.queues(group, topic).items(), 1):
            low, _ = queue_bounds(state.store, topic, queue_id)
            if offset >= low:
                least[queue_id] = min(offset, least.get(queue_id, offset))
            if number % _STEP_QUEUES == 0:
                yield
        yield
    for queue_id, offset in state.offsets.queues(compare_group, topic).items():
        if queue_id in least and least[queue_id] > offset:
            least[queue_id] = QueueOffset(INT64_MAX)
    return least
