import pytest

from tanist.backoff import Backoff


def test_waits_begin_at_50_ms_double_and_end_at_5_s() -> None:
    backoff = Backoff()
    longest = [backoff.next_s(1.0) for _ in range(9)]
    assert longest == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_chance_takes_off_up_to_half_of_a_wait() -> None:
    assert Backoff().next_s(0.0) == 0.025
    assert Backoff().next_s(0.5) == pytest.approx(0.0375)


def test_after_a_success_waits_begin_anew() -> None:
    backoff = Backoff()
    backoff.next_s(1.0)
    backoff.next_s(1.0)
    backoff.reset()
    assert backoff.next_s(1.0) == 0.05
