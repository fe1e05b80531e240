"""Makes the plan that takes another one back: to where the group stood before, as it was recorded."""

from collections.abc import Mapping

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.aiming import aim
from tanist.admin.resets.journal import BrokerDone, Journal
from tanist.admin.resets.orders import APPLIED, order_of
from tanist.admin.resets.places import Place, Places
from tanist.admin.resets.plan import Plan, message_queue, planned
from tanist.admin.resets.planning import new_plan_id
from tanist.admin.resets.reading import GroupReader
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import AtOffsets, QueueName
from tanist.client.session.wire import Wire
from tanist.protocol.bodies.reset import ReceiptState, ResetOrderView
from tanist.protocol.response_errors import RequestNotSupported


async def make_undo(
    wire: Wire, plan: Plan, places: Places, journal: Journal, *, caller: str, now_ms: int
) -> Plan:
    """The plan back. Raises ResetRefused if nothing was applied that could be taken back."""
    orders: dict[str, ResetOrderView] = {}

    async def look(place: Place) -> None:
        try:
            order = await order_of(wire, place.address, plan)
        except RequestNotSupported:
            return
        if order is not None and order.state in APPLIED:
            orders[place.broker_name] = order

    await in_parallel(places.brokers, look)
    offsets, cautions = offsets_before(plan, orders, journal.brokers)
    if not offsets:
        raise ResetRefused(f"nothing of {plan.plan_id} was applied that could be taken back")
    reader = GroupReader(wire, places, plan.group)
    queues = [message_queue(plan, queue) for queue in plan.queues if queue.name in offsets]
    facts = await reader.facts(queues)
    return Plan(
        plan_id=new_plan_id(now_ms),
        created_ms=now_ms,
        created_by=caller,
        reason=f"undo of {plan.plan_id}",
        name_server=plan.name_server,
        clusters=places.clusters,
        brokers=places.names,
        topic=plan.topic,
        group=plan.group,
        model=plan.model,
        target=f"where it was before {plan.plan_id}",
        undoes=next((order.order_id for order in orders.values()), plan.plan_id),
        queues=planned(aim(facts, AtOffsets(offsets))),
        clients=plan.clients,
        warnings=cautions,
    )


def offsets_before(
    plan: Plan, orders: Mapping[str, ResetOrderView], done: Mapping[str, BrokerDone]
) -> tuple[dict[QueueName, int], list[str]]:
    """Where the group stood in each queue that was changed, and what can not be taken back. Pure."""
    found: dict[QueueName, int] = {}
    never, apart = list[str](), list[str]()
    for queue in plan.queues:
        order, known = orders.get(queue.broker_name), done.get(queue.broker_name)
        if order is None and (known is None or queue.queue_id not in known.done):
            continue
        stood = _stood(plan, queue.queue_id, order, known)
        if not stood:
            never.append(f"{queue.broker_name}:{queue.queue_id}")
            continue
        found[queue.name] = min(stood)
        if len(stood) > 1:
            apart.append(f"{queue.broker_name}:{queue.queue_id}")
    cautions: list[str] = []
    if never:
        cautions.append(f"{', '.join(never)}: there was no offset before, so this stays as it is")
    if apart:
        cautions.append(
            f"{', '.join(apart)}: clients stood at different offsets and all go to the least of them, so "
            "some consume again what they had"
        )
    return found, cautions


def _stood(plan: Plan, queue_id: int, order: ResetOrderView | None, known: BrokerDone | None) -> set[int]:
    """The offsets at which the group stood; of a broadcasting group, those of its clients."""
    if order is None:
        assert known is not None
        return {known.before[queue_id]} if queue_id in known.before else set()
    told: set[int] = {
        receipt.old_offset
        for client in order.receipts
        if client.state is ReceiptState.CONFIRMED
        for receipt in client.queues
        if receipt.queue_id == queue_id and receipt.old_offset is not None
    }
    if plan.is_broadcast or order.is_broadcast:
        return told
    if told:
        # A client was further than what it had committed: going back to that would deliver the rest twice.
        return {min(told)}
    return {order.before[queue_id]} if queue_id in order.before else set()
