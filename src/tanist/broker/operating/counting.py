"""Feeds the counters: what queues have got, found out a second later and not while somebody sends.

A send costs nothing here. Dispatch says of every batch which queue has grown and how far; what that
means in messages and bytes is read from the queue once a second.
"""

import asyncio
from datetime import datetime

from tanist.broker.state import BrokerState

_TICK_S = 1.0


class Counting:
    """Counts what one broker's queues get, for as long as ``run`` runs."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._counted_to = dict(state.store.queues.next_offsets())
        self._grown_to: dict[tuple[str, int], int] = {}

    def on_indexed(self, topic: str, queue_id: int, next_offset: int) -> None:
        """A queue has grown."""
        self._grown_to[topic, queue_id] = next_offset

    async def run(self) -> None:
        """Count every second until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            self.tick()

    def tick(self) -> None:
        """Count what has come since the last time."""
        state = self._state
        grown, self._grown_to = self._grown_to, {}
        for (topic, queue_id), grown_to in grown.items():
            queue = state.store.queues.find(topic, queue_id)
            # It may have been removed meanwhile, or cut.
            end = 0 if queue is None else min(grown_to, queue.max_offset)
            start = self._counted_to.get((topic, queue_id), 0)
            self._counted_to[topic, queue_id] = end
            if queue is None or start >= end:
                continue
            state.counters.on_put(
                topic,
                count=end - start,
                size_bytes=queue.size_bytes(start, end),
                is_system=state.topics.is_system(topic),
            )
        now_ms = state.clock.now_ms()
        local_day = datetime.fromtimestamp(now_ms / 1000).astimezone().toordinal()
        state.counters.on_tick(now_ms, local_day=local_day)
