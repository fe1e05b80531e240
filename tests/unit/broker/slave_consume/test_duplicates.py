import asyncio
from functools import partial

import pytest

from tanist.broker.pull_progress import PullProgress
from tanist.broker.slave_consume.duplicates import (
    duplicates_delivered,
    duplicates_unknown,
    in_steps,
    unbounded,
)
from tanist.broker.slave_consume.duty import in_turns

_OFFSETS = {"TopicA@g1": {0: 90, 1: 100}, "TopicB@g1": {0: 5}, "TopicA@g2": {0: 100}}
_BOUNDS = {"TopicA": {0: (20, 100), 1: (60, 100)}, "TopicB": {0: (0, 7)}, "Empty": {0: (3, 3)}}


def _bounds(topic: str) -> dict[int, tuple[int, int]]:
    return _BOUNDS.get(topic, {})


@pytest.mark.behaviour("S3-55")
def test_of_a_broker_that_is_gone_all_messages_behind_the_offsets_may_have_been_delivered() -> None:
    assert duplicates_unknown(_OFFSETS, _bounds) == {"g1": 12, "g2": 40}


def test_a_queue_without_an_offset_may_have_been_delivered_whole() -> None:
    assert duplicates_unknown({"TopicA@g2": {0: 100}}, _bounds) == {"g2": 40}


def test_a_group_without_an_offset_in_a_topic_that_it_wanted_has_no_bound() -> None:
    wanted = {"g1": ("TopicA", "TopicB"), "g2": ("TopicA", "TopicB"), "g3": ("Empty", "Unknown"), "g4": ()}
    assert asyncio.run(in_turns(unbounded(wanted, _OFFSETS, _bounds))) == ["g2"]


def test_a_group_that_had_no_members_there_has_consumed_nothing_there() -> None:
    assert duplicates_unknown(_OFFSETS, _bounds, groups={"g3"}) == {}
    assert duplicates_unknown(_OFFSETS, _bounds, groups={"g1"}) == {"g1": 12}


def test_an_offset_behind_the_end_of_its_queue_counts_for_nothing() -> None:
    assert duplicates_unknown({"TopicA@g1": {0: 120, 1: 98}}, _bounds) == {"g1": 2}


def test_an_offset_below_0_means_that_nothing_was_consumed() -> None:
    assert duplicates_unknown({"TopicB@g1": {0: -1}}, _bounds) == {"g1": 7}


def test_messages_that_the_log_has_not_any_more_are_not_delivered() -> None:
    assert duplicates_unknown({"TopicA@g1": {0: 5, 1: 100}}, _bounds) == {"g1": 80}


def test_counting_in_steps_comes_to_the_same() -> None:
    offsets = {f"TopicA@g{number % 3}": {0: 90} for number in range(3)}
    offsets |= {f"TopicA@other{number}": {0: 99} for number in range(1_000)}
    count = partial(duplicates_unknown, bounds=_bounds)
    assert asyncio.run(in_turns(in_steps(count, offsets))) == count(offsets)
    assert len(list(in_steps(count, offsets))) > 1


def test_what_is_no_consumer_groups_is_not_counted() -> None:
    offsets = {"RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS": {0: 0}, "TopicA@g1@client": {0: 0}}
    assert duplicates_unknown(offsets, lambda _topic: {0: (0, 10)}) == {}


def test_at_a_hand_back_only_what_was_delivered_and_not_committed_counts() -> None:
    progress = PullProgress()
    progress.note("g1", "TopicA", 0, 96)
    progress.note("g1", "TopicA", 1, 100)
    progress.note("g1", "TopicB", 0, 6)
    assert duplicates_delivered(_OFFSETS, progress.find) == {"g1": 7}


def test_a_group_that_has_committed_beyond_its_last_pull_has_nothing_in_hand() -> None:
    progress = PullProgress()
    progress.note("g2", "TopicA", 0, 60)
    assert duplicates_delivered(_OFFSETS, progress.find) == {}
