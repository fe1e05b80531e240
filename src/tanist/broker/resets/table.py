"""All orders of one broker, and what is done with them. Pure but for ``save``.

An order is on disk before it changes anything. So a crash leaves one that is known and perhaps not done,
never one that is done and not known: at the next start the offsets of an order that the file of offsets does
not have yet are set once more. What clients confirm is saved within a second.

Two orders for the same queues of a group: the second supersedes the first, whose clients are told the new
targets. If they have only some queues in common, the first one goes on with the others. The second one's plan
was compared with what the first one had set, or it is refused as any other that is late.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from tanist.broker.offsets import OffsetTable
from tanist.broker.resets.actions import Action, NoteReceipt
from tanist.broker.resets.audit import AuditEntry, AuditEvent
from tanist.broker.resets.moment import Moment
from tanist.broker.resets.order import GroupStanding, ResetOrder
from tanist.broker.resets.order_file import OrderFile, SavedOrder
from tanist.broker.resets.order_saving import OrderSaving
from tanist.broker.resets.targets import found_elsewhere
from tanist.broker.resets.watch import OrderWatch
from tanist.errors import DiskFull, ResponseError
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import QueueTarget, ReceiptState, ResetOrderView, ResetState
from tanist.protocol.codes import ResponseCode

MAX_ORDERS = 256
"""Those that are done with go first; one more than this that is not is refused."""
MAX_GROUP_ORDERS = 16
"""Orders of one group that wait or are watched. What its clients do is looked at by each of them."""
MAX_ROWS = 400_000
"""Queues of all orders and their receipts together."""

_K = TypeVar("_K")


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody says to an order that waits."""

    order_id: str
    decider: str
    address: str
    is_approved: bool
    reason: str


class OrderTable:
    """The orders by id, the newest last. Without a file they are kept in memory alone."""

    def __init__(self, file: OrderFile | None = None) -> None:
        self._saving = OrderSaving(file)
        saved = None if file is None else file.load()
        self.version = 0 if saved is None else saved.version
        self._orders: dict[str, ResetOrder] = {}
        self.watched: dict[tuple[str, str], list[OrderWatch]] = {}
        """What is to be seen of clients, by group and topic. Empty on most brokers at most times."""
        self.watched_groups: dict[str, list[OrderWatch]] = {}
        self.listeners: list[Callable[[], None]] = []
        """Told after something has changed."""
        self.watchers: list[Callable[[Iterable[str]], None]] = []
        """Told the ids of orders that have changed, or are gone."""
        self.wakers: list[Callable[[OrderWatch], None]] = []
        """Wake the pulls that wait in the queues of an order."""
        for each in () if saved is None else saved.orders:
            self._restore(each)

    def find(self, order_id: str) -> ResetOrder | None:
        return self._orders.get(order_id)

    def orders(self) -> list[ResetOrder]:
        """All, the oldest first."""
        return list(self._orders.values())

    # What operators do

    def add(self, order: ResetOrder, now_ms: int) -> ResetOrder:
        """Take an order in, to wait or to be applied. The one that is there if it is the same.

        Raises ResponseError if there is another one of its id, or no room.
        """
        known = self._orders.get(order.order_id)
        if known is not None:
            if known.is_same(order.record):
                return known
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"order {order.order_id} is known here with another content; give this one another id",
            )
        self._check_group(order.record)
        self._make_room(len(order.record.targets))
        self._orders[order.order_id] = order
        if order.is_waiting:
            self._note(AuditEvent.ASKED, order, now_ms)
            self._save_or_undo(order)
            self._changed(order)
        return order

    def apply(self, order: ResetOrder, standing: GroupStanding, now: Moment) -> list[Action]:
        """Compare and set all queues of an order, and begin to watch its clients.

        Raises ResponseError, and nothing is done, if it can not be saved, or the offsets find no room.
        """
        was = order.record
        moved: dict[int, QueueOffset] = (
            {} if order.is_by_time else dict(found_elsewhere(was.targets, standing.stands_at))
        )
        order.change(moved=moved)
        if moved and not was.is_forced:
            order.change(state=ResetState.MOVED)
            self._note(
                AuditEvent.MOVED, order, now.wall_ms, reason=f"it stood elsewhere in queues {sorted(moved)}"
            )
            self._save_or_undo(order, was)
            self._changed(order)
            return []
        before = {
            wanted.queue_id: QueueOffset(found)
            for wanted in was.targets
            if not standing.is_broadcast and (found := standing.stands_at(wanted.queue_id)) is not None
        }
        order.change(
            state=ResetState.APPLIED,
            applied_ms=now.wall_ms,
            before=before,
            is_broadcast=standing.is_broadcast,
        )
        self._note(AuditEvent.APPLIED, order, now.wall_ms)
        order.are_offsets_saved = standing.is_broadcast
        with self._taking_queues(order):
            self._save_or_undo(order, was)
            if not standing.is_broadcast:
                try:
                    standing.move({wanted.queue_id: wanted.target for wanted in was.targets})
                except ResponseError:
                    self._forget(order, was)
                    raise
        actions = self._supersede(order, now)
        watch = order.make_watch(standing, now)
        self._watch(watch)
        actions += watch.begin(standing.members, now)
        self._changed(order)
        return actions

    def decide(self, decision: Decision, now_ms: int) -> ResetOrder:
        """Somebody approves or rejects an order. If it is approved the caller applies it, with ``apply``.

        Raises ResponseError if it does not wait, or the decider gave the order.
        """
        order = self._orders.get(decision.order_id)
        if order is None:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND, f"order {decision.order_id} is not known to this broker"
            )
        record = order.record
        if not order.is_waiting:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"order {order.order_id} does not wait for a decision: it is {record.state.value}",
            )
        if decision.decider == record.caller:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"{record.caller} gave order {order.order_id}: somebody else has to decide about it",
            )
        order.change(decider=decision.decider, decision_reason=decision.reason)
        event = AuditEvent.APPROVED if decision.is_approved else AuditEvent.REJECTED
        self._note(event, order, now_ms, who=decision.decider, address=decision.address)
        if not decision.is_approved:
            order.change(state=ResetState.REJECTED)
        self._save_or_undo(order, record)
        self._changed(order)
        return order

    def retarget(self, order: ResetOrder, targets: Sequence[QueueTarget]) -> None:
        """An order by time is about to be applied: where that is follows from what there is now."""
        order.change(targets=list(targets))

    # What happens

    def on_acted(self, actions: Iterable[Action], now_ms: int) -> None:
        """Watches have decided something: note it, before it is carried out."""
        for action in actions:
            order = self._orders.get(action.watch.order_id)
            if order is None:
                continue
            if isinstance(action, NoteReceipt):
                receipt = action.receipt
                is_good = receipt.state is ReceiptState.CONFIRMED
                self._note(
                    AuditEvent.CONFIRMED if is_good else AuditEvent.FAILED,
                    order,
                    now_ms,
                    who=receipt.client_id,
                    address=receipt.address,
                    reason=receipt.reason,
                )
            self._changed(order)

    def touched(self, watch: OrderWatch) -> None:
        """Something of a watch has changed that calls for no action."""
        if (order := self._orders.get(watch.order_id)) is not None:
            self._changed(order)

    def on_tick(self, now: Moment) -> list[Action]:
        """End what has lasted long enough. To be called every few seconds."""
        actions: list[Action] = []
        for order in self._orders.values():
            record, watch = order.record, order.watch
            is_over = 0 < record.expires_ms <= now.wall_ms
            if order.is_waiting and is_over:
                order.change(state=ResetState.REJECTED, decision_reason="nobody decided in time")
                self._note(AuditEvent.REJECTED, order, now.wall_ms, who="", reason="nobody decided in time")
                self._changed(order)
            if watch is None or record.state is not ResetState.APPLIED:
                continue
            actions += watch.on_tick(now)
            if watch.stop_judging(now):
                self._changed(order)
            if is_over:
                if order.is_missing_somebody:
                    order.change(state=ResetState.EXPIRED)
                    self._note(AuditEvent.EXPIRED, order, now.wall_ms, who="")
                    self._changed(order)
                self._unwatch(watch)
            elif watch.is_over(now):
                self._unwatch(watch)
        return actions

    def follow(
        self, orders: Collection[SavedOrder], gone: Iterable[str], *, is_ours: bool, is_whole: bool = False
    ) -> None:
        """Take a master's orders over, to know them as its successor.

        While groups are moved by this broker (``is_ours``) what it knows of an order is newer. If they are
        all that the master has (``is_whole``), others were given when this broker was master, and lost with
        that: they are to be given again, and are not known till then. Those given while it was read stay: the
        master has their offsets.
        """
        if is_whole:
            told = {saved.view.order_id for saved in orders}
            known = self._orders.values()
            gone = [it.order_id for it in known if it.order_id not in told and not it.is_of_slave]
        for saved in orders:
            known = self._orders.get(saved.view.order_id)
            if known is not None and is_ours:
                continue
            if known is not None and known.watch is not None:
                self._unwatch(known.watch)
            # The offsets come from the master too, in a table of their own.
            theirs = msgspec.structs.replace(saved, are_offsets_saved=True, is_of_slave=False)
            self._changed(self._restore(theirs))
        for order_id in () if is_ours else gone:
            if (order := self._orders.pop(order_id, None)) is not None and order.watch is not None:
                self._unwatch(order.watch)
            self._saving.touch(order_id)

    def unsaved(self) -> list[ResetOrder]:
        """Orders whose offsets may not be in the file of offsets yet."""
        return [order for order in self._orders.values() if not order.are_offsets_saved]

    def offsets_saved(self, orders: Iterable[ResetOrder]) -> None:
        """The file of offsets has those of these orders."""
        for order in orders:
            order.are_offsets_saved = True
            self._saving.touch(order.order_id)

    def start_save(self) -> Callable[[], None] | None:
        """The disk's part of saving what changed, which may run on another thread; None if nothing did."""
        return self._saving.start(self._orders.values(), self.version)

    def save(self) -> None:
        """Save what changed, if anything did."""
        if finish := self.start_save():
            finish()

    # Within

    def _save_or_undo(self, order: ResetOrder, was: ResetOrderView | None = None) -> None:
        self._saving.touch(order.order_id)
        try:
            self.save()
        except (OSError, DiskFull) as error:
            self._forget(order, was)
            raise ResponseError(
                ResponseCode.SERVICE_NOT_AVAILABLE, f"order {order.order_id} could not be saved: {error}"
            ) from error

    def _forget(self, order: ResetOrder, was: ResetOrderView | None) -> None:
        """It did not come to pass: it waits as before, or was never there."""
        self._saving.touch(order.order_id)
        self._saving.forget_notes(order.order_id)
        if was is not None and was.state is ResetState.WAITING:
            order.record = msgspec.structs.replace(was, decider="", decision_reason="")
            order.are_offsets_saved = True
        else:
            self._orders.pop(order.order_id, None)
            self._tell_watchers(order.order_id)

    def _restore(self, saved: SavedOrder) -> ResetOrder:
        """An order that is known from before, or from elsewhere, goes on with the queues that it has left."""
        order = self._orders[saved.view.order_id] = ResetOrder.restored(saved)
        if order.watch is not None and order.watch.targets and order.record.state is ResetState.APPLIED:
            self._watch(order.watch)
        return order

    @contextmanager
    def _taking_queues(self, newer: ResetOrder) -> Generator[None]:
        """Note in the orders before that this one has their queues, unless it does not come to pass.

        It is saved with all of them: after a crash nobody is told the old ones any more.
        """
        record, queues = newer.record, newer.queue_ids
        before = {
            order.order_id: order.superseded
            for order in self._orders.values()
            if (order.record.group, order.record.topic) == (record.group, record.topic)
            and order is not newer
            and order.watch is not None
            and not queues.isdisjoint(order.watch.targets)
        }
        for order_id, superseded in before.items():
            self._orders[order_id].superseded = superseded | queues
            self._saving.touch(order_id)
        try:
            yield
        except ResponseError:
            for order_id, superseded in before.items():
                self._orders[order_id].superseded = superseded
                self._saving.touch(order_id)
            raise

    def _supersede(self, newer: ResetOrder, now: Moment) -> list[Action]:
        key = (newer.record.group, newer.record.topic)
        queues = newer.queue_ids
        actions: list[Action] = []
        for watch in [*self.watched.get(key, ())]:
            if queues.isdisjoint(watch.targets):
                continue
            order = self._orders[watch.order_id]
            self._note(
                AuditEvent.SUPERSEDED,
                order,
                now.wall_ms,
                who=newer.record.caller,
                reason=f"by {newer.order_id}",
            )
            if watch.targets.keys() <= queues:
                if order.is_missing_somebody:
                    order.change(state=ResetState.EXPIRED)
                actions += watch.supersede(newer.order_id)
                self._unwatch(watch)
            else:
                actions += watch.give_up(queues, newer.order_id, now)
            self._changed(order)
        return actions

    def _watch(self, watch: OrderWatch) -> None:
        self.watched.setdefault((watch.group, watch.topic), []).append(watch)
        self.watched_groups.setdefault(watch.group, []).append(watch)

    def _unwatch(self, watch: OrderWatch) -> None:
        _remove(self.watched, (watch.group, watch.topic), watch)
        _remove(self.watched_groups, watch.group, watch)

    def _check_group(self, record: ResetOrderView) -> None:
        """Raises ResponseError if too many orders of a group are open that this one does not supersede."""
        queues = {wanted.queue_id for wanted in record.targets}
        waiting = sum(it.is_waiting and it.record.group == record.group for it in self._orders.values())
        watched = sum(
            watch.topic != record.topic or not watch.targets.keys() <= queues
            for watch in self.watched_groups.get(record.group, ())
        )
        if waiting + watched >= MAX_GROUP_ORDERS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD] group {record.group} has {waiting + watched} orders under way; try again when"
                " its clients have followed them, or they have expired",
            )

    def _make_room(self, row_count: int) -> None:
        rows = row_count + sum(_rows(order) for order in self._orders.values())
        for order in [*self._orders.values()]:
            if len(self._orders) < MAX_ORDERS and rows <= MAX_ROWS:
                return
            is_watched = order.watch is not None and order.watch in self.watched_groups.get(
                order.record.group, ()
            )
            if not order.is_waiting and not is_watched:
                rows -= _rows(order)
                del self._orders[order.order_id]
                self._saving.touch(order.order_id)
                self._tell_watchers(order.order_id)
        if len(self._orders) >= MAX_ORDERS or rows > MAX_ROWS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD] {len(self._orders)} orders are under way; try again when some have expired",
            )

    def _note(
        self,
        event: AuditEvent,
        order: ResetOrder,
        now_ms: int,
        *,
        who: str | None = None,
        address: str = "",
        reason: str = "",
    ) -> None:
        record = order.record
        is_first = event in (AuditEvent.ASKED, AuditEvent.APPLIED, AuditEvent.MOVED)
        self._saving.note(
            AuditEntry(
                time_ms=now_ms,
                event=event,
                order_id=order.order_id,
                topic=record.topic,
                group=record.group,
                who=record.caller if who is None else who,
                address=address or (record.caller_address if is_first else ""),
                reason=reason or (record.decision_reason if record.decider else record.reason),
                undoes=record.undoes,
                is_forced=record.is_forced,
                targets={wanted.queue_id: wanted.target for wanted in record.targets} if is_first else {},
                before=dict(record.before) if event is AuditEvent.APPLIED else {},
            )
        )

    def _changed(self, order: ResetOrder) -> None:
        self.version += 1
        self._saving.touch(order.order_id)
        self._tell_watchers(order.order_id)
        for listener in [*self.listeners]:
            listener()

    def _tell_watchers(self, order_id: str) -> None:
        for watcher in self.watchers:
            watcher((order_id,))


def set_unsaved(table: OrderTable, offsets: OffsetTable) -> None:
    """Set the offsets of orders once more that a crash kept from the file of offsets.

    That file may be from before the group came to where the order found it. Should it be newer than the
    order, which is known a moment later, the group gets once more what it has read since: no order is lost.
    """
    for order in table.unsaved():
        record = order.record
        for wanted in record.targets:
            if wanted.queue_id not in order.superseded:
                offsets.commit(record.group, record.topic, wanted.queue_id, wanted.target)


def _rows(order: ResetOrder) -> int:
    receipts = () if order.watch is None else order.watch.receipts
    return len(order.record.targets) + sum(1 + len(receipt.queues) for receipt in receipts)


def _remove(table: dict[_K, list[OrderWatch]], key: _K, watch: OrderWatch) -> None:
    watches = table.get(key, [])
    if watch in watches:
        watches.remove(watch)
        if not watches:
            del table[key]
