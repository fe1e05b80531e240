import pytest

from tanist.model.delay_levels import due_ms, parse_delay_levels
from tanist.store import StoreSettings


def test_rocketmqs_default_has_eighteen_levels() -> None:
    levels = parse_delay_levels(StoreSettings().message_delay_level)
    assert len(levels) == 18
    assert (levels[0], levels[4], levels[17]) == (1_000, 60_000, 7_200_000)


def test_a_level_is_a_number_and_a_unit() -> None:
    assert parse_delay_levels("2s 3m  4h 5d") == (2_000, 180_000, 14_400_000, 432_000_000)


@pytest.mark.parametrize("text", ["", "  ", "10", "s", "10x", "1.5s", "-1s", "1s,2s"])
def test_what_is_no_list_of_times_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"delay"):
        parse_delay_levels(text)


def test_a_message_is_due_one_delay_after_it_was_stored() -> None:
    assert due_ms((1_000, 5_000), 2, 100) == 5_100


def test_a_level_past_the_last_counts_as_the_last() -> None:
    assert due_ms((1_000, 5_000), 99, 100) == 5_100


@pytest.mark.parametrize("level", [0, -1])
def test_an_unknown_level_waits_a_second(level: int) -> None:
    assert due_ms((7_000,), level, 100) == 1_100
