"""Carries a plan out at all brokers at once, and waits for the clients' receipts.

First it looks everywhere and changes nothing; a group that has moved since the plan, or a broker that can not
do what the plan says, ends it there. Each broker compares once more when it applies. What was done already is
not done again: an order has the plan's name, and the journal has what brokers without orders were told.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tanist.admin.resets.journal import Journal
from tanist.admin.resets.judging import HOLDS, judge
from tanist.admin.resets.orders import STOPPED, follow, give_order, order_of
from tanist.admin.resets.places import Place, Places
from tanist.admin.resets.plan import END, Plan, PlannedQueue
from tanist.admin.resets.progress import AtBroker, Progress
from tanist.admin.resets.reading import GroupReader, in_parallel
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.stock import (
    StockWay,
    choose_way,
    commit_queue,
    is_server_side,
    reset_by_time,
    reset_queue,
)
from tanist.client.session.wire import Wire
from tanist.clock import Clock, SystemClock
from tanist.errors import MQError
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import ResetOrderView, ResetState
from tanist.protocol.response_errors import RequestNotSupported

_LOOK_S = 1.0
"""How often clients are asked for their offsets where nobody tells of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """The way in which a plan is applied."""

    caller: str
    reason: str = ""
    is_forced: bool = False
    wait_s: float = 60.0
    """For how long receipts are waited for."""


def check_places(plan: Plan, places: Places) -> None:
    """Refuse a plan that was made for other brokers than these."""
    if plan.clusters != places.clusters:
        raise ResetRefused(
            f"the plan is for cluster {', '.join(plan.clusters)}, and this is {', '.join(places.clusters)}; "
            "name the plan's name server with -n, or plan anew"
        )
    if set(plan.brokers) != set(places.names):
        raise ResetRefused(
            f"{plan.topic} is at the brokers {', '.join(places.names)} now, and was at "
            f"{', '.join(plan.brokers)} when this was planned; wait until they are back, or plan anew"
        )
    known = set(places.queues)
    for queue in plan.queues:
        if message_queue(plan, queue) not in known:
            raise ResetRefused(
                f"{plan.topic} has no queue {queue.broker_name}:{queue.queue_id} any more; plan anew"
            )


def message_queue(plan: Plan, queue: PlannedQueue) -> MessageQueue:
    return MessageQueue(topic=plan.topic, broker_name=queue.broker_name, queue_id=queue.queue_id)


class Applying:
    """One apply. ``on_change`` is called whenever there is something new to show."""

    def __init__(
        self,
        wire: Wire,
        plan: Plan,
        places: Places,
        *,
        journal: Journal,
        how: How,
        on_change: Callable[[Progress], None],
        clock: Clock | None = None,
    ) -> None:
        self._wire = wire
        self._plan = plan
        self._reader = GroupReader(wire, places, plan.group)
        self._places = [place for place in places.brokers if plan.queues_of(place.broker_name)]
        self._journal = journal
        self._how = how
        self._on_change = on_change
        self._clock = clock or SystemClock()
        self.progress = Progress(
            plan,
            {place.broker_name: AtBroker(len(plan.queues_of(place.broker_name))) for place in self._places},
        )

    async def run(self) -> Progress:
        """Do it. Raises a RemotingError or ResetRefused only before anything was changed by this call."""
        await in_parallel(self._places, self._look)
        if not self._how.is_forced:
            await in_parallel(self._places, self._compare)
            if self.progress.moved:
                return self.progress
        loop = asyncio.get_running_loop()
        self._deadline_s = loop.time() + self._how.wait_s
        await in_parallel(self._places, self._carry_out)
        return self.progress

    async def _look(self, place: Place) -> None:
        """What there is of this plan already, and how the broker can be told."""
        part = self._part(place)
        try:
            part.order = await order_of(self._wire, place.address, self._plan)
        except RequestNotSupported:
            done = self._journal.done_at(place.broker_name).done
            part.done |= done
            online = (await self._reader.connections())[place.broker_name]
            part.way = choose_way(
                self._plan,
                place.broker_name,
                is_online=online is not None,
                is_server_side=online is not None and await is_server_side(self._wire, place.address),
            )
            if part.way is StockWay.TIME and not done:
                part.at_ms = await self._time_that_fits(place)
        self._on_change(self.progress)

    async def _time_that_fits(self, place: Place) -> int:
        """The time by which the broker comes to the plan's targets. Raises ResetRefused if there is none."""
        queues = {message_queue(self._plan, queue): queue for queue in self._queues(place)}
        if self._plan.at_ms == END:
            bounds = await self._reader.bounds(self._plan.topic)
            ends = {name: stats.max_offset for name, stats in bounds.items()}
            if all(ends.get(name) == queue.target for name, queue in queues.items()):
                return END
        at_ms = self._plan.created_ms if self._plan.at_ms == END else self._plan.at_ms
        assert at_ms is not None
        for name, queue in queues.items():
            found = await self._reader.offset_at(name, at_ms)
            if not self._plan.is_forward_allowed and queue.now is not None:
                found = min(found, queue.now)
            if found != queue.target:
                raise ResetRefused(
                    f"{place.broker_name} would go to {found} in queue {queue.queue_id} and the plan says "
                    f"{queue.target}; plan anew, or stop the clients of {self._plan.group} and apply again"
                )
        return at_ms

    async def _compare(self, place: Place) -> None:
        """Whether the group still stands where it did, where nothing has been done yet."""
        part = self._part(place)
        if part.order is not None:
            return
        left = [queue for queue in self._queues(place) if queue.queue_id not in part.done]
        found = await self._reader.offsets([message_queue(self._plan, queue) for queue in left])
        part.moved = {
            queue.queue_id: now for queue, now in zip(left, found.values(), strict=True) if now != queue.now
        }

    async def _carry_out(self, place: Place) -> None:
        """One broker's part. Its failure is told and keeps nobody from the others."""
        part = self._part(place)
        try:
            if part.way is None:
                await self._order(place, part)
                await self._watch(place, part)
            else:
                await self._tell_stock(place, part)
                await self._watch_stock(place, part)
        except MQError as error:
            part.failure = str(error)
        self._on_change(self.progress)

    async def _order(self, place: Place, part: AtBroker) -> None:
        stopped = part.order is not None and part.order.state is ResetState.MOVED and self._how.is_forced
        if part.order is None or stopped:
            await give_order(
                self._wire,
                place.address,
                self._plan,
                place.broker_name,
                caller=self._how.caller,
                reason=self._how.reason or self._plan.reason,
                is_forced=self._how.is_forced,
            )
            part.order = await order_of(self._wire, place.address, self._plan)
        if part.order is None:
            raise ResetRefused(f"{place.broker_name} took the order and does not know it any more")
        if part.order.state not in STOPPED and not self._journal.done_at(place.broker_name).done:
            done = [target.queue_id for target in part.order.targets] if part.is_applied else []
            self._note(place, "order", before=dict(part.order.before), done=done)
        self._on_change(self.progress)

    async def _watch(self, place: Place, part: AtBroker) -> None:
        assert part.order is not None

        def on_change(order: ResetOrderView) -> None:
            part.order = order
            self._on_change(self.progress)

        await follow(self._wire, place.address, part.order, deadline_s=self._deadline_s, on_change=on_change)

    async def _tell_stock(self, place: Place, part: AtBroker) -> None:
        left = [queue for queue in self._queues(place) if queue.queue_id not in part.done]
        if not left:
            return
        assert part.way is not None
        found = await self._reader.offsets([message_queue(self._plan, queue) for queue in left])
        before = {queue.queue_id: now for queue, now in found.items() if now is not None}
        if part.way is not StockWay.COMMIT:
            part.stood = await self._reader.positions(place.broker_name)
        # Before the first change: undo goes back to what is written here.
        self._note(place, part.way.value, before=before)
        if part.way is StockWay.TIME:
            assert part.at_ms is not None
            await reset_by_time(
                self._wire,
                place.address,
                topic=self._plan.topic,
                group=self._plan.group,
                timestamp_ms=part.at_ms,
                is_force=self._plan.is_forward_allowed,
            )
            self._did(place, part, left)
            return
        tell = commit_queue if part.way is StockWay.COMMIT else reset_queue

        async def tell_one(queue: PlannedQueue) -> None:
            await tell(self._wire, place.address, self._plan, queue)
            self._did(place, part, [queue])

        await in_parallel(left, tell_one)

    async def _watch_stock(self, place: Place, part: AtBroker) -> None:
        """Nobody tells when a client has moved, so it is looked at until then."""
        loop = asyncio.get_running_loop()
        while True:
            await self._look_at_stock(place, part)
            self._on_change(self.progress)
            if part.seen >= part.done or loop.time() >= self._deadline_s:
                return
            await asyncio.sleep(_LOOK_S)

    async def _look_at_stock(self, place: Place, part: AtBroker) -> None:
        queues = [queue for queue in self._queues(place) if queue.queue_id in part.done - part.seen]
        if part.way is StockWay.COMMIT:
            found = await self._reader.offsets([message_queue(self._plan, queue) for queue in queues])
            before = self._journal.done_at(place.broker_name).before
            for queue, now in zip(queues, found.values(), strict=True):
                if judge(before=before.get(queue.queue_id), target=queue.target, now=now) in HOLDS:
                    part.seen.add(queue.queue_id)
            return
        stands = await self._reader.positions(place.broker_name)
        for queue in queues:
            name = message_queue(self._plan, queue)
            stood = part.stood.get(name)
            # Who stood there already shows nothing by standing there.
            if (
                stood != queue.target
                and judge(before=stood, target=queue.target, now=stands.get(name)) in HOLDS
            ):
                part.seen.add(queue.queue_id)

    def _did(self, place: Place, part: AtBroker, queues: list[PlannedQueue]) -> None:
        part.done |= {queue.queue_id for queue in queues}
        assert part.way is not None
        self._note(place, part.way.value, done=[queue.queue_id for queue in queues])
        self._on_change(self.progress)

    def _note(
        self,
        place: Place,
        way: str,
        *,
        before: dict[int, int] | None = None,
        done: Sequence[int] = (),
    ) -> None:
        self._journal.write(
            place.broker_name, at_ms=self._clock.now_ms(), way=way, before=before, done=list(done)
        )

    def _part(self, place: Place) -> AtBroker:
        return self.progress.brokers[place.broker_name]

    def _queues(self, place: Place) -> list[PlannedQueue]:
        return self._plan.queues_of(place.broker_name)
