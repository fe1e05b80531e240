"""Pulls messages of owned queues: one task and one pull under way a queue, as long as there is room.

A queue's share of the prefetch is what the consumer may hold divided by the number of its queues. So a
queue whose messages nobody takes keeps no other from going on.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sized

from tanist.backoff import Backoff
from tanist.client.consuming.handling import Delivery
from tanist.client.pulling.fetched import Fetched, Outcome
from tanist.client.pulling.fetching import DEFAULT_COUNT, Fetcher
from tanist.client.pulling.pull_pace import PullBounds, room
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.session.tasks import OwnedTasks, wait_at_most
from tanist.clock import Clock
from tanist.errors import MQError
from tanist.log import ToldFailures
from tanist.model.offsets import QueueOffset
from tanist.model.subscription import SubscriptionData
from tanist.protocol.response_errors import NotReadable, SubscriptionUnknown

_log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 1.0
"""A queue without room looks again after this time: the number of queues, or its lock, may have changed."""

_SOON_S = 0.5
"""A broker that answers so soon that there is nothing did not wait for something to come."""


class PullLoop:
    """The pulls of one consumer."""

    def __init__(
        self,
        fetcher: Fetcher,
        delivery: Delivery,
        tasks: OwnedTasks,
        clock: Clock,
        *,
        bounds: PullBounds,
        subscriptions: Mapping[str, SubscriptionData],
        owned: Sized,
        on_moved: Callable[[OwnedQueue, Fetched], Awaitable[None]],
        on_found: Callable[[OwnedQueue], None],
    ) -> None:
        """``owned`` are all queues of the consumer. ``on_moved`` is told where a broker sends us."""
        self._fetcher = fetcher
        self._delivery = delivery
        self._tasks = tasks
        self._clock = clock
        self._bounds = bounds
        self._subscriptions = subscriptions
        self._owned = owned
        self._on_moved = on_moved
        self._on_found = on_found

    def start(self, owned: OwnedQueue) -> None:
        """Pull a queue until it is dropped; anew if it is pulled already, because it was moved."""
        if owned.pull is not None:
            owned.pull.cancel()
        owned.pull = self._tasks.start(self._run(owned), f"pull {owned.queue}")

    async def _run(self, owned: OwnedQueue) -> None:
        subscription = self._subscriptions[owned.queue.topic]
        backoff, failures = Backoff(), ToldFailures()
        while not owned.is_dropped:
            count = await self._wait_for_room(owned)
            offset = owned.cached.next_offset
            began_s = self._clock.monotonic_s()
            try:
                fetched = await self._fetcher.fetch(
                    owned.queue, offset, subscription=subscription, max_count=count
                )
            except MQError as error:
                if isinstance(error, SubscriptionUnknown) and await self._fetcher.introduce(owned.queue):
                    continue
                if failures.is_news(owned.queue, str(error)):
                    # That nobody is read for a moment is nothing unusual where a coordinator says who is.
                    level = logging.INFO if isinstance(error, NotReadable) else logging.WARNING
                    _log.log(level, "pull failed queue=%s error=%s", owned.queue, error)
                if not await self._fetcher.wait_for_reader(owned.queue):
                    await self._fetcher.wait_for_route(backoff.next_s(random.random()))  # noqa: S311
                continue
            failures.is_over(owned.queue)
            owned.pulled_ms = self._clock.now_ms()
            if fetched.outcome is Outcome.MOVED:
                await self._on_moved(owned, fetched)
                return
            self._take_in(owned, offset, fetched)
            is_soon = self._clock.monotonic_s() - began_s < _SOON_S
            if is_soon and not fetched.messages and fetched.next_offset == offset:
                # Nothing, and without a wait: a broker that keeps no more pulls is not asked all the time.
                await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311
            else:
                backoff.reset()

    def _take_in(self, owned: OwnedQueue, offset: QueueOffset, fetched: Fetched) -> None:
        is_wanted = owned.cached.add(fetched.messages, fetched_from=offset, next_offset=fetched.next_offset)
        if is_wanted and fetched.messages:
            self._on_found(owned)
            self._delivery.put(owned, len(fetched.messages))

    async def _wait_for_room(self, owned: OwnedQueue) -> int:
        """How many messages to ask for, as soon as that is worth it."""
        while True:
            share = self._bounds.among(max(1, len(self._owned)))
            count = room(owned.cached, share, max_count=DEFAULT_COUNT) if self._may_pull(owned) else 0
            # Few at a time are worth a pull only if nothing else is left to work on.
            enough = min(DEFAULT_COUNT, share.count // 2) if owned.cached.waiting_count else 1
            if count >= max(1, enough):
                owned.is_full = False
                return count
            owned.is_full = True
            owned.wake_at_count = share.count - enough
            owned.wake_pull.clear()
            await wait_at_most(_LOOK_AGAIN_S, owned.wake_pull)

    def _may_pull(self, owned: OwnedQueue) -> bool:
        return not owned.is_blocked and self._clock.monotonic_s() < owned.locked_until_s
