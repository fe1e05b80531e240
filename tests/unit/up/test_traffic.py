"""What traffic counts."""

from tanist.up.traffic import Tally


def test_a_message_that_a_member_gets_twice_is_counted_as_come_again() -> None:
    tally = Tally()
    for _ in range(2):
        tally.on_consumed(0, "a")
    assert (tally.consumed, tally.again) == (2, 1)


def test_each_member_of_a_broadcasting_group_gets_a_message_by_right() -> None:
    tally = Tally()
    for member in range(2):
        tally.on_consumed(member, "a")
    assert (tally.consumed, tally.again) == (2, 0)


def test_what_is_remembered_is_bounded() -> None:
    tally = Tally()
    for number in range(10_001):
        tally.on_consumed(0, str(number))
    tally.on_consumed(0, "0")
    assert tally.again == 0
    tally.on_consumed(0, "10000")
    assert tally.again == 1
