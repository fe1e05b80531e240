"""Shares queues with the other members, as ``assignment`` says: every 20 s, and at once after a change.

Whoever takes, drops or moves queues waits for its turn, so that no two of them meet.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress

from tanist.backoff import Backoff
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.handling import Delivery
from tanist.client.consuming.membership import Membership
from tanist.client.errors import ClientClosed
from tanist.client.offsets.offset_store import OffsetStore
from tanist.client.pulling.fetched import Fetched
from tanist.client.queues.assignment import Corrections, plan, share_of
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.queues.owned_queues import OwnedQueues
from tanist.client.queues.queue_move import FirstTaken, QueueMove
from tanist.client.queues.settled_members import SettledMembers
from tanist.client.session.session import Session
from tanist.client.session.tasks import OwnedTasks, wait_at_most
from tanist.errors import MQError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.topics import RETRY_PREFIX
from tanist.protocol.response_errors import NotReadable

_log = logging.getLogger(__name__)

PERIOD_S = 20.0
PERSIST_S = 5.0
_FIRST_RETRY_S = 1.0


class Rebalancer:
    """Sees to the queues of one consumer, ``owned``."""

    def __init__(
        self,
        session: Session,
        calls: BrokerCalls,
        offsets: OffsetStore,
        delivery: Delivery,
        membership: Membership,
    ) -> None:
        self._session = session
        self._calls = calls
        self._delivery = delivery
        self._member = membership
        self.tasks = OwnedTasks()
        """They are over when the queues are given up at the end."""
        self.owned = OwnedQueues(
            session,
            calls,
            offsets,
            delivery,
            membership,
            tasks=self.tasks,
            on_moved=self._correct,
            on_lost=self.soon,
        )
        self._lock = asyncio.Lock()
        self._is_stopped = False
        self._is_due = asyncio.Event()
        self._settled = SettledMembers()
        session.routes.on_change(self._on_route)
        self._masters: dict[str, str] = {}
        session.routes.on_master(self._on_master)
        session.readers.on_reader(self._on_reader)

    def start(self) -> None:
        """Go on in the background."""
        self.tasks.start(self._rebalance_for_ever(), "rebalance")
        self.tasks.start(self._persist_for_ever(), "offsets")
        self.owned.start()

    def soon(self) -> None:
        """Something changed: rebalance at once."""
        self._is_due.set()

    async def rebalance(self) -> bool:
        """Take and drop what has to be; whether all is as it should be."""
        async with self._turn():
            return await self._rebalance()

    async def reset(
        self, targets: Mapping[MessageQueue, QueueOffset], on_first_taken: FirstTaken | None = None
    ) -> list[QueueMove]:
        """Go to other offsets, as a broker orders; what became of each queue of ours.

        Queues that are not ours are somebody else's to move. What is no target any more when it is their turn
        stays where it is.
        """
        async with self._turn():
            self._delivery.suspend()
            _log.info("suspend this consumer group=%s", self._member.group)
            try:
                found = await self._ours(targets)
                ours = {queue: targets[queue] for queue in found if queue in targets}
                self.owned.watch_first(ours, on_first_taken)
                moves = await self.owned.move(ours)
                if not await self._rebalance():
                    self.soon()
                taken = self.owned.by_queue
                return [
                    move.begun_at(taken[move.queue].start) if move.queue in taken else move for move in moves
                ]
            finally:
                self._delivery.resume()
                _log.info("resume this consumer group=%s", self._member.group)

    async def seek(self, queue: MessageQueue, offset: QueueOffset) -> bool:
        """Go on with a queue at another offset; False if it is not ours any more."""
        async with self._turn():
            return await self.owned.seek(queue, offset)

    async def stop(self, timeout_s: float) -> None:
        """Pull, take and move nothing any more. What is under way for a queue may end within the time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), self._lock:
                pass
        await self.abandon()

    async def abandon(self) -> None:
        """End all that goes on in the background, whatever it is at. Nobody gets a turn any more."""
        self._is_stopped = True
        await self.tasks.close()

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        async with self._lock:
            if self._is_stopped:
                raise ClientClosed("consumer")
            yield

    async def _rebalance_for_ever(self) -> None:
        backoff = Backoff(first_s=_FIRST_RETRY_S, most_s=PERIOD_S)
        while True:
            self._is_due.clear()
            wait_s = PERIOD_S
            try:
                is_complete = await self.rebalance()
            except Exception:
                # A strategy is the program's own and may raise anything. It may also do better next time.
                _log.exception("rebalance failed group=%s", self._member.group)
                is_complete = False
            if is_complete:
                backoff.reset()
            else:
                wait_s = backoff.next_s(random.random())  # noqa: S311
            await wait_at_most(wait_s, self._is_due)

    async def _persist_for_ever(self) -> None:
        while True:
            await asyncio.sleep(PERSIST_S)
            while await self.owned.persist():
                # Not kept yet, maybe because nobody is read now: once more when that changes.
                await self._session.routes.changed(PERSIST_S)

    async def _rebalance(self) -> bool:
        is_complete = await self.owned.renew_locks()
        for topic in self._member.subscriptions:
            try:
                is_complete &= await self._rebalance_topic(topic)
            except MQError as error:
                # A new group's retry topic takes a moment to come. Queues are kept while nobody is read.
                level = logging.INFO if isinstance(error, NotReadable) else logging.WARNING
                level = logging.DEBUG if topic.startswith(RETRY_PREFIX) else level
                _log.log(level, "not rebalanced group=%s topic=%s error=%s", self._member.group, topic, error)
                is_complete = False
        return is_complete

    async def _rebalance_topic(self, topic: str) -> bool:
        route = await self._session.routes.find(topic)
        wanted: Collection[MessageQueue] = route.subscribe_queues
        is_settled = True
        if not self._member.is_broadcasting:
            listed = await self._members(topic)
            if self._session.client_id not in listed:
                return False
            members, is_settled = self._settled.take(topic, listed, self._session.clock.monotonic_s())
            wanted = share_of(
                self._member.group,
                self._session.client_id,
                queues=wanted,
                members=members,
                strategy=self._member.strategy,
            )
        change = plan([queue for queue in self.owned.by_queue if queue.topic == topic], wanted)
        self.owned.keep(change.to_keep)
        is_given_up = await self.owned.give_up(change.to_drop)
        return await self.owned.take(change.to_take) and is_given_up and is_settled

    async def _ours(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Those of these queues that this member reads.

        Broadcasting, that is every queue of the topic, taken yet or not: nobody else keeps its offsets, and
        a broker that waited for us tells us as soon as we are there.
        """
        readable: set[MessageQueue] = set()
        if self._member.is_broadcasting:
            for topic in {queue.topic for queue in queues}:
                with suppress(MQError):
                    readable.update((await self._session.routes.find(topic)).subscribe_queues)
        return [queue for queue in queues if queue in self.owned.by_queue or queue in readable]

    async def _members(self, topic: str) -> list[str]:
        """As a broker lists them. Whose queues they are follows only if it lists us."""
        members = await self._calls.members(topic)
        if self._session.client_id not in members:
            # A broker that has just started, or is just read, does not know us. Our queues are still ours.
            await self._session.heartbeats.beat()
            members = await self._calls.members(topic)
        return members

    async def _correct(self, owned: OwnedQueue, fetched: Fetched) -> None:
        """A broker does not have the offset that we asked for, and says where to go on."""
        offset = fetched.next_offset
        async with self._turn():
            queue, group = owned.queue, self._member.group
            if self.owned.by_queue.get(queue) is not owned:
                return
            wrong = owned.cached.next_offset
            if fetched.max_offset < wrong:
                # The queue lost its end. What we have and did not finish is still to be done, as far as it
                # is still there.
                offset = min(offset, owned.cached.consumer_offset)
            await self.owned.move({queue: offset})
            count = self.owned.corrections.on_corrected(queue, self._session.clock.monotonic_s())
            _log.warning("offset corrected group=%s queue=%s from=%d to=%d", group, queue, wrong, offset)
            if count == Corrections.ALARMING_COUNT:
                _log.error(
                    "offset corrected again and again, nothing is consumed group=%s queue=%s corrections=%d",
                    *(group, queue, count),
                )
        self.soon()

    def _on_master(self, broker_name: str) -> None:
        master = self._session.routes.table.master_of(broker_name)
        if master is not None:
            before = self._masters.get(broker_name, master)
            self._masters[broker_name] = master
            if master != before:
                self._on_reader(broker_name)

    def _on_reader(self, _broker_name: str) -> None:
        """Locks are renewed at once where reading goes on, before anybody else could get them."""
        self._settled.on_reader(self._session.clock.monotonic_s())
        self.soon()

    def _on_route(self, topic: str) -> None:
        if topic in self._member.subscriptions:
            self.soon()
