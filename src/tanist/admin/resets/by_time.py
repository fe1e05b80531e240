"""A reset as ``mqadmin`` gives it: each broker of the topic's route is told a time, and finds the offsets."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.orders import follow, read_orders
from tanist.admin.resets.places import Place, Places
from tanist.admin.resets.plan import END
from tanist.admin.resets.progress import Outcome
from tanist.admin.resets.reading import GroupReader
from tanist.admin.resets.stock import commit_offset, reset_by_time
from tanist.admin.resets.tally import Tally, tally
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import ResetOrderView, ResetState
from tanist.protocol.response_errors import ConsumerOffline, NoPermission, RequestNotSupported


class ByTime(NamedTuple):
    """What came of it."""

    offsets: dict[MessageQueue, int]
    """Where brokers say that the group goes."""
    orders: dict[str, ResetOrderView]
    """By broker name, where brokers keep orders."""
    failures: dict[str, str]

    @property
    def tally(self) -> Tally:
        return tally(self.orders.values())

    @property
    def waiting(self) -> list[ResetOrderView]:
        return [order for order in self.orders.values() if order.state is ResetState.WAITING]

    @property
    def outcome(self) -> Outcome:
        if self.failures:
            return Outcome.FAILED
        if self.waiting:
            return Outcome.WAITING
        return Outcome.DONE if self.tally.is_complete else Outcome.UNCONFIRMED


async def reset_group(
    wire: Wire, places: Places, *, group: str, timestamp_ms: int, is_force: bool, wait_s: float
) -> ByTime:
    """Order it from all brokers at once, and wait for receipts of clients. -1 is the end of each queue."""
    found = ByTime({}, {}, {})
    deadline_s = asyncio.get_running_loop().time() + wait_s

    async def order(place: Place) -> None:
        try:
            offsets = await reset_by_time(
                wire,
                place.address,
                topic=places.topic,
                group=group,
                timestamp_ms=timestamp_ms,
                is_force=is_force,
            )
        except ConsumerOffline:
            offsets = await _commit(
                wire, GroupReader(wire, places, group), place, timestamp_ms, is_force=is_force
            )
        found.offsets.update(offsets)
        given = await _order_for(wire, place, group, offsets)
        if given is not None:
            found.orders[place.broker_name] = given
            change = found.orders.__setitem__
            await follow(
                wire,
                place.address,
                given,
                deadline_s=deadline_s,
                on_change=lambda changed: change(place.broker_name, changed),
            )

    async def try_order(place: Place) -> None:
        try:
            await order(place)
        except NoPermission as error:
            waiting = await _waiting(wire, place, group, places.topic)
            if waiting is None:
                found.failures[place.broker_name] = str(error)
            else:
                found.orders[place.broker_name] = waiting
        except MQError as error:
            found.failures[place.broker_name] = str(error)

    await in_parallel(places.brokers, try_order)
    return found


async def _order_for(
    wire: Wire, place: Place, group: str, offsets: Mapping[MessageQueue, int]
) -> ResetOrderView | None:
    """The order that a broker made of our request: the last one with just these targets."""
    wanted = {queue.queue_id: offset for queue, offset in offsets.items()}
    try:
        known = await read_orders(wire, place.address, group=group)
    except RequestNotSupported:
        return None
    for order in reversed(known.orders):
        if {target.queue_id: target.target for target in order.targets} == wanted:
            return order
    return None


async def _waiting(wire: Wire, place: Place, group: str, topic: str) -> ResetOrderView | None:
    """The order that a broker made of our request and does not carry out before somebody approves."""
    try:
        known = await read_orders(wire, place.address, group=group, topic=topic)
    except MQError:
        return None
    last = known.orders[-1] if known.orders else None
    return last if last is not None and last.state is ResetState.WAITING else None


async def _commit(
    wire: Wire, reader: GroupReader, place: Place, timestamp_ms: int, *, is_force: bool
) -> dict[MessageQueue, int]:
    """What ``mqadmin`` does for a group that is offline at a broker which leaves it at that."""
    queues = reader.places.queues_of(place.broker_name)
    facts = await reader.facts(queues, at_ms=None if timestamp_ms == END else timestamp_ms)
    offsets: dict[MessageQueue, int] = {}
    for each in facts:
        target = each.max_offset if each.at_time is None else each.at_time
        if each.now is not None and not is_force:
            target = min(target, each.now)
        await commit_offset(wire, place.address, each.queue, group=reader.group, offset=target)
        offsets[each.queue] = target
    return offsets
