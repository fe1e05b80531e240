from math import inf

import pytest

from tanist.broker.slave_consume.master_standing import LONELY, MasterStanding
from tanist.broker.slave_consume.permitted import Adopted
from tanist.broker.slave_consume.slave_standing import SlaveStanding
from tanist.broker.slave_consume.status import alarm, master_status, slave_status
from tanist.model.reading import Assignment, EndedBy, GroupRole, ReadRecord
from tanist.protocol.bodies.slave_consume import SlaveConsumeStatus
from tests.support.slave_consume_views import (
    BROKERS,
    GROUP,
    MASTER,
    READ_FROM_MASTER,
    READ_FROM_SLAVE,
    SLAVE,
    following_slave,
    reading_slave,
    serving_master,
    waiting_master,
)

ASSIGNMENT = Assignment(group=GROUP, brokers=tuple(BROKERS))


def _master(
    record: ReadRecord | None, *, held_until_s: float = 13.5, adopted: Adopted | None = None
) -> SlaveConsumeStatus:
    standing = MasterStanding(MASTER, lambda: held_until_s, adopted or Adopted())
    standing.on_assignment(ASSIGNMENT)
    if record is not None:
        standing.on_record(record)
    return master_status(
        standing, group=GROUP, now_s=10.0, now_ms=5, session="connected", is_linked=record is READ_FROM_MASTER
    )


def test_a_master_that_has_not_read_the_registry_says_so() -> None:
    status = _master(None, held_until_s=-inf)
    assert (status.state, status.permission, status.term, status.registry.held_for_ms) == (
        "starting",
        "NONE",
        0,
        0,
    )
    assert "has not read from the registry" in status.reason


def test_a_master_that_serves_tells_what_it_is_assigned_and_for_how_long_it_is_safe() -> None:
    status = _master(READ_FROM_MASTER)
    assert (status.state, status.permission, status.configured_permission) == ("serving", "FULL", "FULL")
    assert (status.registry.held_for_ms, status.term, status.reader) == (3_500, 2, None)
    assert (status.role, status.is_linked, status.is_readable) == (GroupRole.MASTER, True, True)
    assert status.brokers == BROKERS


def test_a_session_that_nobody_can_end_is_told_as_a_long_one() -> None:
    assert _master(READ_FROM_MASTER, held_until_s=inf).registry.held_for_ms == 86_400_000


def test_a_master_whose_slave_is_read_waits_for_it() -> None:
    status = _master(READ_FROM_SLAVE)
    assert (status.state, status.permission, status.reader) == ("waiting for its slave", "NONE", SLAVE)
    assert not status.is_readable


def test_a_master_waits_for_the_offsets_of_a_slave_consumption_that_is_over() -> None:
    record = ReadRecord(group=GROUP, term=3, ended_by=EndedBy.HAND_BACK, round=1)
    assert _master(record).state == "waiting for its slave"
    assert _master(record, adopted=Adopted(3, 1)).state == "serving"


@pytest.mark.behaviour("S3-65")
def test_a_master_that_has_given_up_shows_the_state_and_its_cause_and_raises_an_alarm() -> None:
    status = _master(READ_FROM_MASTER, held_until_s=9.0)
    assert (status.state, status.permission, status.given_up) == ("given up", "NONE", LONELY)
    found = alarm(status)
    assert found is not None
    assert LONELY in found
    assert f"tanist admin endSlaveConsume -b {MASTER}" in found


@pytest.mark.behaviour("S3-37")
def test_a_master_that_waits_for_a_slave_that_is_away_raises_an_alarm() -> None:
    found = alarm(waiting_master())
    assert found is not None
    assert SLAVE in found
    assert alarm(waiting_master(is_linked=True)) is None


@pytest.mark.parametrize("status", [serving_master(), following_slave(), reading_slave()])
def test_nobody_is_alarmed_while_somebody_is_read(status: SlaveConsumeStatus) -> None:
    assert alarm(status) is None


def test_a_slave_tells_how_its_checks_stand() -> None:
    standing = SlaveStanding(SLAVE, 3, lambda: 11.0)
    standing.on_assignment(ASSIGNMENT)
    standing.on_record(READ_FROM_MASTER)
    standing.on_master_alive(False)
    standing.on_check(10.0)
    status = slave_status(standing, group=GROUP, now_s=10.0, now_ms=5, session="connected")
    assert status.checks is not None
    assert (status.checks.needed, status.checks.count) == (3, 1)
    assert all(condition.holds for condition in status.checks.conditions)
    assert (status.state, status.permission, status.configured_permission) == ("following", "NONE", "READ")


def test_a_slave_that_is_read_says_so() -> None:
    standing = SlaveStanding(SLAVE, 3, lambda: 11.0)
    standing.on_assignment(ASSIGNMENT)
    standing.on_record(READ_FROM_SLAVE)
    status = slave_status(standing, group=GROUP, now_s=10.0, now_ms=5, session="connected")
    assert (status.state, status.permission, status.term, status.reader) == ("reading", "READ", 3, SLAVE)
