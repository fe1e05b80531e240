"""Takes and drops queues, as ``assignment`` says: every 20 s, and at once when something changes.

Whoever takes, drops or moves queues does it in turn (``_turn``), so that no two of them meet.

    rebalance --take--> owned --drop: commit, unlock--> gone
                          |
                          +--moved by the broker, or reset: the new offset is kept--> taken again at once
"""

import asyncio
import logging
import random
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from tanist.client.allocation import AllocationStrategy
from tanist.client.assignment import Corrections, plan, share_of
from tanist.client.backoff import Backoff
from tanist.client.broker_calls import BrokerCalls
from tanist.client.fetching import Fetcher
from tanist.client.handling import Delivery
from tanist.client.offsets import OffsetStore
from tanist.client.owned_queue import OwnedQueue
from tanist.client.pull_loop import PullLoop
from tanist.client.pull_pace import PullBounds
from tanist.client.queue_locks import QueueLocks
from tanist.client.session import Session
from tanist.client.start_offset import find_start
from tanist.client.subscriptions import Start
from tanist.client.tasks import OwnedTasks
from tanist.errors import MQError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData
from tanist.model.topics import RETRY_PREFIX

_log = logging.getLogger(__name__)

PERIOD_S = 20.0
PERSIST_S = 5.0
_FIRST_RETRY_S = 1.0
_LEAVE_S = 1.0
"""How long a queue that is read in order may keep us from giving it up, each time we try."""
_RESET_PATIENCE_S = 10.0
_RESET_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What a consumer is in its group."""

    group: str
    subscriptions: Mapping[str, SubscriptionData]
    is_broadcasting: bool
    is_orderly: bool
    start: Start | datetime
    strategy: AllocationStrategy
    prefetch: PullBounds

    @property
    def needs_locks(self) -> bool:
        return self.is_orderly and not self.is_broadcasting


class Rebalancer:
    """The queues of one consumer. ``owned`` are those that it has now."""

    def __init__(
        self,
        session: Session,
        calls: BrokerCalls,
        offsets: OffsetStore,
        delivery: Delivery,
        membership: Membership,
    ) -> None:
        self.owned: dict[MessageQueue, OwnedQueue] = {}
        self.paused: set[MessageQueue] = set()
        self._session = session
        self._calls = calls
        self._offsets = offsets
        self._delivery = delivery
        self._member = membership
        self._fetcher = Fetcher(session, membership.group)
        self._locks = QueueLocks(calls, delivery, session.clock)
        self._corrections = Corrections()
        self._tasks = OwnedTasks()
        self._pulls = PullLoop(
            self._fetcher,
            delivery,
            self._tasks,
            session.clock,
            bounds=membership.prefetch,
            subscriptions=membership.subscriptions,
            owned=self.owned,
            on_moved=self._correct,
            on_found=lambda owned: self._corrections.on_consumed(owned.queue),
        )
        self._turn = asyncio.Lock()
        self._is_due = asyncio.Event()
        session.routes.on_change(self._on_route)

    def start(self) -> None:
        """Go on in the background."""
        self._tasks.start(self._rebalance_for_ever(), "rebalance")
        self._tasks.start(self._persist_for_ever(), "offsets")
        if self._member.needs_locks:
            self._tasks.start(self._locks.renew_for_ever(self.owned), "queue locks")

    def soon(self) -> None:
        """Something changed: rebalance at once."""
        self._is_due.set()

    async def rebalance(self) -> bool:
        """Take and drop what has to be; whether all is as it should be."""
        async with self._turn:
            return await self._rebalance()

    async def persist(self) -> frozenset[MessageQueue]:
        """Have the consumer offsets of all queues kept; those that could not be."""
        for owned in self.owned.values():
            self._offsets.update(owned.queue, owned.cached.consumer_offset, increase_only=True)
        return await self._offsets.persist(tuple(self.owned))

    async def reset(self, targets: Mapping[MessageQueue, QueueOffset]) -> None:
        """Go to other offsets, as a broker orders. Queues that are not ours are somebody else's to move."""
        async with self._turn:
            self._delivery.suspend()
            _log.info("suspend this consumer group=%s", self._member.group)
            try:
                await self._move({queue: to for queue, to in targets.items() if queue in self.owned})
                await self._rebalance()
            finally:
                self._delivery.resume()
                _log.info("resume this consumer group=%s", self._member.group)

    async def seek(self, queue: MessageQueue, offset: QueueOffset) -> bool:
        """Go on with a queue at another offset; False if it is not ours any more."""
        async with self._turn:
            owned = self.owned.get(queue)
            if owned is None:
                return False
            owned.cached.restart(offset)
            owned.held_count = 0
            self._offsets.update(queue, offset, increase_only=False)
            self._pulls.start(owned)
            await self._offsets.persist([queue])
            return True

    async def stop(self, timeout_s: float) -> None:
        """Pull, take and move nothing any more. What is under way for a queue may end within the time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                # Nobody else gets a turn any more.
                await self._turn.acquire()
        await self.abandon()

    async def abandon(self) -> None:
        """End all that goes on in the background, whatever it is at."""
        await self._tasks.close()

    async def drop_all(self) -> None:
        """Give up all queues: their offsets are kept, and their locks are others' to have."""
        await self._drop(tuple(self.owned.values()))

    async def _rebalance_for_ever(self) -> None:
        backoff = Backoff(first_s=_FIRST_RETRY_S, most_s=PERIOD_S)
        while True:
            self._is_due.clear()
            wait_s = PERIOD_S
            if await self.rebalance():
                backoff.reset()
            else:
                wait_s = backoff.next_s(random.random())  # noqa: S311
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._is_due.wait()

    async def _persist_for_ever(self) -> None:
        while True:
            await asyncio.sleep(PERSIST_S)
            await self.persist()

    async def _rebalance(self) -> bool:
        is_complete = True
        for topic in self._member.subscriptions:
            try:
                is_complete &= await self._rebalance_topic(topic)
            except MQError as error:
                # A new group's retry topic takes a moment to come.
                level = logging.DEBUG if topic.startswith(RETRY_PREFIX) else logging.WARNING
                _log.log(level, "not rebalanced group=%s topic=%s error=%s", self._member.group, topic, error)
                is_complete = False
        return is_complete

    async def _rebalance_topic(self, topic: str) -> bool:
        route = await self._session.routes.find(topic)
        wanted: Collection[MessageQueue] = route.subscribe_queues
        if not self._member.is_broadcasting:
            members = await self._members(topic)
            if not members:
                return False
            wanted = share_of(
                self._member.group,
                self._session.client_id,
                queues=wanted,
                members=members,
                strategy=self._member.strategy,
            )
        owned = [queue for queue in self.owned if queue.topic == topic]
        change = plan(owned, wanted)
        self._keep(queue for queue in owned if queue not in change.to_drop)
        is_dropped = await self._give_up([self.owned[queue] for queue in change.to_drop])
        return await self._take(change.to_take) and is_dropped

    async def _members(self, topic: str) -> list[str]:
        members = await self._calls.members(topic)
        if self._session.client_id not in members:
            # A broker that has just started does not know us. Nobody takes our queues for that reason.
            await self._session.heartbeats.beat()
            members = await self._calls.members(topic)
        return members

    async def _take(self, queues: Iterable[MessageQueue]) -> bool:
        """Take queues; whether all of them could be taken."""
        now_s = self._session.clock.monotonic_s()
        wanted = tuple(queues)
        allowed = [queue for queue in wanted if self._corrections.may_take(queue, now_s)]
        locked: dict[MessageQueue, float] = {}
        if self._member.needs_locks and allowed:
            locked = await self._locks.lock(allowed)
            allowed = [queue for queue in allowed if queue in locked]
        starts = await asyncio.gather(*map(self._find_start, allowed))
        for queue, start in zip(allowed, starts, strict=True):
            if start is not None:
                owned = OwnedQueue(queue, start)
                owned.locked_until_s = locked.get(queue, owned.locked_until_s)
                owned.is_paused = queue in self.paused
                self._begin(owned)
        return all(queue in self.owned for queue in wanted)

    async def _find_start(self, queue: MessageQueue) -> QueueOffset | None:
        try:
            return await find_start(queue, start=self._member.start, offsets=self._offsets, calls=self._calls)
        except MQError as error:
            _log.warning("queue not taken queue=%s error=%s", queue, error)
            return None

    def _begin(self, owned: OwnedQueue) -> None:
        group, start = self._member.group, owned.cached.next_offset
        _log.info("doRebalance, add a new mq group=%s queue=%s", group, owned.queue)
        self.owned[owned.queue] = owned
        self._pulls.start(owned)
        _log.info("add a new pull request group=%s queue=%s nextOffset=%d", group, owned.queue, start)

    def _keep(self, queues: Iterable[MessageQueue]) -> None:
        """Go on with queues that were about to be given up and are ours again."""
        for queue in queues:
            owned = self.owned[queue]
            if owned.is_leaving:
                owned.is_leaving = False
                owned.wake_pull.set()
                self._delivery.release(owned)

    async def _give_up(self, queues: Collection[OwnedQueue]) -> bool:
        """Drop queues that are others' now; whether all are. In order, whoever works on one ends first."""
        if self._member.is_orderly and queues:
            for owned in queues:
                owned.is_leaving = True
            await self._delivery.wait_idle(queues, _LEAVE_S)
        idle = [owned for owned in queues if not (self._member.is_orderly and owned.in_hand_count)]
        await self._drop(idle)
        return len(idle) == len(queues)

    async def _drop(self, dropped: Collection[OwnedQueue]) -> None:
        if not dropped:
            return
        queues = [owned.queue for owned in dropped]
        for owned in dropped:
            owned.drop()
            del self.owned[owned.queue]
            self._fetcher.forget(owned.queue)
            self._offsets.update(owned.queue, owned.cached.consumer_offset, increase_only=True)
            _log.info("queue dropped group=%s queue=%s", self._member.group, owned.queue)
        await self._offsets.persist(queues)
        for queue in queues:
            self._offsets.remove(queue)
        if self._member.needs_locks:
            await self._locks.unlock(queues)

    async def _move(self, targets: Mapping[MessageQueue, QueueOffset]) -> None:
        """Drop queues and keep other offsets for them; the next rebalance takes them there."""
        moved = [self.owned[queue] for queue in targets]
        for owned in moved:
            owned.drop()
        if not await self._delivery.wait_idle(moved, _RESET_PATIENCE_S):
            _log.warning("offsets are moved while messages are in hand group=%s", self._member.group)
        for queue, offset in targets.items():
            # From here on, whatever was under way for the queue can not change it.
            self._offsets.freeze(queue, offset)
        left = frozenset(targets)
        for _ in range(_RESET_TRIES):
            left = await self._offsets.persist(left)
            if not left:
                break
        for queue in targets:
            self._offsets.remove(queue)
            self._fetcher.forget(queue)
            del self.owned[queue]

    async def _correct(self, owned: OwnedQueue, offset: QueueOffset) -> None:
        """A broker does not have the offset that we asked for, and says where to go on."""
        async with self._turn:
            queue = owned.queue
            if owned.is_dropped or self.owned.get(queue) is not owned:
                return
            wrong = owned.cached.next_offset
            await self._move({queue: offset})
            count = self._corrections.on_corrected(queue, self._session.clock.monotonic_s())
            _log.warning(
                "offset corrected group=%s queue=%s from=%d to=%d", self._member.group, queue, wrong, offset
            )
            if count == Corrections.ALARMING_COUNT:
                _log.error(
                    "offset corrected again and again, nothing is consumed group=%s queue=%s corrections=%d",
                    self._member.group,
                    queue,
                    count,
                )
        self.soon()

    def _on_route(self, topic: str) -> None:
        if topic in self._member.subscriptions:
            self.soon()
