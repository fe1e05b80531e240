"""How a terminal shows plans of resets, and what became of them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tanist.admin.resets.checking import Checked, CheckedQueue
from tanist.admin.resets.client_versions import version_name
from tanist.admin.resets.judging import Verdict
from tanist.admin.resets.plan import Plan, PlannedQueue
from tanist.admin.resets.progress import AtBroker, Outcome, Progress
from tanist.admin.resets.stock import StockWay
from tanist.cli.ha_views import print_whole, time_of
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.reset import ResetOrderView, ResetState

_SHOWN_QUEUES = 64
_SHOWN_MOVED = 10
_NONE = "-"
APPROVE = "tanist admin resetOffset approve"


def to_json(value: object) -> str:
    return msgspec.json.format(encode_body(value), indent=2).decode()


def print_plan(
    console: Console, plan: Plan, found: Mapping[tuple[str, int], int | None] | None = None
) -> None:
    """What a plan would do. ``found`` is where the group stands now, if that was looked at again."""
    model = "nobody online" if plan.model is None else plan.model.value.lower()
    line(console, f"{plan.plan_id}: group {plan.group}, topic {plan.topic}, to {plan.target} ({model})")
    columns = ["queue", "now", "target", "again", "skipped", "first", "end", "oldest kept"]
    table = Table(*columns, *(["stands"] if found else []), box=None)
    for queue in plan.queues[:_SHOWN_QUEUES]:
        extra = [_moved_text(queue, found[queue.name])] if found else []
        table.add_row(*map(Text, (*_queue_row(queue), *extra)))
    print_whole(console, table)
    _print_rest(console, len(plan.queues) - _SHOWN_QUEUES, "queues; the file and --json have them all")
    broker_count = len({queue.broker_name for queue in plan.queues})
    line(
        console,
        f"{_counted(len(plan.queues), 'queue')} at {_counted(broker_count, 'broker')}: "
        f"{_counted(plan.replayed, 'message')} to come again, {plan.skipped} to be skipped",
    )
    _print_clients(console, plan)
    for warning in plan.all_warnings:
        line(console, f"warning: {warning}")


def print_moved(console: Console, plan: Plan, moved: Mapping[str, Mapping[int, int | None]]) -> None:
    """Where the group was found elsewhere."""
    planned = {queue.name: queue.now for queue in plan.queues}
    rows = [(name, queue_id, now) for name, queues in moved.items() for queue_id, now in queues.items()]
    for name, queue_id, now in rows[:_SHOWN_MOVED]:
        was = planned.get((name, queue_id))
        line(console, f"  {name}:{queue_id} stands at {_offset(now)}, planned at {_offset(was)}")
    _print_rest(console, len(rows) - _SHOWN_MOVED, "queues")


def print_progress(console: Console, progress: Progress) -> None:
    """What an apply came to, broker by broker if not all is well, and in one sentence."""
    for name, part in progress.brokers.items():
        for text in _part_lines(progress.plan, name, part):
            line(console, text)
    plan, total = progress.plan, len(progress.plan.queues)
    match progress.outcome:
        case Outcome.MOVED if progress.is_overtaken:
            line(
                console,
                f"{progress.done_count} of {total} queues are as this plan set them, and nothing was changed "
                "now; make a new plan, with --to plan=FILE if it is to go there again",
            )
        case Outcome.MOVED:
            line(console, "the group has moved since it was planned:")
            print_moved(console, plan, moved_of(progress))
            done = (
                f"{progress.done_count} of {total} queues are changed"
                if progress.done_count
                else "nothing was changed"
            )
            line(console, f"{done}; plan anew, or apply with --force to go on all the same")
        case Outcome.WAITING:
            order_id = plan.plan_id if _state_of(progress, plan.plan_id) else plan.order_id(is_forced=True)
            line(
                console,
                f"nothing is changed yet: {APPROVE} {order_id}, by somebody else",
            )
        case Outcome.REJECTED:
            line(console, "nothing was changed; plan anew if it is wanted after all")
        case Outcome.FAILED:
            line(
                console,
                f"{progress.done_count} of {total} queues are changed; the same command again goes on",
            )
        case Outcome.DONE | Outcome.UNCONFIRMED:
            told = any(part.way not in (None, StockWay.COMMIT) for part in progress.brokers.values())
            line(console, f"{progress.done_count} of {total} queues are {'ordered' if told else 'changed'}")
            _print_receipts(console, progress)


def moved_of(progress: Progress) -> dict[str, dict[int, int | None]]:
    """What the look before and the brokers themselves found moved."""
    found = {name: dict(queues) for name, queues in progress.moved.items()}
    for name, part in progress.brokers.items():
        if part.order is not None and part.order.state is ResetState.MOVED:
            at_broker = {
                queue_id: None if now < 0 else int(now) for queue_id, now in part.order.moved.items()
            }
            found[name] = found.get(name, {}) | at_broker
    return found


def progress_to_json(progress: Progress) -> dict[str, object]:
    count = progress.tally
    return {
        "planId": progress.plan.plan_id,
        "outcome": progress.outcome.name,
        "queues": len(progress.plan.queues),
        "queuesChanged": progress.done_count,
        "confirmed": count.confirmed,
        "missing": count.missing,
        "moved": moved_of(progress),
        "brokers": {
            name: {
                "order": part.order,
                "later": [order.order_id for order in part.later],
                "way": None if part.way is None else part.way.value,
                "queuesChanged": part.done_count,
                "queuesSeen": sorted(part.seen) if part.way else None,
                "failure": part.failure,
            }
            for name, part in progress.brokers.items()
        },
    }


def print_checked(console: Console, checked: Checked) -> None:
    """Each queue as it is found, each order, and who has confirmed."""
    table = Table("queue", "before", "target", "now", "verdict", "confirmed", box=None)
    for queue in checked.queues[:_SHOWN_QUEUES]:
        name = f"{queue.planned.broker_name}:{queue.planned.queue_id}"
        values = (queue.before, queue.planned.target, queue.now)
        confirmed = "yes" if queue.is_confirmed else "no"
        verdict = _verdict_text(queue, is_broadcast=checked.plan.is_broadcast)
        table.add_row(*map(Text, (name, *map(_offset, values), verdict, confirmed)))
    print_whole(console, table)
    _print_rest(console, len(checked.queues) - _SHOWN_QUEUES, "queues; --json has them all")
    for name, order in checked.orders.items():
        if order is None:
            line(console, f"{name}: there is no order of this plan; apply it")
        elif name in checked.later:
            line(console, f"{name}: {_overtaken_text(checked.plan, order, checked.later[name])}")
        elif order.state is not ResetState.APPLIED:
            line(console, f"{name}: {_state_text(order)}")
    print_receipts(console, [order for order in checked.orders.values() if order is not None])
    for name in sorted(checked.stock):
        line(console, f"{name}: no Tanist broker, so no client's receipt can be had")
    if checked.orders:
        line(console, checked.tally.sentence())
    line(console, "it holds" if checked.outcome is Outcome.DONE else "it can not be said that it holds")


def checked_to_json(checked: Checked) -> dict[str, object]:
    count = checked.tally
    return {
        "planId": checked.plan.plan_id,
        "outcome": checked.outcome.name,
        "confirmed": count.confirmed,
        "missing": count.missing,
        "queues": [
            {
                "brokerName": queue.planned.broker_name,
                "queueId": queue.planned.queue_id,
                "before": queue.before,
                "target": queue.planned.target,
                "now": queue.now,
                "verdict": queue.verdict.value,
                "confirmed": queue.is_confirmed,
            }
            for queue in checked.queues
        ],
        "orders": list(checked.orders.values()),
        "later": {name: order.order_id for name, order in checked.later.items()},
        "withoutReceipts": sorted(checked.stock),
    }


def print_orders(console: Console, orders: Sequence[ResetOrderView]) -> None:
    """A line an order, the newest last."""
    if not orders:
        line(console, "no order is known there")
        return
    table = Table(
        "created", "order", "broker", "group", "topic", "by", "state", "queues", "confirmed", box=None
    )
    for order in orders:
        confirmed = sum(receipt.confirmed_ms > 0 for receipt in order.receipts)
        table.add_row(
            *map(
                Text,
                (
                    time_of(order.created_ms),
                    order.order_id,
                    order.broker_name,
                    order.group,
                    order.topic,
                    order.caller,
                    _state_text(order),
                    str(len(order.targets)),
                    f"{confirmed} of {len(order.receipts)}",
                ),
            )
        )
    print_whole(console, table)


def print_receipts(console: Console, orders: Iterable[ResetOrderView]) -> None:
    """A line a client and queue: where it was, where it went, and what it took first."""
    table = Table("client", "state", "queue", "from", "to", "first taken", "why", box=None)
    for order in orders:
        for receipt in order.receipts:
            number = receipt.version
            version = version_name(int(number)) if number.isdecimal() else number
            head = (f"{receipt.client_id} {receipt.language} {version}".rstrip(), receipt.state.value)
            for queue in receipt.queues[:_SHOWN_QUEUES]:
                where = (queue.old_offset, queue.new_offset, queue.first_offset)
                name = f"{order.broker_name}:{queue.queue_id}"
                table.add_row(*map(Text, (*head, name, *map(_offset, where), receipt.reason)))
                head = ("", "")
            if not receipt.queues:
                table.add_row(
                    *map(Text, (*head, order.broker_name, "", "", "", receipt.reason or "no queue"))
                )
    if table.row_count:
        print_whole(console, table)


def line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _part_lines(plan: Plan, name: str, part: AtBroker) -> list[str]:
    changed = f"{part.done_count} of {part.queue_count} queues are changed there"
    lines = [f"{name}: {part.failure}; {changed}"] if part.failure else []
    if part.order is not None and part.later:
        lines.append(f"{name}: {_overtaken_text(plan, part.order, part.later[-1])}")
    elif part.order is not None and part.order.state not in (ResetState.APPLIED, ResetState.MOVED):
        lines.append(f"{name}: {_state_text(part.order)}")
    if part.way is not None and part.is_applied:
        unseen = len(part.done - part.seen)
        seen = "all seen there" if not unseen else f"{unseen} of {len(part.done)} not seen to have moved"
        lines.append(f"{name}: no Tanist broker, so no client's receipt can be had; queues: {seen}")
    return lines


def _print_receipts(console: Console, progress: Progress) -> None:
    if any(part.order for part in progress.brokers.values()):
        line(console, progress.tally.sentence())
    if progress.outcome is Outcome.UNCONFIRMED:
        line(console, "look again with tanist admin resetOffset verify")


def _state_of(progress: Progress, order_id: str) -> bool:
    return any(
        part.order is not None and part.order.order_id == order_id for part in progress.brokers.values()
    )


def _verdict_text(queue: CheckedQueue, *, is_broadcast: bool) -> str:
    if is_broadcast:
        return "its clients keep it"
    is_settled = queue.verdict is Verdict.AMBIGUOUS and queue.is_confirmed
    return "consumed all of it again" if is_settled else queue.verdict.value


def _overtaken_text(plan: Plan, order: ResetOrderView, later: ResetOrderView) -> str:
    how = "undone" if later.undoes in plan.order_ids else "superseded"
    return f"applied at {time_of(order.applied_ms)}, since then {how} by {later.order_id}"


def _state_text(order: ResetOrderView) -> str:
    if order.state is ResetState.REJECTED and order.decider:
        why = f": {order.decision_reason}" if order.decision_reason else ""
        return f"{order.state} by {order.decider}{why}"
    return order.state.value


def _print_clients(console: Console, plan: Plan) -> None:
    if not plan.clients:
        return
    table = Table("client", "address", "language", "version", "at", box=None)
    for client in plan.clients[:_SHOWN_QUEUES]:
        row = (client.client_id, client.address, client.language, client.version, ", ".join(client.brokers))
        table.add_row(*map(Text, row))
    print_whole(console, table)
    _print_rest(console, len(plan.clients) - _SHOWN_QUEUES, "clients")


def _print_rest(console: Console, count: int, what: str) -> None:
    if count > 0:
        line(console, f"… and {count} more {what}")


def _queue_row(queue: PlannedQueue) -> tuple[str, ...]:
    if queue.stands:
        low, high = min(queue.stands.values()), max(queue.stands.values())
        now = str(low) if low == high else f"{low}…{high}"
    else:
        now = _offset(queue.now)
    return (
        f"{queue.broker_name}:{queue.queue_id}",
        now,
        str(queue.target),
        str(queue.replayed),
        str(queue.skipped),
        str(queue.min_offset),
        str(queue.max_offset),
        _NONE if queue.oldest_ms is None else time_of(queue.oldest_ms),
    )


def _moved_text(queue: PlannedQueue, now: int | None) -> str:
    return "as planned" if now == queue.now else f"at {_offset(now)}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _offset(value: int | None) -> str:
    return _NONE if value is None else str(value)
