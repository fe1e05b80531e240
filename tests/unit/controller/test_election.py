"""Who becomes master, and who does not."""

import pytest

from tanist.controller.decisions import Decision
from tanist.controller.election import (
    BY_CONTROLLER,
    LeaseRunning,
    elect,
    needs_election,
    role_change,
)
from tanist.controller.group_record import DEFAULT_LEASE_MS, GroupRecord
from tanist.errors import ResponseError
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import ElectMasterAnswer
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.controller import ElectMasterResponse
from tests.support.reigning import NOW_S, asks, group, live, replica, situation

NEW = GroupRecord(cluster="c", broker_name="b", replicas={1: replica(1), 2: replica(2)}, next_id=3)


def elected(decision: Decision) -> int:
    assert decision.is_election
    assert decision.record is not None
    assert decision.record.master_id is not None
    return decision.record.master_id


def test_a_group_that_nobody_registered_has_no_elections() -> None:
    cleaned = GroupRecord(cluster="c", broker_name="b", epoch=4)
    for record in (None, cleaned):
        with pytest.raises(ResponseError) as refusal:
            elect(record, asks(1), situation(live(1)))
        assert refusal.value.code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


def test_who_is_not_registered_can_not_offer_itself() -> None:
    for record in (NEW, group(master=None)):
        with pytest.raises(ResponseError) as refusal:
            elect(record, asks(9), situation(live(1)))
        assert refusal.value.code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


def test_a_broker_of_another_cluster_does_not_elect_here() -> None:
    with pytest.raises(ResponseError, match="cluster c, not to d") as refusal:
        elect(NEW, asks(1, cluster="d"), situation())
    assert refusal.value.code == ResponseCode.CONTROLLER_INVALID_REQUEST


def test_the_first_who_asks_is_the_first_master() -> None:
    decision = elect(NEW, asks(2), situation(live(1, log_end=9)))
    assert elected(decision) == 2
    assert decision.record is not None
    assert (decision.record.epoch, decision.record.set_epoch) == (1, 1)
    assert decision.record.sync_state_set == {2}
    assert decision.record.lease_ms == DEFAULT_LEASE_MS


def test_the_first_master_has_the_longest_log_of_those_who_were_heard() -> None:
    both = situation(live(1, epoch=7, log_end=900), live(2, epoch=7, log_end=899))
    decision = elect(NEW, asks(2), both)
    assert elected(decision) == 1
    assert decision.record is not None
    assert decision.record.epoch == 8
    assert elected(elect(NEW, asks(2, is_designated=True), both)) == 2
    assert elected(elect(NEW, asks(2), situation(live(1), live(2)))) == 2


def test_a_first_master_that_an_operator_designates_must_be_alive() -> None:
    with pytest.raises(ResponseError) as refusal:
        elect(NEW, asks(2, is_designated=True), situation(live(1)))
    assert refusal.value.code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
    assert elected(elect(NEW, asks(1, is_designated=True), situation(live(1)))) == 1


def test_the_controller_itself_elects_no_first_master() -> None:
    assert not needs_election(NEW, situation(live(1), live(2)))


def test_a_master_that_is_alive_stays() -> None:
    decision = elect(group(), asks(2), situation(live(1, ha_address="127.0.0.1:91"), live(2)))
    assert decision.record is None
    assert not decision.is_election
    assert decision.answer.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST
    assert decision.answer.header == ElectMasterResponse(
        master_broker_id=1,
        master_address="127.0.0.1:1",
        master_epoch=4,
        sync_state_set_epoch=7,
        master_ha_address="127.0.0.1:91",
    )
    body = decode_java_json(decision.answer.body, ElectMasterAnswer)
    assert body == ElectMasterAnswer(sync_state_set=frozenset({1, 2}))


@pytest.mark.behaviour("S2-46")
def test_a_new_master_begins_a_new_epoch_alone_in_the_set() -> None:
    decision = elect(group(), asks(BY_CONTROLLER), situation(live(2), live(3)))
    assert elected(decision) == 2
    record = decision.record
    assert record is not None
    assert (record.epoch, record.set_epoch, record.sync_state_set) == (5, 8, {2})
    assert (record.master_session, record.lease_ms) == ("s2", 3_000)
    body = decode_java_json(decision.answer.body, ElectMasterAnswer)
    assert body.sync_state_set == {2}
    assert body.broker_member_group is not None
    assert body.broker_member_group.broker_addrs == {
        1: "127.0.0.1:1",
        2: "127.0.0.1:2",
        3: "127.0.0.1:3",
    }


@pytest.mark.behaviour("S2-49")
def test_who_is_not_in_step_is_not_elected_however_long_its_log() -> None:
    decision = elect(
        group(), asks(BY_CONTROLLER), situation(live(2, log_end=5), live(3, log_end=900, epoch=4))
    )
    assert elected(decision) == 2
    with pytest.raises(ResponseError) as refusal:
        elect(group(), asks(3), situation(live(3, log_end=900)))
    assert refusal.value.code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED


def test_an_election_that_fails_ends_the_reign_and_uses_no_epoch_up() -> None:
    decision = elect(group(), asks(BY_CONTROLLER), situation(live(3)))
    assert decision.answer.code == ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE
    record = decision.record
    assert record is not None
    assert (record.master_id, record.master_session) == (None, None)
    assert (record.epoch, record.set_epoch, record.sync_state_set) == (4, 7, {1, 2})
    assert elect(record, asks(BY_CONTROLLER), situation(live(3))).record is None


def test_the_higher_epoch_wins_then_the_longer_log_then_the_smaller_priority_number() -> None:
    record = group(members=(1, 2, 3))

    def winner(second: dict[str, object], third: dict[str, object]) -> int:
        return elected(elect(record, asks(BY_CONTROLLER), situation(live(2, **second), live(3, **third))))

    assert winner({"epoch": 3, "log_end": 900}, {"epoch": 4, "log_end": 5}) == 3
    assert winner({"epoch": 4, "log_end": 6}, {"epoch": 4, "log_end": 5}) == 2
    assert winner({"log_end": 5, "election_priority": 9}, {"log_end": 5, "election_priority": 1}) == 3
    assert winner({"log_end": 5}, {"log_end": 5, "election_priority": 1}) == 3
    assert winner({"log_end": 5}, {"log_end": 5}) == 2


@pytest.mark.parametrize("lead", [1, 3_000_000_000, 1 << 32])
def test_logs_are_compared_in_64_bits(lead: int) -> None:
    record = group(members=(1, 2, 3))
    alive = situation(live(2, log_end=7), live(3, log_end=7 + lead))
    assert elected(elect(record, asks(BY_CONTROLLER), alive)) == 3


def test_a_replica_whose_tables_are_older_than_its_log_is_elected_only_if_there_is_no_other() -> None:
    record = group(members=(1, 2, 3), sessions={2: "s2", 3: "s3"})
    gap = live(2, log_end=900, tables_gap="offsets of 3 groups")
    assert elected(elect(record, asks(BY_CONTROLLER), situation(gap, live(3, log_end=5)))) == 3
    assert elected(elect(record, asks(BY_CONTROLLER), situation(gap))) == 2


DAMAGE = "commitlog/0 at byte 7: the body does not match its checksum"


@pytest.mark.parametrize("request_of", [BY_CONTROLLER, 2])
def test_a_damaged_member_is_not_elected_while_a_sound_one_may_come_back(request_of: int) -> None:
    record, damaged = group(master=None), live(2, log_end=900, damage=DAMAGE)
    request = asks(request_of, is_designated=request_of == 2)
    if request_of == BY_CONTROLLER:
        answer = elect(record, request, situation(damaged)).answer
        assert answer.code == ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE
        remark = answer.remark or ""
    else:
        with pytest.raises(ResponseError) as refusal:
            elect(record, request, situation(damaged))
        remark = refusal.value.remark or ""
    assert f"replica 2 is damaged: {DAMAGE}" in remark
    both = situation(damaged, live(1, log_end=900))
    assert elected(elect(record, asks(BY_CONTROLLER), both)) == 1


def test_a_damaged_member_is_elected_when_all_are_back_and_none_is_sound() -> None:
    alone = situation(live(2, damage=DAMAGE))
    assert elected(elect(group(members=(2,), master=None), asks(BY_CONTROLLER), alone)) == 2
    both = situation(live(2, damage=DAMAGE, log_end=7), live(1, damage=DAMAGE))
    assert elected(elect(group(master=None), asks(BY_CONTROLLER), both)) == 2


def test_an_unclean_election_prefers_a_sound_log_to_a_longer_one() -> None:
    alive = situation(live(2, log_end=900, damage=DAMAGE), live(3, log_end=5), allows_unclean=True)
    assert elected(elect(group(members=(1,)), asks(BY_CONTROLLER), alive)) == 3


def test_a_replica_that_was_started_since_is_not_preferred_for_its_tables_to_a_longer_log() -> None:
    # An emptied one has no log that its tables could be older than.
    record = group(members=(1, 2, 3), sessions={2: "s2", 3: "s3"})
    gap, emptied = live(2, log_end=900, tables_gap="offsets of 3 groups"), live(3, session_id="s3-again")
    assert elected(elect(record, asks(BY_CONTROLLER), situation(gap, emptied))) == 2


@pytest.mark.parametrize("request_of", [BY_CONTROLLER, 2])
def test_a_member_that_was_started_since_and_lacks_what_was_confirmed_is_not_elected(request_of: int) -> None:
    record = group(sessions={1: "s1", 2: "s2"})
    cut = situation(live(2, session_id="s2-again", log_end=899), confirmed_to=900)
    request = asks(request_of, is_designated=request_of == 2)
    if request_of == BY_CONTROLLER:
        decision = elect(record, request, cut)
        assert decision.answer.code == ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE
        assert decision.record is not None
        assert not needs_election(decision.record, cut)
    else:
        with pytest.raises(ResponseError) as refusal:
            elect(record, request, cut)
        assert refusal.value.code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
    # What one that was always there told last may be old, and one that has no session can not be told apart.
    for alive in (
        live(2, session_id="s2-again", log_end=900),
        live(2, log_end=899),
        live(2, session_id=None, log_end=899),
    ):
        assert elected(elect(record, request, situation(alive, confirmed_to=900))) == 2


def test_what_no_member_has_any_more_is_given_up_and_told_of() -> None:
    record = group(sessions={1: "s1", 2: "s2"})
    first, second = live(1, session_id="s1-again", log_end=890), live(2, session_id="s2-again", log_end=899)
    decision = elect(record, asks(BY_CONTROLLER), situation(first, second, confirmed_to=900))
    assert elected(decision) == 2
    assert decision.is_unclean
    complete = live(1, session_id="s1-again", log_end=900)
    both = situation(complete, second, confirmed_to=900)
    with pytest.raises(ResponseError):
        elect(record, asks(2, is_designated=True), both)
    decision = elect(record, asks(BY_CONTROLLER), both)
    assert elected(decision) == 1
    assert not decision.is_unclean


def test_nobody_out_of_step_is_elected_while_a_member_is_alive_whatever_an_operator_wants() -> None:
    with pytest.raises(ResponseError) as refusal:
        elect(group(), asks(3, is_designated=True), situation(live(2), live(3), allows_unclean=True))
    assert refusal.value.code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED


def test_a_replica_of_another_cluster_is_nobody_here() -> None:
    decision = elect(group(), asks(BY_CONTROLLER), situation(live(2, cluster_name="d")))
    assert decision.answer.code == ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE


def test_an_operator_replaces_a_master_that_has_no_lease_at_once() -> None:
    record = group(session=None)
    alive = situation(live(1, session_id=None), live(2))
    assert elected(elect(record, asks(2, is_designated=True), alive)) == 2


def test_who_is_designated_must_be_in_step_and_alive() -> None:
    for wanted, alive in ((3, situation(live(1), live(3))), (2, situation(live(1)))):
        with pytest.raises(ResponseError) as refusal:
            elect(group(), asks(wanted, is_designated=True), alive)
        assert refusal.value.code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED


def test_whoever_designates_has_to_say_whom() -> None:
    with pytest.raises(ResponseError) as refusal:
        elect(
            group(),
            asks(BY_CONTROLLER, is_designated=True),
            situation(live(1), live(2), lease_end_s=NOW_S + 2),
        )
    assert refusal.value.code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


def test_designating_the_master_changes_nothing() -> None:
    decision = elect(group(), asks(1, is_designated=True), situation(live(1), live(2)))
    assert decision.answer.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST
    assert decision.record is None


@pytest.mark.behaviour("S2-49")
def test_unclean_election_takes_the_best_log_that_is_left() -> None:
    alive = [live(3, epoch=3, log_end=900), live(4, epoch=4, log_end=5, tables_gap="x")]
    record = group(ids=(1, 2, 3, 4))
    decision = elect(record, asks(BY_CONTROLLER), situation(*alive, allows_unclean=True))
    assert elected(decision) == 4
    assert decision.is_unclean
    clean = elect(record, asks(BY_CONTROLLER), situation(live(2), *alive, allows_unclean=True))
    assert elected(clean) == 2
    assert not clean.is_unclean


@pytest.mark.behaviour("S2-53")
def test_nobody_is_elected_while_the_lease_of_the_last_master_may_run() -> None:
    alive = situation(live(1, session_id="s1-again"), live(2), lease_end_s=NOW_S + 2)
    for request in (asks(BY_CONTROLLER), asks(1), asks(2), asks(2, is_designated=True)):
        with pytest.raises(LeaseRunning, match=r"another 2\.0 s") as refusal:
            elect(group(), request, alive)
        assert refusal.value.end_s == NOW_S + 2
    ended = group(master=None)
    with pytest.raises(LeaseRunning):
        elect(ended, asks(BY_CONTROLLER), alive)


def test_a_reign_does_not_end_either_while_its_lease_may_run() -> None:
    with pytest.raises(LeaseRunning):
        elect(group(), asks(BY_CONTROLLER), situation(live(3), lease_end_s=NOW_S + 2))


def test_the_first_master_after_a_cleaning_waits_for_the_last_one_too() -> None:
    with pytest.raises(LeaseRunning):
        elect(NEW, asks(1), situation(live(1), lease_end_s=NOW_S + 2))


def test_a_master_that_a_new_leader_has_not_heard_of_is_taken_for_alive() -> None:
    decision = elect(group(), asks(2), situation(live(2), lease_end_s=NOW_S + 2))
    assert decision.answer.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST


def test_a_master_that_was_started_anew_does_not_go_on_in_the_old_epoch() -> None:
    with pytest.raises(ResponseError) as refusal:
        elect(group(), asks(1), situation(lease_end_s=NOW_S + 2))
    assert refusal.value.code == ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
    decision = elect(group(), asks(1), situation(live(1, session_id="another")))
    assert elected(decision) == 1
    assert decision.record is not None
    assert (decision.record.epoch, decision.record.master_session) == (5, "another")


@pytest.mark.behaviour("S2-46")
def test_an_epoch_that_a_log_has_is_not_given_again_though_the_registry_was_lost() -> None:
    decision = elect(NEW, asks(1), situation(live(1, epoch=9), live(2, epoch=11)))
    assert decision.record is not None
    assert decision.record.epoch == 12
    decision = elect(group(), asks(BY_CONTROLLER), situation(live(2, epoch=3)))
    assert decision.record is not None
    assert decision.record.epoch == 5
    decision = elect(group(), asks(BY_CONTROLLER), situation(live(2, epoch=(1 << 31) - 1)))
    assert decision.record is not None
    assert decision.record.epoch == 5


def test_a_group_needs_an_election_if_its_master_is_gone_or_somebody_could_be_one() -> None:
    assert not needs_election(group(), situation(live(1)))
    assert needs_election(group(), situation(live(1, session_id="another")))
    assert needs_election(group(), situation())
    assert not needs_election(group(master=None), situation())
    assert not needs_election(group(master=None), situation(live(3)))
    assert needs_election(group(master=None), situation(live(2)))
    assert needs_election(group(master=None), situation(live(3), allows_unclean=True))


def test_replicas_are_told_the_master_its_epochs_and_where_its_log_is() -> None:
    news = role_change(group(), {1: live(1, ha_address="127.0.0.1:91")})
    assert (news.master_broker_id, news.master_address) == (1, "127.0.0.1:1")
    assert (news.master_epoch, news.sync_state_set_epoch) == (4, 7)
    assert news.master_ha_address == "127.0.0.1:91"
    assert role_change(group(), {}).master_ha_address is None
