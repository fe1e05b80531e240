import pytest

from tanist.store.time_lookup import Boundary, offset_at_time

# The offsets 5 to 11 and when each was stored.
_TIMES = dict(enumerate([100, 200, 200, 200, 300, 300, 500], 5))


def _lookup(timestamp_ms: int, boundary: Boundary) -> int:
    return offset_at_time(_TIMES.__getitem__, timestamp_ms, min_offset=5, max_offset=12, boundary=boundary)


@pytest.mark.parametrize(
    ("timestamp_ms", "offset"),
    [
        (99, 5),  # before the first: the first
        (100, 5),
        (101, 6),  # between two: the later one
        (200, 6),  # an equal run: its first
        (201, 9),
        (300, 9),
        (499, 11),
        (500, 11),
        (501, 12),  # after the last: one past it
    ],
)
def test_the_lower_boundary_is_the_first_message_at_or_after_a_time(timestamp_ms: int, offset: int) -> None:
    assert _lookup(timestamp_ms, Boundary.LOWER) == offset


@pytest.mark.parametrize(
    ("timestamp_ms", "offset"),
    [
        (99, 5),  # before the first: the queue's start
        (100, 5),
        (199, 5),  # between two: the earlier one
        (200, 8),  # an equal run: its last
        (299, 8),
        (300, 10),
        (499, 10),
        (500, 11),
        (501, 11),  # after the last: the last
    ],
)
def test_the_upper_boundary_is_the_last_message_at_or_before_a_time(timestamp_ms: int, offset: int) -> None:
    assert _lookup(timestamp_ms, Boundary.UPPER) == offset


@pytest.mark.parametrize("boundary", Boundary)
def test_an_empty_queue_gives_its_start(boundary: Boundary) -> None:
    assert offset_at_time(_TIMES.__getitem__, 100, min_offset=7, max_offset=7, boundary=boundary) == 7


def test_few_times_are_asked_for() -> None:
    asked: list[int] = []

    def time_of(queue_offset: int) -> int:
        asked.append(queue_offset)
        return queue_offset

    offset_at_time(time_of, 123_456, min_offset=0, max_offset=1 << 20, boundary=Boundary.LOWER)
    assert len(asked) <= 21
