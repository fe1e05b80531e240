import msgspec
import pytest

from tanist.admin.slave_consume import Answered
from tanist.admin.why import Why, why_not_readable
from tanist.model.reading import EndedBy, ReadRecord
from tanist.protocol.bodies.slave_consume import AdoptedView, SlaveConsumeStatus
from tests.support.slave_consume_views import (
    GROUP,
    MASTER,
    READ_FROM_MASTER,
    SLAVE,
    following_slave,
    reading_slave,
    serving_master,
    waiting_master,
)

END = f"tanist admin endSlaveConsume -b {MASTER}"


def asked(*statuses: SlaveConsumeStatus, silent: str | None = None) -> Why:
    answers = [Answered(status.address, status) for status in statuses]
    if silent is not None:
        answers.append(Answered(silent, None, "cannot connect"))
    return why_not_readable(GROUP, answers)


def test_a_group_that_is_read_needs_no_way_out() -> None:
    why = asked(serving_master(), following_slave())
    assert (why.readers, why.ways_out) == ([MASTER], [])
    assert asked(waiting_master(), reading_slave()).readers == [SLAVE]


def test_a_reader_that_is_gone_is_started_or_ended() -> None:
    why = asked(waiting_master(), silent=SLAVE)
    assert why.readers == []
    assert f"slave {SLAVE} is the one that is to be read, and does not answer" in why.reasons
    assert why.ways_out == [
        f"start {SLAVE}: it is read again, or hands back",
        f"if {SLAVE} is gone for good: {END}",
    ]


def test_a_hand_back_that_is_under_way_is_waited_for() -> None:
    handing_back = reading_slave(state="handing back", permission="NONE", is_linked=True)
    assert asked(waiting_master(), handing_back).ways_out == ["wait: the hand-back is under way"]


def test_a_reader_without_a_link_is_looked_at() -> None:
    lost = reading_slave(permission="NONE")
    assert asked(waiting_master(), lost).ways_out == [
        f"see why its link is down: tanist admin haStatus -b {SLAVE}"
    ]


def test_a_master_that_has_given_up_waits_for_its_slave_or_an_operator() -> None:
    given_up = serving_master(permission="NONE", state="given up", reason="alone", given_up="alone")
    why = asked(given_up, silent=SLAVE)
    assert why.ways_out == [
        f"start slave {SLAVE}: then it recovers by itself",
        f"if slave {SLAVE} is gone for good: {END}",
    ]
    assert f"master {MASTER} may do NONE, given up: alone" in why.reasons


def test_a_master_that_does_not_reach_the_registry_says_so() -> None:
    why = asked(serving_master(permission="NONE", state="starting", record=None))
    assert "coordinator is up" in why.ways_out[0]


def test_a_master_without_a_role_is_given_one() -> None:
    why = asked(serving_master(permission="NONE", configured_permission=None))
    assert why.ways_out == ["give it a role: tanist admin assignRoles"]


def test_a_master_whose_right_was_taken_by_an_operator_is_given_it_again() -> None:
    why = asked(serving_master(permission="WRITE", configured_permission="WRITE"))
    assert "brokerPermission" in why.ways_out[0]


def test_a_master_without_the_offsets_of_a_hand_back_says_which() -> None:
    record = ReadRecord(group=GROUP, term=3, ended_by=EndedBy.HAND_BACK, round=1)
    status = serving_master(
        permission="NONE",
        state="waiting for its slave",
        record=record,
        adopted=AdoptedView(term=2, round=1),
    )
    why = asked(status)
    assert any("offsets of slave consumption 3; it has those of 2" in reason for reason in why.reasons)
    assert END in why.ways_out[0]


@pytest.mark.parametrize("name", ["registry reached", "link to the master down"])
def test_a_slave_whose_master_is_gone_tells_which_conditions_do_not_hold(name: str) -> None:
    slave = following_slave(record=READ_FROM_MASTER)
    assert slave.checks is not None
    conditions = [
        msgspec.structs.replace(each, holds=each.name != name, found="seen")
        for each in slave.checks.conditions
    ]
    checks = msgspec.structs.replace(slave.checks, conditions=conditions)
    why = asked(following_slave(checks=checks), silent=MASTER)
    assert [reason for reason in why.reasons if "does not hold" in reason] == [
        f"slave {SLAVE}: does not hold: {name} (found: seen)"
    ]
    assert f"slave {SLAVE}: all conditions held in 1 of 3 checks in a row" in why.reasons
    assert why.ways_out == [f"start the master at {MASTER}"]


def test_that_nobody_answers_is_told() -> None:
    why = asked(silent=MASTER)
    assert why.reasons == [f"{MASTER} does not answer: cannot connect", "no master answers"]
    assert why.ways_out == ["start the master"]


def test_a_master_that_may_only_be_written_is_not_said_to_do_nothing() -> None:
    written = serving_master(permission="WRITE", configured_permission="WRITE", reason="it is assigned WRITE")
    assert f"master {MASTER} may do WRITE, serving: it is assigned WRITE" in asked(written).reasons
