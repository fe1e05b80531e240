"""How far each batch of a stream goes."""

import json
from dataclasses import replace

import pytest

from tanist.model.route import MessageQueue
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.offsets import Bound, QueueState
from tanist.spark.rocketmq.progress import behind_latest
from tanist.spark.rocketmq.streaming import (
    batch_ranges,
    check_offsets,
    clusters_in,
    first_offsets,
    from_table,
    next_offsets,
    to_checkpoint,
    to_table,
)


def queue(queue_id: int, broker: str = "a") -> MessageQueue:
    return MessageQueue(topic="T", broker_name=broker, queue_id=queue_id)


def state(queue_id: int, least: int, most: int, broker: str = "a") -> QueueState:
    return QueueState(queue(queue_id, broker), ("127.0.0.1:1",), least, most)


def test_equal_offsets_are_equal_as_text_whatever_their_order() -> None:
    offsets = {queue(10): 1, queue(2): 5, queue(0, "b"): 7}
    shuffled = dict(reversed(offsets.items()))

    assert json.dumps(to_table(offsets)) == json.dumps(to_table(shuffled))
    assert from_table(to_table(offsets)) == offsets


def test_a_stream_begins_where_it_was_told() -> None:
    states = [state(0, 5, 9)]

    for word, offset in (("latest", 9), ("earliest", 5), ("group", 5)):
        start = Bound("startingOffsets", word=word)
        assert first_offsets(states, start, fails_on_loss=True) == {queue(0): offset}


@pytest.mark.parametrize(
    "start", [Bound("startingOffsets", table={queue(0): 2}), Bound("startingOffsets", word="group")]
)
def test_a_stream_that_would_begin_before_what_there_is_is_refused_unless_loss_is_accepted(
    start: Bound,
) -> None:
    states = [replace(state(0, 5, 9), group_offset=2)]

    with pytest.raises(SparkError, match="queue T/a/0 begins at 5 now, and was to be read from 2"):
        first_offsets(states, start, fails_on_loss=True)
    assert first_offsets(states, start, fails_on_loss=False) == {queue(0): 5}


def test_a_limit_is_divided_by_what_each_queue_has_and_starves_none() -> None:
    begins = {queue(0): 0, queue(1): 0, queue(2): 3}
    states = [state(0, 0, 900), state(1, 0, 1), state(2, 0, 3)]

    assert next_offsets(begins, states, most=None, until=None) == {queue(0): 900, queue(1): 1, queue(2): 3}
    assert next_offsets(begins, states, most=100, until=None) == {queue(0): 99, queue(1): 1, queue(2): 3}


def test_a_limited_stream_comes_to_its_end() -> None:
    offsets, states = {queue(0): 0, queue(1): 0}, [state(0, 0, 97), state(1, 0, 5)]
    batches = 0
    while (following := next_offsets(offsets, states, most=10, until=None)) != offsets:
        assert sum(following.values()) - sum(offsets.values()) <= 11
        offsets, batches = following, batches + 1

    assert offsets == {queue(0): 97, queue(1): 5}
    assert batches <= 12


def test_what_comes_after_a_query_began_to_read_what_there_is_is_left_to_the_next() -> None:
    begins, until = {queue(0): 0}, {queue(0): 5}
    states = [state(0, 0, 9), state(1, 0, 4)]

    assert next_offsets(begins, states, most=None, until=until) == {queue(0): 5}


def test_a_queue_that_appears_later_begins_with_its_first_message() -> None:
    begins = {queue(0): 5}
    states = [state(0, 0, 5), state(1, 2, 4, "b")]

    ends = next_offsets(begins, states, most=None, until=None)

    assert ends == {queue(0): 5, queue(1, "b"): 4}
    found = batch_ranges(begins, ends, states, fails_on_loss=True)
    assert [(one.queue, one.first, one.end) for one in found] == [(queue(1, "b"), 2, 4)]


def test_a_queue_whose_broker_is_away_stays_where_it_is() -> None:
    assert next_offsets({queue(0): 5}, [state(1, 0, 4)], most=None, until=None) == {queue(0): 5, queue(1): 4}


def test_what_was_deleted_before_it_was_read_is_an_error_unless_loss_is_accepted() -> None:
    begins, ends, states = {queue(0): 5}, {queue(0): 20}, [state(0, 10, 20)]

    with pytest.raises(SparkError, match="queue T/a/0 begins at 10 now, and was to be read from 5"):
        batch_ranges(begins, ends, states, fails_on_loss=True)
    found = batch_ranges(begins, ends, states, fails_on_loss=False)
    assert [(one.first, one.end) for one in found] == [(10, 20)]


def test_a_checkpoint_of_another_cluster_is_refused() -> None:
    with pytest.raises(SparkError, match="the checkpoint is of brokers a, and there is b: it is of another"):
        check_offsets({queue(0): 5}, [state(0, 0, 9, "b")], fails_on_loss=False)
    with pytest.raises(SparkError, match="at 50 in queue T/a/0, which ends at 9"):
        check_offsets({queue(0): 50}, [state(0, 0, 9)], fails_on_loss=True)
    check_offsets({queue(0): 50}, [state(0, 0, 9)], fails_on_loss=False)


def test_a_checkpoint_names_the_cluster_of_each_broker_and_is_refused_in_another() -> None:
    here, there = (replace(state(0, 0, 9), cluster=name) for name in ("east", "west"))
    checkpoint = to_checkpoint({queue(0): 5}, clusters_in({}, [here]))

    assert json.dumps(checkpoint) == '{"@clusters": {"a": "east"}, "T": {"a": {"0": 5}}}'
    assert from_table(checkpoint) == {queue(0): 5}
    # A broker that came later is added, one that is away stays known.
    later = replace(state(0, 0, 9, "b"), cluster="west")
    assert clusters_in(checkpoint, [later]) == {"a": "east", "b": "west"}
    with pytest.raises(SparkError, match="of broker a in cluster east, and the name servers know it in clus"):
        clusters_in(checkpoint, [there])


def test_a_checkpoint_that_names_no_cluster_is_believed() -> None:
    old = to_table({queue(0): 5})

    assert clusters_in(old, [replace(state(0, 0, 9), cluster="west")]) == {"a": "west"}


def test_a_slave_that_answers_for_its_master_may_be_behind_the_checkpoint() -> None:
    behind = replace(state(0, 0, 9), is_of_master=False)

    check_offsets({queue(0): 50}, [behind], fails_on_loss=True)
    assert next_offsets({queue(0): 50}, [behind], most=None, until=None) == {queue(0): 50}


def test_progress_tells_how_far_a_stream_is_behind() -> None:
    reached = {"@clusters": {"a": "east"}, "T": {"a": {"0": 5}}}
    told = {"latestOffset": '{"T": {"a": {"0": 9, "1": 4}}}', "endOffset": json.dumps(reached)}

    assert behind_latest(told) == {"T/a/0": 4, "T/a/1": 4}
    assert behind_latest({"latestOffset": None, "endOffset": told["endOffset"]}) == {}
