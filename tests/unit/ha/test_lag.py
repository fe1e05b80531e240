import pytest

from tanist.ha.lag import MARK_EVERY_MS, MAX_MARKS, EndMarks


def test_a_slave_that_lacks_nothing_has_no_lag() -> None:
    marks = EndMarks(100, 1_000)
    assert marks.lag_ms(100, log_end=100, now_ms=9_000) == 0
    # It can not be, and is not shown below nothing.
    assert marks.lag_ms(101, log_end=100, now_ms=9_000) == 0


def test_a_lag_is_the_age_of_the_first_byte_that_is_missing() -> None:
    marks = EndMarks(0, 1_000)
    marks.note(100, 2_000)
    marks.note(200, 3_000)
    assert marks.lag_ms(0, log_end=200, now_ms=5_000) == 3_000
    assert marks.lag_ms(99, log_end=200, now_ms=5_000) == 3_000
    assert marks.lag_ms(100, log_end=200, now_ms=5_000) == 2_000


def test_what_was_there_before_the_first_mark_is_as_old_as_that() -> None:
    assert EndMarks(500, 1_000).lag_ms(0, log_end=500, now_ms=4_000) == 3_000


def test_bytes_of_the_same_moment_share_a_mark_and_have_the_time_of_the_oldest() -> None:
    marks = EndMarks(0, 0)
    marks.note(100, 1_000)
    marks.note(200, 1_000 + MARK_EVERY_MS - 1)
    assert marks.lag_ms(150, log_end=200, now_ms=2_000) == 1_000
    marks.note(300, 1_000 + MARK_EVERY_MS)
    assert marks.lag_ms(200, log_end=300, now_ms=2_000) == 1_000 - MARK_EVERY_MS


def test_a_byte_that_was_written_just_now_is_not_as_old_as_the_mark_before_it() -> None:
    marks = EndMarks(100, 1_000)
    assert marks.lag_ms(100, log_end=200, now_ms=3_600_000) == 0


def test_an_end_that_does_not_move_is_not_marked_again() -> None:
    marks = EndMarks(0, 0)
    marks.note(100, 1_000)
    marks.note(100, 9_000)
    assert marks.lag_ms(0, log_end=100, now_ms=9_000) == 8_000


def test_a_lag_is_never_negative() -> None:
    marks = EndMarks(0, 0)
    marks.note(100, 5_000)
    assert marks.lag_ms(0, log_end=100, now_ms=4_000) == 0


@pytest.mark.parametrize("acked_to", [0, 7])
def test_so_many_marks_are_kept_and_no_more(acked_to: int) -> None:
    marks = EndMarks(0, 0)
    for number in range(1, MAX_MARKS + 10):
        marks.note(number, number * MARK_EVERY_MS)
    now_ms = (MAX_MARKS + 9) * MARK_EVERY_MS
    # The oldest ones are gone: who lacks so much is told less.
    assert marks.lag_ms(acked_to, log_end=MAX_MARKS + 9, now_ms=now_ms) == (MAX_MARKS - 1) * MARK_EVERY_MS
