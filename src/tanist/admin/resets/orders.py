"""Orders on the wire: give one, see what became of it, approve or reject it."""

import asyncio
from collections.abc import Callable, Iterable

from tanist.admin.resets.plan import Plan
from tanist.admin.resets.tally import tally
from tanist.client.session.wire import Wire
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.reset import QueueTarget, QueueTargets, ResetOrders, ResetOrderView, ResetState
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reset import ApplyResetRequest, DecideResetRequest, GetResetOrdersRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import NotFound, RequestNotSupported

_WAIT_MS = 10_000
"""So long a broker holds a question back that it has nothing new for."""
_GRACE_S = 5.0
"""So much later than it was asked to a broker may answer."""
STOPPED = (ResetState.MOVED, ResetState.REJECTED)
"""Orders that changed nothing and never will."""
APPLIED = (ResetState.APPLIED, ResetState.EXPIRED)
"""Orders that changed something."""
_NOBODYS = "-"
"""An order's id that none has."""


async def knows_orders(wire: Wire, address: str) -> bool:
    """Whether the broker there is one of ours."""
    header = GetResetOrdersRequest(order_id=_NOBODYS)
    try:
        await wire.ask(address, Command.request(RequestCode.GET_RESET_ORDERS, header))
    except RequestNotSupported:
        return False
    except NotFound:
        pass
    return True


async def read_orders(
    wire: Wire,
    address: str,
    *,
    order_id: str | None = None,
    group: str | None = None,
    topic: str | None = None,
    seen_version: int = -1,
    wait_ms: int = 0,
) -> ResetOrders:
    """A broker's orders; with ``wait_ms``, as soon as one has changed since ``seen_version``.

    Only of an order that is named it is told which queues a client has moved. There may be none of that name.
    """
    header = GetResetOrdersRequest(
        order_id=order_id, group=group, topic=topic, seen_version=seen_version, wait_ms=wait_ms
    )
    command = Command.request(RequestCode.GET_RESET_ORDERS, header)
    try:
        answer = await wire.ask(address, command, timeout_s=wait_ms / 1000 + _GRACE_S)
    except NotFound:
        return ResetOrders(version=seen_version)
    return decode_java_json(answer.body, ResetOrders)


async def order_of(wire: Wire, address: str, plan: Plan) -> ResetOrderView | None:
    """What the broker there has of a plan: of two orders for it the one that changed something, or will."""
    found: list[ResetOrderView] = []
    for order_id in plan.order_ids:
        found += (await read_orders(wire, address, order_id=order_id)).orders
    return effective(found)


def effective(orders: list[ResetOrderView]) -> ResetOrderView | None:
    """Of orders for one plan, the one that counts: one that was stopped gives way to one that was not."""
    counting = [order for order in orders if order.state not in STOPPED] or orders
    return counting[-1] if counting else None


async def orders_since(wire: Wire, address: str, plan: Plan, order: ResetOrderView) -> list[ResetOrderView]:
    """What the broker there has applied after an order of this plan, to the same queues."""
    known = await read_orders(wire, address, group=order.group, topic=order.topic)
    return later_orders(plan, order, known.orders)


def later_orders(plan: Plan, order: ResetOrderView, known: Iterable[ResetOrderView]) -> list[ResetOrderView]:
    """Those of a broker's orders that took queues over from this one, the last to be applied last. Pure.

    They come in the order in which they were given; one that waited for approval may be applied later.
    An undo is later whatever the clocks of two masters say.
    """
    queues = {target.queue_id for target in order.targets}
    given = list(known)
    place = next((at for at, each in enumerate(given) if each.order_id == order.order_id), -1)
    found = [
        each
        for at, each in enumerate(given)
        if each.state in APPLIED
        and each.order_id not in plan.order_ids
        and not queues.isdisjoint(target.queue_id for target in each.targets)
        and (each.undoes in plan.order_ids or (each.applied_ms, at) > (order.applied_ms, place))
    ]
    return sorted(found, key=lambda each: each.applied_ms)


async def follow(
    wire: Wire,
    address: str,
    order: ResetOrderView,
    *,
    deadline_s: float,
    on_change: Callable[[ResetOrderView], None],
) -> None:
    """Hear of each receipt until nobody who was told is missing, or the time of the event loop is over.

    The broker answers when there is something new, and is asked again.
    """
    loop, version = asyncio.get_running_loop(), -1
    while order.state is ResetState.APPLIED and tally([order]).is_waiting:
        left_s = deadline_s - loop.time()
        if left_s <= 0:
            return
        found = await read_orders(
            wire,
            address,
            order_id=order.order_id,
            seen_version=version,
            wait_ms=min(_WAIT_MS, max(1, round(left_s * 1000))),
        )
        version, order = found.version, next(iter(found.orders), order)
        on_change(order)


async def give_order(
    wire: Wire, address: str, plan: Plan, broker_name: str, *, caller: str, reason: str, is_forced: bool
) -> None:
    """Order what the plan says of one broker's queues. The same order twice is one order."""
    header = ApplyResetRequest(
        order_id=plan.order_id(is_forced=is_forced),
        topic=plan.topic,
        group=plan.group,
        caller=caller,
        reason=reason,
        undoes=plan.undoes,
        is_forced=is_forced,
    )
    targets = QueueTargets(
        targets=[
            QueueTarget(
                queue_id=queue.queue_id,
                expected_offset=None if queue.now is None else QueueOffset(queue.now),
                target=QueueOffset(queue.target),
            )
            for queue in plan.queues_of(broker_name)
        ]
    )
    await wire.ask(
        address, Command.request(RequestCode.APPLY_RESET, header, body=encode_body(targets)), timeout_s=30.0
    )


async def decide(
    wire: Wire, address: str, order_id: str, *, decider: str, is_approved: bool, reason: str
) -> None:
    """Approve an order that waits, or reject it."""
    header = DecideResetRequest(order_id=order_id, decider=decider, is_approved=is_approved, reason=reason)
    await wire.ask(address, Command.request(RequestCode.DECIDE_RESET, header))
