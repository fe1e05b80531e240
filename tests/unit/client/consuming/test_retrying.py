"""What happens to a message that could not be handled."""

import pytest

from tanist.client import InvalidArgument, RetryLater
from tanist.client.consuming.retrying import GiveUp, RetryRules, SendBack, TryAgain, after_failure

CONCURRENT = RetryRules(is_orderly=False, is_broadcasting=False, max_retries=16)
ORDERLY = RetryRules(is_orderly=True, is_broadcasting=False, max_retries=2)
BROADCASTING = RetryRules(is_orderly=False, is_broadcasting=True, max_retries=6)


def test_the_broker_is_given_a_message_back_and_counts_itself() -> None:
    for times in (0, 15, 16, 99):
        assert after_failure(CONCURRENT, reconsume_times=times) == SendBack(0)


def test_a_handler_may_choose_the_delay_level_or_give_up() -> None:
    assert after_failure(CONCURRENT, reconsume_times=0, delay_level=4) == SendBack(4)
    assert after_failure(CONCURRENT, reconsume_times=0, delay_level=-1) == SendBack(-1)


def test_in_order_a_message_is_tried_again_after_a_second_and_then_is_a_dead_letter() -> None:
    assert [after_failure(ORDERLY, reconsume_times=times) for times in range(3)] == [
        TryAgain(1.0),
        TryAgain(1.0),
        SendBack(-1),
    ]
    assert after_failure(ORDERLY, reconsume_times=0, delay_level=-1) == SendBack(-1)


def test_without_a_bound_a_message_in_order_is_tried_for_ever() -> None:
    rules = RetryRules(is_orderly=True, is_broadcasting=False, max_retries=None)
    assert after_failure(rules, reconsume_times=1_000_000) == TryAgain(1.0)


def test_broadcasting_a_message_comes_again_later_each_time_and_is_then_given_up() -> None:
    decisions = [after_failure(BROADCASTING, reconsume_times=times) for times in range(7)]
    assert decisions == [TryAgain(seconds) for seconds in (1, 2, 4, 8, 16, 30)] + [GiveUp()]
    assert after_failure(BROADCASTING, reconsume_times=0, delay_level=-1) == GiveUp()


def test_broadcasting_a_message_may_come_again_as_often_as_is_allowed() -> None:
    rules = RetryRules(is_orderly=False, is_broadcasting=True, max_retries=10_000)
    assert after_failure(rules, reconsume_times=9_999) == TryAgain(30.0)


@pytest.mark.parametrize("level", [-2, 19, 1.5, "3", None, True])
def test_a_delay_level_that_there_is_not_is_refused(level: int) -> None:
    with pytest.raises(InvalidArgument, match="delay_level="):
        RetryLater(delay_level=level)
