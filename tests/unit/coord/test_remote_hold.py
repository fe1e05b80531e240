"""What may be built on a session with a controller, by what was asked and answered."""

from tanist.coord import SessionState
from tanist.coord.remote_hold import RemoteHold


def test_a_session_is_held_from_when_it_was_asked_for_and_for_less_than_its_timeout() -> None:
    hold = RemoteHold(4.0, opened_s=100.0)
    assert hold.state is SessionState.CONNECTED
    assert 103.5 < hold.held_until_s < 104.0


def test_an_answer_holds_it_from_when_was_asked_and_never_back_to_an_earlier_time() -> None:
    hold = RemoteHold(4.0, opened_s=100.0)
    assert not hold.on_kept(102.0), "the state is as it was"
    later_s = hold.held_until_s
    assert 105.5 < later_s < 106.0
    hold.on_kept(101.0)
    assert hold.held_until_s == later_s


def test_a_cut_takes_nothing_of_what_was_promised_and_adds_nothing() -> None:
    hold = RemoteHold(4.0, opened_s=100.0)
    promised_s = hold.held_until_s
    assert hold.on_cut()
    assert not hold.on_cut(), "it is news once"
    assert (hold.state, hold.held_until_s) == (SessionState.SUSPENDED, promised_s)
    assert hold.on_kept(110.0)
    assert hold.state is SessionState.CONNECTED


def test_a_session_that_is_over_stays_so_whatever_is_heard_later() -> None:
    hold = RemoteHold(4.0, opened_s=100.0)
    assert hold.on_over()
    assert not hold.on_kept(101.0)
    assert not hold.on_cut()
    assert not hold.on_over()
    assert (hold.state, hold.held_until_s) == (SessionState.LOST, float("-inf"))
