"""One order to move a group, from who gave it to what became of it. Pure.

WAITING --approved--> APPLIED --its time is over, and somebody has not followed--> EXPIRED
   |                     ^
   +--> REJECTED         +--or MOVED, if the group stood elsewhere than planned
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tanist.broker.consumer_group import Client
from tanist.broker.resets.moment import LONG_AGO_MS, Moment
from tanist.broker.resets.order_file import SavedOrder
from tanist.broker.resets.receipts import Receipt
from tanist.broker.resets.watch import PATIENCE_MS, OrderWatch
from tanist.protocol.bodies.reset import ResetOrderView, ResetState


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group in one topic of this broker, at the moment of an order."""

    stands_at: Callable[[int], int | None]
    move: Callable[[Mapping[int, int]], None]
    """Sets its offsets. Raises ResponseError, and sets none, if there is no room for them."""
    members: Sequence[tuple[Client, bool]]
    """Its members here, and of each whether it pulls by itself."""
    is_broadcast: bool
    is_model_known: bool
    readable_count: int
    is_server_side: bool
    pulled_to: Callable[[int], int | None] = lambda _queue_id: None
    """Where the last pull of a queue ended; None if there was none."""


@dataclass(slots=True, eq=False)
class ResetOrder:
    """One order. ``record`` is replaced, never changed; its receipts are those of ``watch``."""

    record: ResetOrderView
    timestamp_ms: int = -1
    is_by_time: bool = False
    """Whether its targets follow from a time when it is applied, and are not compared with anything."""
    is_server_side: bool = False
    are_offsets_saved: bool = True
    queue_id: int = -1
    """The only queue of an order by time; -1 for all."""
    is_of_slave: bool = False
    """Whether it was given while this broker was read in its master's place, which does not know it."""
    superseded: frozenset[int] = frozenset()
    """Queues that another order has taken over, while this one goes on with the others."""
    watch: OrderWatch | None = None

    @property
    def order_id(self) -> str:
        return self.record.order_id

    @property
    def queue_ids(self) -> frozenset[int]:
        return frozenset(wanted.queue_id for wanted in self.record.targets)

    @property
    def is_waiting(self) -> bool:
        return self.record.state is ResetState.WAITING

    @property
    def is_missing_somebody(self) -> bool:
        """Whether a client that is known has not followed."""
        return self.watch is not None and any(receipt.is_open for receipt in self.watch.receipts)

    @property
    def is_judging(self) -> bool:
        """Whether members of which nothing is known are to be judged by what they do.

        So it is before there is a watch: an order is on disk before it changes anything.
        """
        is_applied = self.record.state is ResetState.APPLIED
        return is_applied if self.watch is None else self.watch.is_judging

    def view(self, *, has_queues: bool = True) -> ResetOrderView:
        if self.watch is None:
            return self.record
        return msgspec.structs.replace(
            self.record,
            is_broadcast=self.watch.is_broadcast,
            receipts=[receipt.view(has_queues=has_queues) for receipt in self.watch.receipts],
        )

    def is_same(self, other: ResetOrderView) -> bool:
        """Whether somebody gives the very same order once more."""
        return all(
            getattr(self.record, name) == getattr(other, name)
            for name in ("topic", "group", "targets", "is_forced", "undoes")
        )

    def change(self, **news: object) -> None:
        self.record = msgspec.structs.replace(self.record, **news)

    def make_watch(self, standing: GroupStanding, now: Moment) -> OrderWatch:
        targets = {wanted.queue_id: int(wanted.target) for wanted in self.record.targets}
        self.is_server_side = standing.is_server_side
        self.watch = OrderWatch(
            order_id=self.order_id,
            group=self.record.group,
            topic=self.record.topic,
            targets=targets,
            observable=frozenset(q for q in targets if q < standing.readable_count),
            is_broadcast=standing.is_broadcast,
            is_server_side=standing.is_server_side,
            timestamp_ms=self.timestamp_ms,
            is_forced=self.record.is_forced,
            applied_ms=self.record.applied_ms,
            applied_at_ms=now.steady_ms,
            judges_until_ms=now.steady_ms + PATIENCE_MS,
            is_model_known=standing.is_model_known,
            stood=frozenset(q for q, to in targets.items() if standing.pulled_to(q) == to),
        )
        return self.watch

    def saved(self, *, has_queues: bool = True) -> SavedOrder:
        return SavedOrder(
            view=self.view(has_queues=has_queues),
            timestamp_ms=self.timestamp_ms,
            is_by_time=self.is_by_time,
            is_server_side=self.is_server_side,
            are_offsets_saved=self.are_offsets_saved,
            queue_id=self.queue_id,
            is_of_slave=self.is_of_slave,
            superseded=sorted(self.superseded),
            is_judging=self.is_judging,
        )

    @classmethod
    def restored(cls, saved: SavedOrder) -> "ResetOrder":
        view = saved.view
        order = cls(
            record=msgspec.structs.replace(view, receipts=[]),
            timestamp_ms=saved.timestamp_ms,
            is_by_time=saved.is_by_time,
            is_server_side=saved.is_server_side,
            are_offsets_saved=saved.are_offsets_saved,
            queue_id=saved.queue_id,
            is_of_slave=saved.is_of_slave,
            superseded=frozenset(saved.superseded),
        )
        if view.state in (ResetState.APPLIED, ResetState.EXPIRED):
            targets = {
                wanted.queue_id: int(wanted.target)
                for wanted in view.targets
                if wanted.queue_id not in order.superseded
            }
            order.watch = OrderWatch(
                order_id=view.order_id,
                group=view.group,
                topic=view.topic,
                targets=targets,
                observable=frozenset(targets),
                is_broadcast=view.is_broadcast,
                is_server_side=saved.is_server_side,
                timestamp_ms=saved.timestamp_ms,
                is_forced=view.is_forced,
                applied_ms=view.applied_ms,
                # Who was told before the start is told again, and until then nothing of it is held back.
                judges_until_ms=None if saved.is_judging else LONG_AGO_MS,
                is_model_known=view.is_broadcast or bool(view.receipts or view.before),
                receipts=[Receipt.restored(receipt) for receipt in view.receipts],
            )
        return order
