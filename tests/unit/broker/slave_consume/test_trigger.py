import pytest

from tanist.broker.slave_consume.trigger import Trigger
from tanist.protocol.bodies.slave_consume import Condition

YES = Condition("link to the master down", True, "down")
NO = Condition("link to the master down", False, "up")


def _looks(trigger: Trigger, *looks: tuple[float, Condition]) -> list[bool]:
    return [trigger.on_check((YES, found), now_s) for now_s, found in looks]


@pytest.mark.behaviour("S3-28", "S3-29")
def test_all_conditions_have_to_hold_in_so_many_looks_in_a_row() -> None:
    assert _looks(Trigger(3), (0, YES), (1, YES), (2, YES)) == [False, False, True]
    assert _looks(Trigger(1), (0, YES)) == [True]


@pytest.mark.behaviour("S3-30")
def test_one_look_in_which_one_does_not_hold_begins_the_count_anew() -> None:
    looks = ((0, YES), (1, YES), (2, NO), (3, YES), (4, YES), (5, YES))
    assert _looks(Trigger(3), *looks) == [False] * 5 + [True]


def test_a_count_begun_anew_needs_all_its_looks_again() -> None:
    trigger = Trigger(2)
    _looks(trigger, (0, YES))
    trigger.begin_anew()
    assert _looks(trigger, (1, YES), (2, YES)) == [False, True]


def test_looks_that_come_in_a_bunch_do_not_count_as_seconds() -> None:
    assert _looks(Trigger(3), (5, YES), (5, YES), (5, YES), (6, YES), (7, YES)) == [False] * 4 + [True]


def test_what_was_found_last_is_kept_for_who_asks_why() -> None:
    trigger = Trigger(3)
    _looks(trigger, (0, YES), (1, NO))
    assert trigger.conditions == (YES, NO)
