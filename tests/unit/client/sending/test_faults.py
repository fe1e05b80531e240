"""Brokers that failed or are slow rest for a while, and are used all the same when no other is left."""

import pytest

from tanist.client.sending.faults import FAILED_REST_S, BrokerFaults, Standing


@pytest.mark.parametrize(
    ("latency_s", "rest_s"), [(0.55, 2), (1.79, 2), (1.8, 5), (3.0, 6), (5.0, 10), (15.0, 30), (60.0, 30)]
)
def test_the_slower_an_answer_was_the_longer_its_broker_rests(latency_s: float, rest_s: float) -> None:
    faults = BrokerFaults()
    faults.on_answer("a", latency_s=latency_s, now_s=100)
    assert faults.standing("a", now_s=100 + rest_s - 0.01) is Standing.SLOW
    assert faults.standing("a", now_s=100 + rest_s) is Standing.GOOD


def test_an_answer_in_time_is_no_fault() -> None:
    faults = BrokerFaults()
    faults.on_answer("a", latency_s=0.549, now_s=100)
    assert faults.are_none


def test_a_quick_answer_ends_a_rest() -> None:
    faults = BrokerFaults()
    faults.on_failure("a", now_s=100)
    faults.on_answer("a", latency_s=0.01, now_s=101)
    assert faults.standing("a", now_s=101) is Standing.GOOD
    assert faults.are_none


def test_a_rest_that_is_over_is_forgotten() -> None:
    faults = BrokerFaults()
    faults.on_failure("a", now_s=100)
    assert not faults.are_none
    assert faults.best({"a"}, now_s=100 + FAILED_REST_S) == {"a"}
    assert faults.are_none


def test_the_best_are_those_without_fault_then_the_slow_then_the_failed() -> None:
    faults = BrokerFaults()
    faults.on_failure("failed", now_s=100)
    faults.on_answer("slow", latency_s=2, now_s=100)
    assert faults.best({"good", "fine", "slow", "failed"}, now_s=101) == {"good", "fine"}
    assert faults.best({"slow", "failed"}, now_s=101) == {"slow"}
    assert faults.best({"failed"}, now_s=101) == {"failed"}


def test_a_broker_with_another_master_is_as_good_as_any() -> None:
    faults = BrokerFaults()
    faults.on_failure("a", now_s=100)
    faults.forget("a")
    assert faults.are_none
    faults.forget("never-seen")
