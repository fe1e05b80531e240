"""Whether a process notices that it stood still."""

from tanist.coord.standstill import LOOK_S, Standstill


def test_a_process_that_looks_as_often_as_it_should_did_not_stand_still() -> None:
    standstill = Standstill(100.0)
    assert [standstill.on_look(100.0 + LOOK_S * number) for number in range(1, 9)] == [0.0] * 8


def test_the_time_of_a_standstill_is_told_once() -> None:
    standstill = Standstill(100.0)
    assert standstill.on_look(107.5) == 7.5
    assert standstill.on_look(107.5) == 0.0
