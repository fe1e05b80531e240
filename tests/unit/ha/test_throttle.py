import pytest

from tanist.ha.throttle import Rate, Throttle


def _seconds_for(throttle: Throttle, total_bytes: int, frame_bytes: int, now_s: float) -> float:
    """How long so much takes in frames of this size."""
    began_s = now_s
    for _ in range(total_bytes // frame_bytes):
        now_s += throttle.wait_s(now_s)
        assert throttle.wait_s(now_s) == pytest.approx(0.0, abs=1e-9)
        throttle.sent(frame_bytes)
    return now_s - began_s


@pytest.mark.parametrize("frame_bytes", [100, 10_000, 250_000])
def test_so_many_bytes_leave_in_a_second_whatever_the_size_of_a_frame(frame_bytes: int) -> None:
    throttle = Throttle(bytes_per_second=100_000)
    took_s = _seconds_for(throttle, 2_000_000, frame_bytes, now_s=1_000.0)
    # A tenth of a second is there in the beginning, and the last frame is not waited for.
    assert took_s == pytest.approx(20.0 - 0.1 - frame_bytes / 100_000, abs=0.01)


def test_what_was_not_used_is_kept_for_a_tenth_of_a_second_and_no_longer() -> None:
    throttle = Throttle(bytes_per_second=1_000)
    assert throttle.wait_s(0.0) == 0
    throttle.sent(100)
    assert throttle.wait_s(3_600.0) == 0
    throttle.sent(600)
    assert throttle.wait_s(3_600.0) == pytest.approx(0.5)


def test_nothing_is_waited_for_once_the_time_is_over() -> None:
    throttle = Throttle(bytes_per_second=1_000)
    throttle.wait_s(5.0)
    throttle.sent(1_100)
    assert throttle.wait_s(5.5) == pytest.approx(0.5)
    assert throttle.wait_s(6.0) == 0


def test_a_rate_is_that_of_the_last_whole_second() -> None:
    rate = Rate()
    rate.add(1, 10.0)
    rate.add(20, 10.5)
    rate.add(300, 11.0)
    assert rate.bytes_per_second(11.5) == 21
    assert rate.bytes_per_second(12.0) == 300


def test_a_rate_is_nothing_when_nothing_came_for_a_second() -> None:
    rate = Rate()
    rate.add(1_000, 10.0)
    assert rate.bytes_per_second(12.5) == 0
    assert rate.bytes_per_second(3_600.0) == 0
