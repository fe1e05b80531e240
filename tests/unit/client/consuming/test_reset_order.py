"""What a consumer knows of orders to go to other offsets."""

from tanist.client.consuming.reset_order import MAX_ORDERS, KnownOrders, OrderKey, ResetOrder
from tanist.client.queues.queue_move import QueueMove
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import QueueReceipt, QueueReceipts
from tests.support.offset_stores import offsets_of, queue_of


def make_order(*pairs: tuple[int, int], order_id: str = "order-1", epoch: int = 0) -> ResetOrder:
    return ResetOrder(order_id, "T", "broker-a", offsets_of(pairs), epoch=epoch)


def moved(number: int, old_offset: int, target: int, failure: str = "") -> QueueMove:
    return QueueMove(queue_of(number), QueueOffset(old_offset), QueueOffset(target), failure)


def receipt_of(
    number: int, old_offset: int, new_offset: int, first_offset: int | None = None
) -> QueueReceipt:
    return QueueReceipt(
        queue_id=number,
        old_offset=QueueOffset(old_offset),
        new_offset=QueueOffset(new_offset),
        first_offset=None if first_offset is None else QueueOffset(first_offset),
    )


def test_a_receipt_has_where_each_queue_stood_and_where_it_went() -> None:
    order = make_order((0, 3), (1, 5))
    order.on_moves([moved(1, 9, 5), moved(0, 8, 3)])
    assert order.receipt() == QueueReceipts(queues=[receipt_of(0, 8, 3), receipt_of(1, 9, 5)])
    assert not order.left
    assert not order.is_running


def test_the_first_message_of_a_queue_is_in_the_next_receipt() -> None:
    order = make_order((0, 3), (1, 5))
    order.on_moves([moved(0, 8, 3), moved(1, 9, 5)])
    order.on_first_taken(queue_of(1), QueueOffset(7))
    assert order.receipt().queues == [receipt_of(0, 8, 3), receipt_of(1, 9, 5, 7)]


def test_queues_that_did_not_move_are_a_failure_and_are_all_that_is_left() -> None:
    order = make_order((0, 3), (1, 5))
    order.on_moves([moved(0, 8, 3), moved(1, 9, 5, "nobody kept it")])
    assert order.receipt() == QueueReceipts(queues=[receipt_of(0, 8, 3)], failure="queue 1: nobody kept it")
    assert order.left == offsets_of([(1, 5)])
    order.on_moves([moved(1, 9, 5)])
    assert order.receipt() == QueueReceipts(queues=[receipt_of(0, 8, 3), receipt_of(1, 9, 5)])


def test_a_reset_that_failed_as_a_whole_leaves_all_queues() -> None:
    order = make_order((0, 3))
    order.on_failure("no strength")
    assert order.receipt() == QueueReceipts(failure="no strength")
    assert order.left == offsets_of([(0, 3)])


def test_an_order_that_is_told_again_goes_where_it_says_by_then_in_what_is_left() -> None:
    order = make_order((0, 3), (1, 5))
    order.on_moves([moved(0, 8, 3), moved(1, 9, 5, "nobody kept it")])
    order.on_told(offsets_of([(0, 4), (1, 7)]))
    assert order.left == offsets_of([(1, 7)])
    assert order.is_running


def test_a_member_without_such_a_queue_has_moved_none() -> None:
    order = make_order((0, 3))
    order.on_moves([])
    assert order.receipt() == QueueReceipts()
    assert not order.left


def test_of_many_failures_a_few_are_told_and_the_others_counted() -> None:
    order = make_order(*((number, 0) for number in range(20)))
    order.on_moves([moved(number, 9, 0, "no") for number in range(20)])
    told = order.receipt().failure.split("; ")
    assert told[0] == "queue 0: no"
    assert told[-1] == "and 12 queues more"
    assert len(told) == 9


def test_a_queue_that_begins_elsewhere_has_not_moved() -> None:
    assert moved(0, 8, 3).begun_at(QueueOffset(4)).failure == "it went on at 4 instead of 3"
    # Whoever kept the offset: what counts is where it begins.
    assert moved(0, 8, 3, "not kept").begun_at(QueueOffset(3)) == moved(0, 8, 3)


def test_the_oldest_orders_are_forgotten() -> None:
    known = KnownOrders()
    for number in range(MAX_ORDERS + 1):
        known.add(make_order((0, 1), order_id=str(number)))
    assert known.find(OrderKey("0", "T", "broker-a")) is None
    assert known.find(OrderKey("1", "T", "broker-a")) is not None
    assert known.find(OrderKey(str(MAX_ORDERS), "T", "broker-a")) is not None


def test_orders_of_two_brokers_may_have_one_id() -> None:
    known = KnownOrders()
    known.add(make_order((0, 1)))
    assert known.find(OrderKey("order-1", "T", "broker-b")) is None


def test_an_order_that_was_applied_anew_is_another_one() -> None:
    known = KnownOrders()
    known.add(make_order((0, 3)))
    assert known.find(OrderKey("order-1", "T", "broker-a", applied_ms=7)) is None


def test_an_order_that_runs_gives_way_in_the_queues_of_one_that_is_told_after_it() -> None:
    known, before, done = KnownOrders(), make_order((0, 3), (1, 5)), make_order((1, 4), order_id="done")
    done.on_moves([moved(1, 9, 4, "nobody kept it")])
    newer = make_order((1, 7), order_id="newer")
    for order in (done, before, newer):
        known.add(order)
    under_way = before.left
    known.give_way(newer)
    assert under_way == offsets_of([(0, 3)])
    assert newer.left == offsets_of([(1, 7)])
    assert done.left == offsets_of([(1, 4)])


def test_what_a_master_told_that_was_replaced_is_late_once_the_new_one_has_told_anything() -> None:
    known, newer = KnownOrders(), make_order((0, 3), epoch=2)
    known.add(make_order((0, 7), order_id="older", epoch=1))
    assert not known.is_late("broker-a", 1)
    known.add(newer)
    newer.on_moves([moved(0, 9, 3)])
    assert known.is_late("broker-a", 1)
    assert not known.is_late("broker-a", 2)
    assert not known.is_late("broker-a", 3)


def test_an_order_of_another_broker_or_of_one_without_epochs_is_never_late() -> None:
    known = KnownOrders()
    known.add(make_order((0, 3), epoch=2))
    assert not known.is_late("broker-b", 1)
    assert not known.is_late("broker-a", 0)


def test_an_order_that_a_new_master_tells_again_is_of_its_epoch() -> None:
    known, order = KnownOrders(), make_order((0, 3), epoch=1)
    known.add(order)
    order.on_teller(2)
    assert known.is_late("broker-a", 1)
    order.on_teller(0)
    assert known.is_late("broker-a", 1)
