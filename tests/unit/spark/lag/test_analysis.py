import pytest

from tanist.spark.lag.analysis import analyse, gone_in_s, rate
from tests.support.lag_samples import sample


def test_a_backlog_is_gone_when_what_is_gained_each_second_has_made_up_for_it() -> None:
    (found,) = analyse([sample(0, 0, 1000), sample(10, 300, 1100), sample(20, 600, 1200)])

    assert (found.consumed_per_s, found.produced_per_s, found.lag) == (30, 10, 600)
    assert found.gone_in_s == 30
    assert not found.is_slow
    assert found.history == [(0, 1000), (10_000, 800), (20_000, 600)]
    assert found.most_lag == 1000


def test_a_group_that_is_slower_than_its_producers_never_catches_up() -> None:
    (found,) = analyse([sample(0, 0, 100), sample(10, 10, 200)])

    assert found.is_slow
    assert found.gone_in_s is None


def test_a_group_that_stands_still_is_slow_too() -> None:
    (found,) = analyse([sample(0, 10, 100), sample(10, 10, 100)])

    assert found.is_slow


def test_nothing_waits_and_nothing_is_late() -> None:
    (found,) = analyse([sample(10, 50, 50, stored_ms=1000)])

    assert (found.lag, found.late_ms, found.gone_in_s, found.is_slow) == (0, 0, 0.0, False)


def test_late_is_how_old_the_last_message_is_that_was_consumed() -> None:
    (found,) = analyse([sample(10, 40, 50, stored_ms=4000)])

    assert found.late_ms == 6000


def test_a_queue_that_is_far_behind_the_others_is_skew() -> None:
    (found,) = analyse(sample(0, 0, 90 if queue == 0 else 2, queue_id=queue) for queue in range(6))

    assert found.skew == pytest.approx(5.4)
    assert found.is_skewed


def test_after_a_reset_only_what_was_consumed_since_counts() -> None:
    assert rate([(0, 0), (1000, 500), (2000, 10), (3000, 20)]) == pytest.approx(10)


@pytest.mark.parametrize(
    ("lag", "consumed", "produced", "seconds"), [(0, 0, 5, 0), (10, 5, 5, None), (10, 7, 5, 5)]
)
def test_forecasts(lag: int, consumed: float, produced: float, seconds: float | None) -> None:
    assert gone_in_s(lag, consumed, produced) == seconds
