"""Locks on queues that are read in order: only one member of the group may read such a queue.

A broker keeps a lock for 60 s. Here it counts for 30 s from the moment it was asked for and is renewed
every 20 s, so that a member stops before another one can begin. Whoever lost a lock, or renewed it too
late, gives the queue up and begins anew at the group's offset: another member may have gone on there.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.handling import Delivery
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.clock import Clock
from tanist.errors import MQError
from tanist.model.route import MessageQueue

_log = logging.getLogger(__name__)

LOCK_S = 30.0
RENEW_S = 20.0
_TRY_AGAIN_S = 1.0


class QueueLocks:
    """The locks of one consumer."""

    def __init__(
        self, calls: BrokerCalls, delivery: Delivery, clock: Clock, *, on_lost: Callable[[OwnedQueue], None]
    ) -> None:
        """``on_lost`` is called with a queue that another member may have had since, or has."""
        self._calls = calls
        self._delivery = delivery
        self._clock = clock
        self._on_lost = on_lost

    async def lock(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, float]:
        """Lock queues; those that are ours now, and until when. A broker that fails locks none."""
        asked = await asyncio.gather(*(self._lock(name, part) for name, part in _by_broker(queues).items()))
        return {queue: until_s for part in asked for queue, until_s in (part or {}).items()}

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Give locks up, so that other members get them at once."""
        await asyncio.gather(*(self._unlock(name, part) for name, part in _by_broker(queues).items()))

    async def renew_for_ever(self, owned: Mapping[MessageQueue, OwnedQueue]) -> None:
        """Keep the locks of all queues that are owned."""
        while True:
            is_all_well = await self.renew(owned)
            await asyncio.sleep(RENEW_S if is_all_well else _TRY_AGAIN_S)

    async def renew(self, owned: Mapping[MessageQueue, OwnedQueue]) -> bool:
        """Renew all locks now; whether all queues are ours still."""
        parts = _by_broker(queue for queue, one in owned.items() if not one.is_dropped)
        asked = await asyncio.gather(*(self._lock(name, part) for name, part in parts.items()))
        is_all_well = True
        for queues, locked in zip(parts.values(), asked, strict=True):
            if locked is None:
                # Nobody answered: what we have counts as long as it lasts.
                is_all_well = False
                continue
            for queue in queues:
                if (one := owned.get(queue)) is not None and not one.is_dropped:
                    is_all_well &= self._renewed(one, locked.get(queue))
        return is_all_well

    def _renewed(self, owned: OwnedQueue, until_s: float | None) -> bool:
        if until_s is None or self._clock.monotonic_s() >= owned.locked_until_s:
            _log.warning("queue lock lost queue=%s", owned.queue)
            self._on_lost(owned)
            return False
        owned.locked_until_s = until_s
        owned.locked_ms = self._clock.now_ms()
        owned.wake_pull.set()
        self._delivery.release(owned)
        return True

    async def _lock(self, broker_name: str, queues: list[MessageQueue]) -> dict[MessageQueue, float] | None:
        until_s = self._clock.monotonic_s() + LOCK_S
        try:
            return dict.fromkeys(await self._calls.lock(broker_name, queues), until_s)
        except MQError as error:
            _log.warning("queues not locked broker=%s queues=%d error=%s", broker_name, len(queues), error)
            return None

    async def _unlock(self, broker_name: str, queues: list[MessageQueue]) -> None:
        try:
            await self._calls.unlock(broker_name, queues)
        except MQError as error:
            _log.info("queues not unlocked broker=%s error=%s", broker_name, error)


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    by_broker: defaultdict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        by_broker[queue.broker_name].append(queue)
    return by_broker
