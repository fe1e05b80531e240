"""The queues that a consumer has: how it takes them, gives them up, and goes to other offsets in them.

    take: lock, find the offset, pull --> owned --drop: commit, unlock--> gone
                                            |
                                            +--move: keep another offset--> gone, to be taken again

Whoever calls sees to it that no two calls meet; ``rebalancing`` does.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial

from tanist.backoff import Backoff
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.handling import Delivery
from tanist.client.consuming.membership import Membership
from tanist.client.offsets.offset_store import OffsetStore
from tanist.client.pulling.fetched import Fetched
from tanist.client.pulling.fetching import Fetcher
from tanist.client.pulling.pull_loop import PullLoop
from tanist.client.queues.assignment import Corrections
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.queues.queue_locks import QueueLocks
from tanist.client.queues.queue_move import FirstTaken, QueueMove
from tanist.client.queues.start_offset import find_start
from tanist.client.session.session import Session
from tanist.client.session.tasks import OwnedTasks
from tanist.errors import MQError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue

_log = logging.getLogger(__name__)

_LEAVE_S = 1.0
"""How long a queue that is read in order may keep us from giving it up, each time we try."""
_MOVE_PATIENCE_S = 10.0
_MOVE_TRIES = 3
_NOT_KEPT = "its new offset could not be kept"


class OwnedQueues:
    """The queues of one consumer, ``by_queue``. ``tasks`` are those of its pulls and its locks."""

    def __init__(
        self,
        session: Session,
        calls: BrokerCalls,
        offsets: OffsetStore,
        delivery: Delivery,
        membership: Membership,
        *,
        tasks: OwnedTasks,
        on_moved: Callable[[OwnedQueue, Fetched], Awaitable[None]],
        on_lost: Callable[[], None],
    ) -> None:
        """``on_moved`` is called when a broker does not have the offset that a pull asked for.

        ``on_lost`` is called when the lock of a queue was lost.
        """
        self.by_queue: dict[MessageQueue, OwnedQueue] = {}
        self.paused: set[MessageQueue] = set()
        """Those that the program paused, whether they are ours now or not."""
        self.corrections = Corrections()
        self._watched: dict[MessageQueue, FirstTaken] = {}
        self._clock = session.clock
        self._calls = calls
        self._offsets = offsets
        self._delivery = delivery
        self._member = membership
        self._tasks = tasks
        self._fetcher = Fetcher(session, membership.group)
        self._locks = QueueLocks(calls, delivery, session.clock, on_lost=self._on_lock_lost)
        self._on_lost = on_lost
        self._pulls = PullLoop(
            self._fetcher,
            delivery,
            tasks,
            session.clock,
            bounds=membership.prefetch,
            subscriptions=membership.subscriptions,
            owned=self.by_queue,
            on_moved=on_moved,
            on_found=lambda owned: self.corrections.on_consumed(owned.queue),
        )

    def start(self) -> None:
        """Keep locks in the background, if queues are read in order."""
        if self._member.needs_locks:
            self._tasks.start(self._locks.renew_for_ever(self.by_queue), "queue locks")

    async def renew_locks(self) -> bool:
        """Renew the locks now: a broker that has just started knows none. Forget queues whose lock is lost.

        Returns whether there are none left of those: whoever works on one ends first.
        """
        if self._member.needs_locks and self.by_queue:
            await self._locks.renew(self.by_queue)
        lost = [owned for owned in self.by_queue.values() if owned.is_dropped]
        idle = [owned for owned in lost if not owned.in_hand_count]
        for owned in idle:
            del self.by_queue[owned.queue]
            self._fetcher.forget(owned.queue)
        return len(idle) == len(lost)

    async def take(self, queues: Collection[MessageQueue]) -> bool:
        """Take queues; whether all of them could be taken."""
        now_s = self._clock.monotonic_s()
        allowed = [queue for queue in queues if self.corrections.may_take(queue, now_s)]
        locked: Mapping[MessageQueue, float] = {}
        if self._member.needs_locks and allowed:
            locked = await self._locks.lock(allowed)
            allowed = [queue for queue in allowed if queue in locked]
        starts = await asyncio.gather(*map(self._find_start, allowed))
        for queue, start in zip(allowed, starts, strict=True):
            if start is not None:
                owned = OwnedQueue(queue, start)
                owned.is_paused = queue in self.paused
                if queue in locked:
                    owned.locked_until_s, owned.locked_ms = locked[queue], self._clock.now_ms()
                self._begin(owned)
        return all(queue in self.by_queue for queue in queues)

    def keep(self, queues: Iterable[MessageQueue]) -> None:
        """Go on with queues that were about to be given up, and are ours again."""
        for queue in queues:
            owned = self.by_queue[queue]
            if owned.is_leaving:
                owned.is_leaving = False
                owned.wake_pull.set()
                self._delivery.release(owned)

    async def give_up(self, queues: Iterable[MessageQueue]) -> bool:
        """Drop queues that are others' now; whether all are. In order, whoever works on one ends first."""
        leaving = [self.by_queue[queue] for queue in queues]
        idle = leaving
        if self._member.is_orderly and leaving:
            for owned in leaving:
                owned.is_leaving = True
            await self._delivery.wait_idle(leaving, _LEAVE_S)
            idle = [owned for owned in leaving if not owned.in_hand_count]
        await self._drop(idle)
        return len(idle) == len(leaving)

    async def drop_all(self) -> None:
        """Give up all queues, whoever works on their messages: it is the end."""
        await self._drop(tuple(self.by_queue.values()))

    def abandon(self) -> None:
        """Drop all queues without a word: whatever comes to an end now does not count."""
        for owned in self.by_queue.values():
            owned.drop()

    def watch_first(self, queues: Iterable[MessageQueue], tell: FirstTaken | None) -> None:
        """Tell of the first message of each that is taken once they are taken again; None: nobody asks."""
        for queue in queues:
            if tell is None:
                self._watched.pop(queue, None)
            else:
                self._watched[queue] = tell

    async def move(self, targets: Mapping[MessageQueue, QueueOffset]) -> list[QueueMove]:
        """Drop queues and keep other offsets for them: whoever takes them next begins there.

        They need not be ours: a broadcasting member may be told before it has taken its queues.
        """
        before = {queue: await self._kept_place(queue) for queue in targets if queue not in self.by_queue}
        moved = [self.by_queue[queue] for queue in targets if queue in self.by_queue]
        for owned in moved:
            owned.drop()
            before[owned.queue] = owned.cached.consumer_offset
        for queue, offset in targets.items():
            # From here on, whatever is under way for the queue can not change it. If the consumer is closed
            # meanwhile, this is what it keeps.
            self._offsets.freeze(queue, offset)
        if not await self._delivery.wait_idle(moved, _MOVE_PATIENCE_S):
            _log.warning("offsets are moved while messages are in hand group=%s", self._member.group)
        not_kept = await self._keep_moved(targets)
        for queue in targets:
            self._offsets.remove(queue)
            self._fetcher.forget(queue)
            self.by_queue.pop(queue, None)
        return [
            QueueMove(queue, before[queue], target, failure=_NOT_KEPT if queue in not_kept else "")
            for queue, target in targets.items()
        ]

    async def seek(self, queue: MessageQueue, offset: QueueOffset) -> bool:
        """Go on with a queue at another offset; False if it is not ours any more."""
        owned = self.by_queue.get(queue)
        if owned is None:
            return False
        owned.cached.restart(offset)
        owned.held_count = 0
        self._offsets.update(queue, offset, increase_only=False)
        self._pulls.start(owned)
        await self._offsets.persist([queue])
        return True

    async def persist(self) -> frozenset[MessageQueue]:
        """Have the consumer offsets of all queues kept; those that could not be."""
        now_ms = self._clock.now_ms()
        kept = {queue: owned for queue, owned in self.by_queue.items() if not owned.is_dropped}
        for queue, owned in kept.items():
            offset = owned.cached.consumer_offset
            if offset != self._offsets.in_memory(queue):
                owned.consumed_ms = now_ms
                self._offsets.update(queue, offset, increase_only=True)
        return await self._offsets.persist(tuple(kept))

    async def _kept_place(self, queue: MessageQueue) -> QueueOffset | None:
        """Where this member stood in a queue when it had it last; None if nobody can tell."""
        with suppress(MQError):
            return await self._offsets.read(queue)
        return None

    async def _keep_moved(self, queues: Iterable[MessageQueue]) -> frozenset[MessageQueue]:
        """Have the offsets of a move kept; those that could not be, although it was tried several times."""
        left, backoff = frozenset(queues), Backoff()
        for tries_left in reversed(range(_MOVE_TRIES)):
            left = await self._offsets.persist(left)
            if not left or not tries_left:
                break
            await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311
        return left

    def _on_first_taken(self, owned: OwnedQueue, offset: QueueOffset) -> None:
        owned.on_first_taken = None
        tell = self._watched.pop(owned.queue, None)
        if tell is not None:
            tell(owned.queue, offset)

    def _on_lock_lost(self, owned: OwnedQueue) -> None:
        """What was done with it counts no more: another member goes on where the group stood."""
        owned.drop()
        self._offsets.remove(owned.queue)
        self._on_lost()

    async def _find_start(self, queue: MessageQueue) -> QueueOffset | None:
        try:
            return await find_start(queue, start=self._member.start, offsets=self._offsets, calls=self._calls)
        except MQError as error:
            _log.warning("queue not taken queue=%s error=%s", queue, error)
            return None

    def _begin(self, owned: OwnedQueue) -> None:
        group, queue = self._member.group, owned.queue
        _log.info("doRebalance, add a new mq group=%s queue=%s", group, queue)
        self.by_queue[queue] = owned
        if queue in self._watched:
            owned.on_first_taken = partial(self._on_first_taken, owned)
        self._pulls.start(owned)
        _log.info(
            "add a new pull request group=%s queue=%s nextOffset=%d", group, queue, owned.cached.next_offset
        )

    async def _drop(self, dropped: Collection[OwnedQueue]) -> None:
        if not dropped:
            return
        queues = [owned.queue for owned in dropped]
        for owned in dropped:
            if not owned.is_dropped:
                owned.drop()
                self._offsets.update(owned.queue, owned.cached.consumer_offset, increase_only=True)
            del self.by_queue[owned.queue]
            self._fetcher.forget(owned.queue)
            _log.info("queue dropped group=%s queue=%s", self._member.group, owned.queue)
        await self._offsets.persist(queues)
        for queue in queues:
            self._offsets.remove(queue)
        if self._member.needs_locks:
            await self._locks.unlock(queues)
