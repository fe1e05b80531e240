from dataclasses import replace

import pytest

from tanist.remoting.settings import ConnectionLimits
from tanist.remoting.watch import CloseCause, GiveUp, Seen, Watch, look_interval_s

LIMITS = ConnectionLimits(
    idle_s=120, frame_s=60, write_s=30, high_water_bytes=1000, low_water_bytes=100, max_outstanding=1
)
QUIET = Seen(read_count=0, frame_count=0, taken_bytes=0, waiting_bytes=0, is_mid_frame=False)


def causes(looks: list[tuple[float, Seen]], limits: ConnectionLimits = LIMITS) -> list[CloseCause | None]:
    watch = Watch(0)
    verdicts = [watch.on_look(seen, limits, now_s=now_s) for now_s, seen in looks]
    return [verdict.cause if verdict else None for verdict in verdicts]


def test_a_connection_is_idle_after_neither_read_nor_write_for_the_time_set() -> None:
    assert causes([(60, QUIET), (119.9, QUIET), (120, QUIET)]) == [None, None, CloseCause.IDLE]


@pytest.mark.parametrize(
    "active", [replace(QUIET, read_count=1), replace(QUIET, taken_bytes=10)], ids=["read", "write"]
)
def test_a_read_or_a_write_begins_the_idle_time_anew(active: Seen) -> None:
    looks = [(100.0, active), (219.0, active), (220.0, active)]
    assert causes(looks) == [None, None, CloseCause.IDLE]


def test_no_idle_time_means_for_ever() -> None:
    assert causes([(1e6, QUIET), (1e9, QUIET)], replace(LIMITS, idle_s=None)) == [None, None]


def test_half_a_frame_is_given_up_even_if_bytes_trickle_in() -> None:
    looks = [
        (float(now_s), replace(QUIET, read_count=now_s, frame_count=3, is_mid_frame=True))
        for now_s in range(0, 61, 20)
    ]
    assert causes(looks) == [None, None, None, CloseCause.HALF_FRAME]


def test_frame_after_frame_is_no_half_frame() -> None:
    looks = [
        (float(now_s), replace(QUIET, read_count=now_s, frame_count=now_s, is_mid_frame=True))
        for now_s in range(0, 1000, 20)
    ]
    assert set(causes(looks)) == {None}


def test_a_frame_that_was_finished_in_time_is_forgotten() -> None:
    half = replace(QUIET, read_count=1, is_mid_frame=True)
    whole = replace(QUIET, read_count=2, frame_count=1)
    again = replace(QUIET, read_count=3, frame_count=1, is_mid_frame=True)
    assert set(causes([(0, half), (50, whole), (70, again), (129, again)])) == {None}


def test_a_peer_that_takes_nothing_is_given_up_though_it_keeps_sending() -> None:
    looks = [
        (float(now_s), replace(QUIET, read_count=now_s, waiting_bytes=500)) for now_s in range(0, 31, 10)
    ]
    assert causes(looks) == [None, None, None, CloseCause.NOT_READING]


def test_a_peer_that_takes_little_but_something_is_kept() -> None:
    looks = [
        (float(now_s), replace(QUIET, taken_bytes=now_s, waiting_bytes=500)) for now_s in range(0, 1000, 20)
    ]
    assert set(causes(looks)) == {None}


def test_the_reason_says_how_much_waited_for_how_long() -> None:
    watch = Watch(0)
    stuck = replace(QUIET, waiting_bytes=500)
    watch.on_look(stuck, LIMITS, now_s=0)
    assert watch.on_look(stuck, LIMITS, now_s=30) == GiveUp(
        CloseCause.NOT_READING, "it took none of 500 bytes that wait for it in 30 s"
    )


def test_looks_are_seldom_by_default_and_frequent_for_short_limits() -> None:
    assert look_interval_s(LIMITS) == 5
    assert look_interval_s(replace(LIMITS, frame_s=0.2)) == pytest.approx(0.05)
    assert look_interval_s(replace(LIMITS, idle_s=None, write_s=0.0001)) == 0.01
