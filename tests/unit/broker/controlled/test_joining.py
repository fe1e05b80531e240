import pytest

from tanist.broker.controlled.identity import AppliedIdentity, Identity
from tanist.broker.controlled.joining import Joining, JoinState

MINE = Identity("c", "b", 2)
APPLIED = AppliedIdentity(MINE, "a:1;2")


def test_a_new_replica_goes_through_all_states() -> None:
    joining = Joining(None)
    joining.on_leader()
    assert joining.state is JoinState.METADATA
    joining.on_next_id(APPLIED)
    assert (joining.state, joining.applied) == (JoinState.APPLYING, APPLIED)
    joining.on_applied(MINE)
    assert (joining.state, joining.identity) == (JoinState.NAMED, MINE)
    joining.on_registered()
    assert joining.state is JoinState.REGISTERED
    joining.on_role()
    assert joining.state is JoinState.RUNNING


@pytest.mark.parametrize(("kept", "state"), [(APPLIED, JoinState.APPLYING), (MINE, JoinState.NAMED)])
def test_a_replica_goes_on_where_its_files_say(kept: Identity | AppliedIdentity, state: JoinState) -> None:
    joining = Joining(kept)
    joining.on_leader()
    assert joining.state is state


def test_an_id_that_is_anothers_is_given_up_for_the_next_one() -> None:
    joining = Joining(APPLIED)
    joining.on_leader()
    assert joining.on_id_taken("it is another's", chance=0) > 0
    assert (joining.state, joining.applied, joining.reason) == (JoinState.METADATA, None, "it is another's")


def test_pauses_grow_to_two_seconds_and_begin_anew_with_what_works() -> None:
    joining = Joining(None)
    pauses_s = [joining.on_failed("refused", chance=0.999) for _ in range(10)]
    assert pauses_s == sorted(pauses_s)
    assert 0.025 <= pauses_s[0] <= 0.05
    assert 1.9 < pauses_s[-1] <= 2.0
    assert joining.reason == "refused"
    joining.on_leader()
    assert joining.reason is None
    assert joining.on_failed("refused", chance=0.999) <= 0.05


def test_a_role_counts_only_for_who_is_registered() -> None:
    joining = Joining(None)
    joining.on_role()
    joining.on_forgotten()
    assert joining.state is JoinState.INITIAL


def test_who_is_forgotten_registers_again() -> None:
    joining = Joining(MINE)
    joining.on_leader()
    joining.on_registered()
    joining.on_role()
    joining.on_forgotten()
    assert joining.state is JoinState.NAMED
