"""Carries a plan out at all brokers at once, and waits for the clients' receipts.

First it looks everywhere and changes nothing; a group that has moved since the plan, a broker that can not
do what the plan says, or a later order that took queues over ends it there. Each broker compares once more
when it applies. What was done already is not done again: an order has the plan's name, and the journal has
what brokers without orders were told.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.at_stock import AtStock
from tanist.admin.resets.journal import Journal
from tanist.admin.resets.orders import STOPPED, follow, give_order, order_of, orders_since
from tanist.admin.resets.places import Place, Places
from tanist.admin.resets.plan import Plan, PlannedQueue, message_queue
from tanist.admin.resets.progress import AtBroker, Progress
from tanist.admin.resets.reading import GroupReader
from tanist.admin.resets.refused import ResetRefused
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.protocol.bodies.reset import ResetOrderView, ResetState
from tanist.protocol.response_errors import RequestNotSupported


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


def check_order(plan: Plan, order: ResetOrderView) -> None:
    """Refuse a plan that was edited after it was ordered: a broker takes an order once, and keeps to it."""
    wanted = {queue.queue_id: queue.target for queue in plan.queues_of(order.broker_name)}
    ordered: dict[int, int] = {target.queue_id: target.target for target in order.targets}
    is_same = (order.group, order.topic, ordered) == (plan.group, plan.topic, wanted)
    if order.state not in STOPPED and not is_same:
        raise ResetRefused(
            f"{order.broker_name} knows order {order.order_id} with other targets than this plan has now, so "
            "it was edited after it was applied; nothing was changed, make a new plan"
        )


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
    ) -> None:
        self._wire = wire
        self._plan = plan
        self._reader = GroupReader(wire, places, plan.group)
        self._places = [place for place in places.brokers if plan.queues_of(place.broker_name)]
        self._journal = journal
        self._how = how
        self._on_change = on_change
        self.progress = Progress(
            plan,
            {place.broker_name: AtBroker(len(plan.queues_of(place.broker_name))) for place in self._places},
        )
        self._stock = AtStock(
            wire, plan, self._reader, journal=journal, on_change=lambda: on_change(self.progress)
        )

    async def run(self) -> Progress:
        """Do it. Raises a RemotingError or ResetRefused only before anything was changed by this call."""
        await in_parallel(self._places, self._look)
        if self.progress.is_overtaken:
            return self.progress
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
            await self._stock.look(place, part)
        if part.order is not None:
            check_order(self._plan, part.order)
            if part.is_applied:
                part.later = await orders_since(self._wire, place.address, self._plan, part.order)
        self._on_change(self.progress)

    async def _compare(self, place: Place) -> None:
        """Whether the group still stands where it did, where nothing has been done yet."""
        part = self._part(place)
        if part.order is not None:
            return
        left = [queue for queue in self._queues(place) if queue.queue_id not in part.done]
        found = await self._reader.offsets([message_queue(self._plan, queue) for queue in left])
        # Who was killed may have moved a queue and not have noted it.
        begun = self._journal.done_at(place.broker_name).before
        part.moved = {
            queue.queue_id: now
            for queue, now in zip(left, found.values(), strict=True)
            if now != queue.now and not (now == queue.target and queue.queue_id in begun)
        }

    async def _carry_out(self, place: Place) -> None:
        """One broker's part. Its failure is told and keeps nobody from the others."""
        part = self._part(place)
        try:
            if part.way is None:
                await self._order(place, part)
                await self._watch(place, part)
            else:
                await self._stock.tell(place, part)
                await self._stock.watch(place, part, deadline_s=self._deadline_s)
        except MQError as error:
            part.failure = str(error)
        except OSError as error:
            part.failure = _unnoted(error)
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
            self._note(place, part, part.order)
        self._on_change(self.progress)

    def _note(self, place: Place, part: AtBroker, order: ResetOrderView) -> None:
        """The broker has the order even if that can not be noted here: its clients are watched anyway."""
        done = [target.queue_id for target in order.targets] if part.is_applied else []
        try:
            self._journal.write(place.broker_name, way="order", before=dict(order.before), done=done)
        except OSError as error:
            part.failure = _unnoted(error)

    async def _watch(self, place: Place, part: AtBroker) -> None:
        assert part.order is not None

        def on_change(order: ResetOrderView) -> None:
            part.order = order
            self._on_change(self.progress)

        await follow(self._wire, place.address, part.order, deadline_s=self._deadline_s, on_change=on_change)

    def _part(self, place: Place) -> AtBroker:
        return self.progress.brokers[place.broker_name]

    def _queues(self, place: Place) -> list[PlannedQueue]:
        return self._plan.queues_of(place.broker_name)


def _unnoted(error: OSError) -> str:
    return f"what is done can not be noted beside the plan: {error.strerror or error}"
