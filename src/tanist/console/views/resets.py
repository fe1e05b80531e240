"""Resets of offsets: what a plan would do, and what became of it."""

from collections.abc import Sequence

from tanist.admin.resets.checking import Checked
from tanist.admin.resets.plan import Plan, PlannedClient, PlannedQueue
from tanist.admin.resets.progress import Outcome
from tanist.console.views.base import View
from tanist.protocol.bodies.reset import ClientReceipt, ReceiptState, ResetOrderView, ResetState

_SENTENCES = {
    Outcome.DONE: "done: every client that there is was seen to follow",
    Outcome.FAILED: "not at all brokers yet: apply it again, and it goes on where it was",
    Outcome.UNCONFIRMED: "applied, and not every client was seen to follow",
    Outcome.MOVED: "the group had moved since it was planned, so nothing was changed: plan anew",
    Outcome.WAITING: "waits until somebody else approves; nothing is changed yet",
    Outcome.REJECTED: "rejected; nothing was changed",
}


class ResetQueue(View, frozen=True, kw_only=True):
    """One queue of a plan."""

    broker_name: str
    queue_id: int
    planned_from: int | None
    """Where the group stood when it was planned; null for nowhere."""
    now: int | None
    target: int
    min_offset: int
    max_offset: int
    replayed: int
    skipped: int
    verdict: str
    warnings: list[str]


class ResetReceipt(View, frozen=True, kw_only=True):
    """What is known of one client at one broker."""

    client_id: str
    broker_name: str
    state: ReceiptState
    told_ms: int
    confirmed_ms: int
    queue_count: int
    reason: str


class ResetPage(View, frozen=True, kw_only=True):
    """One plan, and what became of it."""

    plan_id: str
    group: str
    topic: str
    target: str
    model: str | None
    created_ms: int
    created_by: str
    reason: str
    undoes: str | None
    replayed: int
    skipped: int
    warnings: list[str]
    queues: list[ResetQueue]
    clients: list[PlannedClient]
    is_begun: bool
    """Whether it was applied, or is asked to be."""
    is_moved: bool
    """Whether the group stands elsewhere than when it was planned: then applying it changes nothing."""
    sentence: str
    receipts: list[ResetReceipt]
    states: dict[str, ResetState]
    """What each broker says of the order."""
    failure: str | None = None
    """Why nobody can say how it stands."""


class OrderRow(View, frozen=True, kw_only=True):
    """One order as one broker keeps it."""

    order_id: str
    group: str
    topic: str
    broker_name: str
    state: ResetState
    caller: str
    reason: str
    decider: str
    created_ms: int
    confirmed_count: int
    client_count: int
    undoes: str | None


class Resets(View, frozen=True, kw_only=True):
    """All orders that brokers know, the newest first, and the plans that this console made."""

    orders: list[OrderRow]
    failures: dict[str, str]
    plans: list[str]


def resets_view(orders: Sequence[ResetOrderView], failures: dict[str, str], plans: Sequence[str]) -> Resets:
    rows = [
        OrderRow(
            order_id=order.order_id,
            group=order.group,
            topic=order.topic,
            broker_name=order.broker_name,
            state=order.state,
            caller=order.caller,
            reason=order.reason,
            decider=order.decider,
            created_ms=order.created_ms,
            confirmed_count=sum(each.state is ReceiptState.CONFIRMED for each in order.receipts),
            client_count=len(order.receipts),
            undoes=order.undoes,
        )
        for order in reversed(orders)
    ]
    return Resets(orders=rows, failures=failures, plans=sorted(plans, reverse=True))


def reset_page(plan: Plan, checked: Checked | str, *, is_journaled: bool) -> ResetPage:
    """A plan as it stands; a text is why that can not be said."""
    failure = checked if isinstance(checked, str) else None
    found = None if isinstance(checked, str) else checked
    orders = (
        {} if found is None else {name: order for name, order in found.orders.items() if order is not None}
    )
    is_begun = bool(orders) or is_journaled
    queues = (
        [_queue(queue, None, "") for queue in plan.queues]
        if found is None
        else [_queue(each.planned, each.now, each.verdict.value if is_begun else "") for each in found.queues]
    )
    is_moved = not is_begun and found is not None and any(row.now != row.planned_from for row in queues)
    return ResetPage(
        plan_id=plan.plan_id,
        group=plan.group,
        topic=plan.topic,
        target=plan.target,
        model=None if plan.model is None else plan.model.value,
        created_ms=plan.created_ms,
        created_by=plan.created_by,
        reason=plan.reason,
        undoes=plan.undoes,
        replayed=plan.replayed,
        skipped=plan.skipped,
        warnings=plan.all_warnings,
        queues=queues,
        clients=plan.clients,
        is_begun=is_begun,
        is_moved=is_moved,
        sentence=_sentence(found, is_begun=is_begun, is_moved=is_moved),
        receipts=[_receipt(name, each) for name, order in orders.items() for each in order.receipts],
        states={name: order.state for name, order in orders.items()},
        failure=failure,
    )


def _sentence(checked: Checked | None, *, is_begun: bool, is_moved: bool) -> str:
    if not is_begun:
        return (
            "the group has moved since it was planned; applying it would stop: plan anew"
            if is_moved
            else "nothing is changed yet"
        )
    if checked is None:
        return "begun; how it stands can not be said now"
    if checked.later:
        names = ", ".join(sorted({order.order_id for order in checked.later.values()}))
        return f"applied, and since then undone or superseded by {names}: plan anew to go there again"
    count = checked.tally
    return _SENTENCES[checked.outcome] + (f"; {count.sentence()}" if count.count else "")


def _queue(queue: PlannedQueue, now: int | None, verdict: str) -> ResetQueue:
    return ResetQueue(
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        planned_from=queue.now,
        now=now,
        target=queue.target,
        min_offset=queue.min_offset,
        max_offset=queue.max_offset,
        replayed=queue.replayed,
        skipped=queue.skipped,
        verdict=verdict,
        warnings=queue.warnings,
    )


def _receipt(broker_name: str, receipt: ClientReceipt) -> ResetReceipt:
    return ResetReceipt(
        client_id=receipt.client_id,
        broker_name=broker_name,
        state=receipt.state,
        told_ms=receipt.told_ms,
        confirmed_ms=receipt.confirmed_ms,
        queue_count=len(receipt.queues),
        reason=receipt.reason,
    )
