"""Compares how a group stands now with its plan, and with what clients have confirmed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.journal import Journal
from tanist.admin.resets.judging import HOLDS, Verdict, judge
from tanist.admin.resets.orders import APPLIED, order_of, orders_since
from tanist.admin.resets.places import Place, Places
from tanist.admin.resets.plan import Plan, PlannedQueue, message_queue
from tanist.admin.resets.progress import Outcome
from tanist.admin.resets.reading import GroupReader
from tanist.admin.resets.tally import Tally, tally
from tanist.client.session.wire import Wire
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import ReceiptState, ResetOrderView, ResetState
from tanist.protocol.response_errors import RequestNotSupported


@dataclass(frozen=True, slots=True)
class CheckedQueue:
    """One queue as it is found."""

    planned: PlannedQueue
    before: int | None
    now: int | None
    verdict: Verdict
    is_confirmed: bool = False
    """Whether a client says that it went there."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a plan has come to."""

    plan: Plan
    queues: list[CheckedQueue]
    orders: dict[str, ResetOrderView | None]
    """By broker name; None where there is no such order."""
    stock: frozenset[str]
    """Brokers that know no orders."""
    later: dict[str, ResetOrderView] = field(default_factory=dict[str, ResetOrderView])
    """By broker name the last order that took queues over since then."""

    @property
    def tally(self) -> Tally:
        return tally(order for order in self.orders.values() if order is not None)

    @property
    def outcome(self) -> Outcome:
        """Whether everything that can be seen says that it holds."""
        states = {None if order is None else order.state for order in self.orders.values()}
        for state, outcome in (
            (ResetState.MOVED, Outcome.MOVED),
            (ResetState.REJECTED, Outcome.REJECTED),
            (ResetState.WAITING, Outcome.WAITING),
            (None, Outcome.FAILED),
        ):
            if state in states:
                return outcome
        if self.later:
            return Outcome.MOVED
        count = self.tally
        if not count.is_complete or (self.plan.is_broadcast and not count.count):
            return Outcome.UNCONFIRMED
        return Outcome.DONE if all(map(self._holds, self.queues)) else Outcome.UNCONFIRMED

    def _holds(self, queue: CheckedQueue) -> bool:
        """Clients of a broadcasting group keep their offsets themselves: their receipts say it all."""
        if queue.verdict in HOLDS or self.plan.is_broadcast:
            return True
        return queue.verdict is Verdict.AMBIGUOUS and queue.is_confirmed


async def check_plan(wire: Wire, plan: Plan, places: Places, journal: Journal) -> Checked:
    """Look at all queues of a plan, and at its orders."""
    reader = GroupReader(wire, places, plan.group)
    orders: dict[str, ResetOrderView | None] = {}
    later: dict[str, ResetOrderView] = {}
    stock: set[str] = set()

    async def look(place: Place) -> None:
        if not plan.queues_of(place.broker_name):
            return
        try:
            order = orders[place.broker_name] = await order_of(wire, place.address, plan)
        except RequestNotSupported:
            stock.add(place.broker_name)
            return
        if order is None or order.state not in APPLIED:
            return
        if since := await orders_since(wire, place.address, plan, order):
            later[place.broker_name] = since[-1]

    await in_parallel(places.brokers, look)
    found = await reader.offsets([message_queue(plan, queue) for queue in plan.queues])
    if stock:
        found |= await _told_by_clients(reader, stock, found)
    return Checked(
        plan,
        [
            _checked(queue, now, orders.get(queue.broker_name), journal)
            for queue, now in zip(plan.queues, found.values(), strict=True)
        ],
        orders,
        frozenset(stock),
        later,
    )


async def _told_by_clients(
    reader: GroupReader, stock: set[str], queues: Iterable[MessageQueue]
) -> dict[MessageQueue, int | None]:
    """Where clients of brokers without orders stand themselves.

    Such a broker may have the target as the group's offset long before any client goes there.
    """
    online = [name for name, there in (await reader.connections()).items() if there and name in stock]
    positions: dict[MessageQueue, int] = {}
    for part in await in_parallel(online, reader.positions):
        positions |= part
    return {queue: positions.get(queue) for queue in queues if queue.broker_name in online}


def _checked(
    queue: PlannedQueue, now: int | None, order: ResetOrderView | None, journal: Journal
) -> CheckedQueue:
    stood = order.before if order is not None else journal.done_at(queue.broker_name).before
    before = stood.get(queue.queue_id, queue.now)
    is_confirmed = order is not None and any(
        receipt.state is ReceiptState.CONFIRMED and moved.queue_id == queue.queue_id
        for receipt in order.receipts
        for moved in receipt.queues
    )
    verdict = judge(before=before, target=queue.target, now=now)
    return CheckedQueue(queue, before, now, verdict, is_confirmed)
