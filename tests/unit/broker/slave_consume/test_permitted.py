"""What is permitted, for all that can come together."""

from itertools import product

import pytest

from tanist.broker.slave_consume.permitted import Adopted, permitted
from tanist.model.reading import FULL, NONE, Assigned, EndedBy, GroupRole, ReadRecord
from tanist.model.topics import READ, WRITE

CONFIGURED = (FULL, WRITE, READ, NONE)
OUTSIDE = ReadRecord(group="g")
HANDED_BACK = ReadRecord(group="g", term=2, ended_by=EndedBy.HAND_BACK, round=3)
ENDED = ReadRecord(group="g", term=2, ended_by=EndedBy.OPERATOR)
ON_SLAVE = ReadRecord(group="g", term=2, reader="slave")
ON_OTHER = ReadRecord(group="g", term=2, reader="slave2")
RECORDS = (None, OUTSIDE, HANDED_BACK, ENDED, ON_SLAVE, ON_OTHER)
ADOPTED = (Adopted(), Adopted(1, 9), Adopted(2, 2), Adopted(2, 3), Adopted(2, 4))
GIVEN_UP = (None, "it is alone")


def _broker(role: GroupRole, permission: int) -> Assigned:
    address = "master" if role is GroupRole.MASTER else "slave"
    return Assigned(address=address, role=role, broker_id=0, permission=permission)


def _expected_of_master(
    configured: int, record: ReadRecord | None, adopted: Adopted, given_up: str | None
) -> int:
    if record in (None, ON_SLAVE, ON_OTHER) or given_up is not None:
        return NONE
    has_offsets = record is not HANDED_BACK or adopted in (Adopted(2, 3), Adopted(2, 4))
    return configured if has_offsets else NONE


@pytest.mark.behaviour("S3-11", "S3-19", "S3-20", "S3-22", "S3-27", "S3-47", "S3-52")
@pytest.mark.parametrize("configured", CONFIGURED)
def test_a_master_has_what_it_is_assigned_if_nothing_is_in_the_way(configured: int) -> None:
    own = _broker(GroupRole.MASTER, configured)
    for record, adopted, given_up in product(RECORDS, ADOPTED, GIVEN_UP):
        found = permitted(own, record, master="master", adopted=adopted, given_up=given_up)
        expected = _expected_of_master(configured, record, adopted, given_up)
        assert (found.permission, record, adopted, given_up) == (expected, record, adopted, given_up)
        assert found.reason


@pytest.mark.behaviour("S3-19", "S3-20", "S3-21", "S3-22", "S3-35")
@pytest.mark.parametrize("configured", CONFIGURED)
def test_a_slave_has_what_it_is_assigned_of_reading_while_the_record_names_it(configured: int) -> None:
    for record in RECORDS:
        found = permitted(_broker(GroupRole.SLAVE, configured), record, master="master")
        assert (found.permission, record) == (configured & READ if record is ON_SLAVE else NONE, record)
        assert found.reason


@pytest.mark.parametrize("record", RECORDS)
def test_a_broker_without_a_role_has_nothing(record: ReadRecord | None) -> None:
    assert permitted(None, record, master="master").permission == NONE


@pytest.mark.behaviour("S3-15")
@pytest.mark.parametrize("record", RECORDS)
def test_of_all_that_know_the_same_record_one_is_readable_at_most(record: ReadRecord | None) -> None:
    brokers = [
        _broker(GroupRole.MASTER, FULL),
        Assigned(address="slave", role=GroupRole.SLAVE, broker_id=1),
        Assigned(address="slave2", role=GroupRole.SLAVE, broker_id=2),
    ]
    found = [
        permitted(own, record, master="master", adopted=Adopted(2, 3)).permission & READ for own in brokers
    ]
    assert sum(map(bool, found)) <= 1


def test_who_is_refused_is_told_where_to_read() -> None:
    master, slave = _broker(GroupRole.MASTER, FULL), _broker(GroupRole.SLAVE, FULL)
    assert permitted(master, ON_SLAVE, master="master")[2:] == ("slave", 2)
    assert permitted(slave, OUTSIDE, master="master")[2:] == ("master", 0)
    assert permitted(slave, ON_OTHER, master="master")[2:] == ("slave2", 2)
    assert permitted(master, OUTSIDE, given_up="it is alone").reader is None


def test_whose_assignment_is_in_the_way_is_told_so() -> None:
    master, slave = _broker(GroupRole.MASTER, WRITE), _broker(GroupRole.SLAVE, NONE)
    assert permitted(master, OUTSIDE, master="master").reason == "it is assigned WRITE"
    assert permitted(slave, ON_SLAVE, master="master").reason == "it is assigned NONE"
