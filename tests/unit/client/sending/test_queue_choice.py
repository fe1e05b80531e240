"""Queues are used in turn, away from brokers that failed; a sharding key has one queue."""

import pytest

from tanist.client.sending.faults import FAILED_REST_S, BrokerFaults
from tanist.client.sending.queue_choice import QueueRound, queue_of_key
from tanist.model.route import MessageQueue

NO_FAULTS = BrokerFaults()


def queues(*broker_names: str, count: int = 2) -> tuple[MessageQueue, ...]:
    return tuple(
        MessageQueue(topic="T", broker_name=name, queue_id=number)
        for name in broker_names
        for number in range(count)
    )


def test_each_queue_has_its_turn() -> None:
    all_queues = queues("a", "b")
    turns = QueueRound(all_queues, start=3)
    chosen = [turns.next(NO_FAULTS, now_s=0) for _ in range(8)]
    assert chosen == [*all_queues[3:], *all_queues, *all_queues[:3]]


def test_a_failed_broker_is_passed_over_until_its_rest_is_over() -> None:
    faults = BrokerFaults()
    faults.on_failure("a", now_s=0)
    turns = QueueRound(queues("a", "b", "c"), start=0)
    chosen = [turns.next(faults, now_s=1).broker_name for _ in range(8)]
    assert chosen == ["b", "b", "c", "c"] * 2
    assert {turns.next(faults, now_s=FAILED_REST_S).broker_name for _ in range(6)} == {"a", "b", "c"}


def test_a_failed_broker_is_used_when_no_other_is_left() -> None:
    faults = BrokerFaults()
    faults.on_failure("a", now_s=0)
    assert QueueRound(queues("a"), start=0).next(faults, now_s=1).broker_name == "a"
    faults.on_failure("b", now_s=0)
    turns = QueueRound(queues("a", "b"), start=0)
    assert {turns.next(faults, now_s=1).broker_name for _ in range(4)} == {"a", "b"}


def test_the_next_try_is_on_another_broker_also_if_the_last_one_has_no_fault() -> None:
    turns = QueueRound(queues("a", "b"), start=0)
    assert turns.next(NO_FAULTS, now_s=0, failed_broker="a").broker_name == "b"


def test_the_next_try_is_on_the_same_broker_if_there_is_no_other() -> None:
    turns = QueueRound(queues("a"), start=0)
    assert turns.next(NO_FAULTS, now_s=0, failed_broker="a").broker_name == "a"


@pytest.mark.parametrize(
    ("sharding_key", "index"),
    [
        ("hello", 2),
        ("", 0),
        # Its hash in Java is the least int, which has no positive counterpart there.
        ("polygenelubricants", 8),
    ],
)
def test_a_key_goes_to_the_queue_that_java_chooses(sharding_key: str, index: int) -> None:
    ten = queues("a", count=10)
    assert queue_of_key(ten, sharding_key) is ten[index]
