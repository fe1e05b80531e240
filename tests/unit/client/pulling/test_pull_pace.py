"""How far a queue is read ahead."""

import pytest

from tanist.client.pulling.pull_pace import PullBounds, room
from tanist.client.queues.cached_queue import CachedQueue
from tests.support.received import QUEUE, at, received, take_from

BOUNDS = PullBounds(count=10, size_bytes=1 << 20, span=100)


def holding(*offsets: int) -> CachedQueue:
    queue = CachedQueue(QUEUE, at(0))
    queue.add(received(*offsets), fetched_from=at(0), next_offset=at(offsets[-1] + 1))
    return queue


def test_an_empty_queue_has_room_for_all_that_is_wanted_and_no_more_than_the_bound() -> None:
    queue = CachedQueue(QUEUE, at(0))
    assert room(queue, BOUNDS, max_count=4) == 4
    assert room(queue, BOUNDS, max_count=32) == 10


def test_messages_that_are_not_finished_take_room_whether_taken_or_not() -> None:
    queue = holding(0, 1, 2)
    take_from(queue, 2)
    assert room(queue, BOUNDS, max_count=32) == 7


@pytest.mark.parametrize(
    "bounds",
    [
        PullBounds(count=3, size_bytes=1 << 20),
        PullBounds(count=2, size_bytes=1 << 20),
        PullBounds(count=10, size_bytes=3),
        PullBounds(count=10, size_bytes=1 << 20, span=50),
    ],
    ids=["count", "more than the count", "bytes", "span"],
)
def test_a_queue_at_a_bound_is_full_until_something_is_finished(bounds: PullBounds) -> None:
    queue = holding(0, 10, 50)
    assert room(queue, bounds, max_count=32) == 0
    for message in take_from(queue, 3):
        queue.done(message)
    assert room(queue, bounds, max_count=32) > 0


def test_queues_that_share_bounds_keep_within_them_and_each_has_room() -> None:
    share = PullBounds(count=1000, size_bytes=64, span=7).among(16)
    assert share == PullBounds(count=62, size_bytes=4, span=7)
    assert PullBounds(count=2, size_bytes=2).among(5) == PullBounds(count=1, size_bytes=1)
