import random

import pytest

from tanist.broker.transactions.open_transactions import HalfPlace, OpenTransactions


def opened(*dues_ms: int, **options: int) -> OpenTransactions:
    """One transaction a time, at queue offsets 0, 1, ... and origins 1000, 1001, ..."""
    transactions = OpenTransactions(**options)  # pyright: ignore[reportArgumentType]
    for number, due_ms in enumerate(dues_ms):
        transactions.on_half(HalfPlace(1000 + number, number), due_ms)
    return transactions


def half(number: int) -> HalfPlace:
    return HalfPlace(1000 + number, number)


def test_halves_come_due_in_the_order_of_their_times() -> None:
    transactions = opened(300, 100, 200)
    assert transactions.next_due_ms == 100
    assert transactions.on_tick(99) is None
    assert [transactions.on_tick(250) for _ in range(3)] == [half(1), half(2), None]
    assert transactions.next_due_ms == 300


def test_a_half_that_was_ended_does_not_come_due() -> None:
    transactions = opened(100, 200)
    assert transactions.find(half(0)) == half(0)
    transactions.on_closed(half(0))
    assert transactions.find(half(0)) is None
    assert transactions.next_due_ms == 200
    assert len(transactions) == 1


def test_the_lowest_open_half_is_up_to_where_all_is_done_with() -> None:
    transactions = opened(1, 1, 1)
    transactions.on_closed(half(1))
    assert transactions.lowest_open == 0
    transactions.on_closed(half(0))
    assert transactions.lowest_open == 2
    transactions.on_closed(half(2))
    assert transactions.lowest_open == transactions.taken_to == 3


def test_a_copy_takes_the_place_of_the_half_that_it_was_made_of() -> None:
    transactions = opened(100)
    assert transactions.on_half(HalfPlace(1000, 1), 500) == 0
    assert transactions.find(half(0)) == HalfPlace(1000, 1)
    assert transactions.on_tick(400) is None
    assert transactions.on_tick(500) == HalfPlace(1000, 1)
    assert transactions.lowest_open == 1


def test_a_half_that_notes_name_is_not_opened() -> None:
    transactions = OpenTransactions(taken_to=5, ended=[3, 6])
    transactions.on_half(half(5), 100)
    transactions.on_half(half(6), 100)
    assert len(transactions) == 1
    assert transactions.find(half(6)) is None


def test_a_note_of_the_first_half_ends_what_rocketmq_appended_in_its_place() -> None:
    transactions = OpenTransactions(taken_to=5, ended=[3])
    transactions.on_half(half(5), 100, first_queue_offset=3)
    transactions.on_half(half(6), 100, first_queue_offset=4)
    assert transactions.find(half(5)) is None
    assert transactions.find(half(6)) == half(6)


def test_a_half_can_be_ended_once_before_it_is_taken_in() -> None:
    transactions = OpenTransactions()
    assert transactions.find(half(0)) == half(0)
    transactions.on_closed(half(0))
    assert transactions.find(half(0)) is None
    transactions.on_half(half(0), 100)
    assert len(transactions) == 0
    assert transactions.find(half(0)) is None


def test_what_has_no_room_stays_in_the_queue() -> None:
    transactions = opened(1, 1, max_open=2)
    assert transactions.is_full
    transactions.on_closed(half(0))
    assert not transactions.is_full


def test_a_note_of_the_first_half_ends_its_renewal_also_when_both_are_taken_in() -> None:
    transactions = OpenTransactions(ended=[0])
    transactions.on_half(HalfPlace(1000, 0), 5)
    transactions.on_half(HalfPlace(1000, 1), 5, first_queue_offset=0)
    assert len(transactions) == 0


def test_a_postponed_half_is_due_again() -> None:
    transactions = opened(100)
    assert transactions.on_tick(100) == half(0)
    assert transactions.next_due_ms is None
    transactions.postpone(half(0), 700)
    assert transactions.next_due_ms == 700


def test_ended_halves_leave_nothing_behind() -> None:
    transactions = OpenTransactions()
    for number in range(10_000):
        transactions.on_half(half(number), 1_000_000)
        transactions.on_closed(half(number))
    assert len(transactions._due) < 3_000
    transactions.on_all_taken()
    assert not transactions._ended


@pytest.mark.parametrize("seed", range(20))
def test_each_transaction_is_due_or_ended_once_whatever_the_order(seed: int) -> None:
    chance = random.Random(seed)
    transactions = OpenTransactions()
    settled: list[int] = []
    queue_offset = now_ms = 0
    pending: set[HalfPlace] = set()
    for _ in range(2_000):
        match chance.choice(["half", "end", "tick"]):
            case "half":
                taken = HalfPlace(5_000 + queue_offset, queue_offset)
                transactions.on_half(taken, now_ms + chance.randrange(100))
                pending.add(taken)
                queue_offset += 1
            case "end" if pending:
                ended = chance.choice(sorted(pending))
                assert transactions.find(ended) == ended
                transactions.on_closed(ended)
                pending.remove(ended)
                settled.append(ended.queue_offset)
            case _:
                now_ms += chance.randrange(50)
                while (due := transactions.on_tick(now_ms)) is not None:
                    transactions.on_closed(due)
                    pending.remove(due)
                    settled.append(due.queue_offset)
        lowest = min((one.queue_offset for one in pending), default=queue_offset)
        assert transactions.lowest_open == lowest
        assert len(transactions) == len(pending)
    assert sorted([*settled, *(one.queue_offset for one in pending)]) == list(range(queue_offset))
