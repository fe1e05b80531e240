"""Which of a broker's orders took queues over from another."""

import pytest

from tanist.admin.resets.orders import later_orders
from tanist.admin.resets.plan import Plan
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import QueueTarget, ResetOrderView, ResetState

PLAN = Plan(
    plan_id="p",
    created_ms=1,
    created_by="ann",
    name_server="10.0.0.9:9876",
    clusters=["pairs"],
    brokers=["broker-a"],
    topic="Orders",
    group="billing",
    target="earliest",
)


def order(
    order_id: str,
    *,
    applied_ms: int,
    queue_id: int = 0,
    state: ResetState = ResetState.APPLIED,
    undoes: str | None = None,
) -> ResetOrderView:
    return ResetOrderView(
        order_id=order_id,
        topic="Orders",
        group="billing",
        broker_name="broker-a",
        state=state,
        caller="ann",
        caller_address="10.0.0.1:4000",
        undoes=undoes,
        created_ms=1,
        applied_ms=applied_ms,
        targets=[QueueTarget(queue_id=queue_id, target=QueueOffset(7))],
    )


OWN = order("p", applied_ms=50)


@pytest.mark.parametrize(
    ("before", "after", "later"),
    [
        ([], [order("next", applied_ms=60)], ["next"]),
        ([], [order("same-moment", applied_ms=50)], ["same-moment"]),
        ([], [order("expired", applied_ms=60, state=ResetState.EXPIRED)], ["expired"]),
        ([order("approved-late", applied_ms=70)], [order("next", applied_ms=60)], ["next", "approved-late"]),
        ([], [order("undo-of-a-new-master", applied_ms=40, undoes="p")], ["undo-of-a-new-master"]),
        ([order("earlier", applied_ms=40)], [], []),
        ([], [order("other-queue", applied_ms=60, queue_id=1)], []),
        ([], [order("waits", applied_ms=0, state=ResetState.WAITING)], []),
        ([], [order("found-moved", applied_ms=0, state=ResetState.MOVED)], []),
        ([], [order("p-forced", applied_ms=60)], []),
    ],
)
def test_a_later_order_is_one_that_was_applied_after_it_to_its_queues(
    before: list[ResetOrderView], after: list[ResetOrderView], later: list[str]
) -> None:
    found = later_orders(PLAN, OWN, [*before, OWN, *after])
    assert [each.order_id for each in found] == later
