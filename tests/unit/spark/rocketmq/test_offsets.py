"""From where to where queues are read."""

from typing import Any

import pytest

from tanist.model.route import MessageQueue
from tanist.spark.errors import BadOption, SparkError, UnknownName
from tanist.spark.rocketmq.offsets import (
    EARLIEST,
    GROUP,
    LATEST,
    Bound,
    PullRange,
    QueueState,
    make_ranges,
    read_bound,
    split,
)

WORDS = (EARLIEST, LATEST, GROUP)


def queue(queue_id: int = 0) -> MessageQueue:
    return MessageQueue(topic="T", broker_name="a", queue_id=queue_id)


def state(queue_id: int = 0, least: int = 10, most: int = 50, **more: Any) -> QueueState:
    return QueueState(queue(queue_id), ("127.0.0.1:1",), least, most, **more)


def start(text: str) -> Bound:
    return read_bound("startingOffsets", text, WORDS)


def end(text: str = LATEST) -> Bound:
    return read_bound("endingOffsets", text, (LATEST,))


def read(
    *states: QueueState, first: Bound, last: Bound | None = None, fails: bool = True
) -> list[tuple[int, int]]:
    found = make_ranges(states, first, last or end(), fails_on_loss=fails)
    return [(one.first, one.end) for one in found]


def test_words_stand_for_the_ends_of_a_queue_and_the_place_of_a_group() -> None:
    assert read(state(), first=start("earliest")) == [(10, 50)]
    assert read(state(), first=start("latest")) == []
    assert read(state(group_offset=20), first=start("GROUP")) == [(20, 50)]
    assert read(state(), first=start("group")) == [(10, 50)]


def test_json_names_offsets_of_single_queues() -> None:
    first = start('{"T": {"a": {"0": 12, "1": -2, "2": -1}}}')
    last = end('{"T": {"a": {"0": 15}}}')

    assert read(state(0), state(1), state(2), state(3), first=first, last=last) == [
        (12, 15),
        (10, 50),
        (10, 50),
    ]


def test_times_are_the_offsets_that_the_broker_found_for_them() -> None:
    first, last = Bound("startingTimestamp", timestamp_ms=1), Bound("endingTimestamp", timestamp_ms=2)

    assert read(state(start_at_time=30, end_at_time=40), first=first, last=last) == [(30, 40)]
    assert read(state(start_at_time=40, end_at_time=40), first=first, last=last) == []


def test_what_the_broker_deleted_is_an_error_unless_loss_is_accepted() -> None:
    first = start('{"T": {"a": {"0": 3}}}')

    with pytest.raises(SparkError, match="queue T/a/0 begins at 10 now, and was to be read from 3"):
        read(state(), first=first)
    assert read(state(), first=first, fails=False) == [(10, 50)]


def test_an_end_behind_the_queue_is_its_end() -> None:
    assert read(state(), first=start("earliest"), last=end('{"T": {"a": {"0": 99}}}')) == [(10, 50)]


def test_offsets_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SparkError, match="would be read from 30 to 20, which is before it"):
        read(state(), first=start('{"T": {"a": {"0": 30}}}'), last=end('{"T": {"a": {"0": 20}}}'))


def test_a_queue_that_there_is_not_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="no queue T/a/7; did you mean T/a/0"):
        read(state(), first=start('{"T": {"a": {"7": 30}}}'))


@pytest.mark.parametrize(
    "text", ["first", "{", '{"T": 1}', '{"T": {"a": {"x": 1}}}', '{"T": {"a": {"0": -3}}}']
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadOption):
        start(text)


def test_long_ranges_are_cut_into_pieces_of_one_length() -> None:
    ranges = [PullRange(queue(0), (), 0, 90), PullRange(queue(1), (), 5, 15)]

    assert [(one.first, one.end) for one in split(ranges, 0)] == [(0, 90), (5, 15)]
    assert [(one.queue.queue_id, one.first, one.end) for one in split(ranges, 4)] == [
        (0, 0, 25),
        (0, 25, 50),
        (0, 50, 75),
        (0, 75, 90),
        (1, 5, 15),
    ]
    assert list(split([], 4)) == []
