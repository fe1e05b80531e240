"""What is fetched and not finished: nothing is committed before all that lies before it is finished."""

import pytest

from tanist.client.queues.cached_queue import CachedQueue
from tests.support.received import QUEUE, at, received, take_from


def filled(*offsets: int, start: int = 0) -> CachedQueue:
    """A queue that has fetched these offsets and all before the last."""
    queue = CachedQueue(QUEUE, at(start))
    queue.add(received(*offsets), fetched_from=at(start), next_offset=at(offsets[-1] + 1))
    return queue


def test_an_empty_queue_stands_where_it_fetches_next() -> None:
    queue = CachedQueue(QUEUE, at(7))
    assert (queue.consumer_offset, queue.next_offset) == (7, 7)
    assert (queue.count, queue.size_bytes, queue.span, take_from(queue, 5)) == (0, 0, 0, [])


def test_messages_are_taken_in_order_and_once() -> None:
    queue = filled(3, 4, 5, start=3)
    assert [message.queue_offset for message in take_from(queue, 2)] == [3, 4]
    assert [message.queue_offset for message in take_from(queue, 2)] == [5]
    assert take_from(queue, 2) == []
    assert (queue.count, queue.waiting_count) == (3, 0)


def test_the_consumer_offset_is_the_first_that_is_not_finished() -> None:
    queue = filled(0, 1, 2)
    first, second, third = take_from(queue, 3)
    assert queue.done(second)
    assert queue.consumer_offset == 0
    assert queue.done(first)
    assert queue.consumer_offset == 2
    assert queue.done(third)
    assert queue.consumer_offset == 3


def test_offsets_that_were_never_for_this_consumer_are_passed_over() -> None:
    queue = CachedQueue(QUEUE, at(0))
    queue.add(received(4, 9), fetched_from=at(0), next_offset=at(20))
    fourth, ninth = take_from(queue, 2)
    assert queue.consumer_offset == 4
    queue.done(fourth)
    assert queue.consumer_offset == 9
    queue.done(ninth)
    assert queue.consumer_offset == 20
    queue.add([], fetched_from=at(20), next_offset=at(31))
    assert queue.consumer_offset == 31


def test_a_message_is_finished_once() -> None:
    queue = filled(0, 1)
    first, _ = take_from(queue, 2)
    assert queue.done(first)
    assert not queue.done(first)
    assert (queue.count, queue.size_bytes) == (1, len(first.body))


def test_what_is_given_back_is_taken_again_first_and_in_order() -> None:
    queue = filled(0, 1, 2, 3)
    queue.give_back(take_from(queue, 3))
    assert [message.queue_offset for message in take_from(queue, 9)] == [0, 1, 2, 3]


def test_what_is_finished_can_not_be_given_back() -> None:
    queue = filled(0, 1)
    first, second = take_from(queue, 2)
    queue.done(first)
    queue.give_back([first, second])
    assert take_from(queue, 9) == [second]


def test_the_bytes_are_those_of_bodies_that_are_not_finished() -> None:
    messages = received(0, 1, 2)
    queue = filled(0, 1, 2)
    assert queue.size_bytes == sum(len(message.body) for message in messages)
    for message in take_from(queue, 3):
        queue.done(message)
    assert queue.size_bytes == 0


def test_the_span_reaches_from_the_first_that_is_not_finished_to_the_last_fetched() -> None:
    queue = filled(10, 11, 500, start=10)
    first, second, third = take_from(queue, 3)
    assert queue.span == 491
    queue.done(third)
    queue.done(second)
    assert queue.span == 491
    queue.done(first)
    assert queue.span == 0


@pytest.mark.parametrize("late", [0, 1])
def test_what_is_finished_after_a_drop_changes_nothing(late: int) -> None:
    queue = filled(5, 6, 7, start=5)
    first, *others = take_from(queue, 2)
    queue.done(first)
    queue.drop()
    if late:
        assert not queue.done(others[0])
        queue.give_back(others)
    assert not queue.add(received(8), fetched_from=at(8), next_offset=at(9))
    assert queue.is_dropped
    assert (queue.consumer_offset, queue.count, queue.size_bytes, take_from(queue, 9)) == (6, 0, 0, [])


def test_a_dropped_queue_does_not_start_again() -> None:
    queue = filled(0)
    queue.drop()
    queue.restart(at(50))
    assert queue.consumer_offset == 0
    assert not queue.add(received(50), fetched_from=at(50), next_offset=at(51))


def test_what_was_taken_before_a_restart_does_not_finish_its_successor() -> None:
    queue = filled(0, 1)
    old, _ = take_from(queue, 2)
    queue.restart(at(0))
    queue.add(received(0, 1), fetched_from=at(0), next_offset=at(2))
    assert not queue.done(old)
    queue.give_back([old])
    new, _ = take_from(queue, 9)
    assert new is not old
    assert queue.consumer_offset == 0
    assert queue.done(new)
    assert queue.consumer_offset == 1


def test_an_answer_to_a_fetch_from_before_a_restart_is_not_wanted() -> None:
    queue = CachedQueue(QUEUE, at(100))
    queue.restart(at(10))
    assert not queue.add(received(100), fetched_from=at(100), next_offset=at(101))
    assert (queue.next_offset, queue.count) == (10, 0)


def test_offsets_that_do_not_grow_are_a_mistake_of_ours() -> None:
    queue = CachedQueue(QUEUE, at(0))
    with pytest.raises(AssertionError):
        queue.add(received(1, 1), fetched_from=at(0), next_offset=at(5))
