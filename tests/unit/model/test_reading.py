import pytest

from tanist.model.reading import (
    FULL,
    NONE,
    Assigned,
    Assignment,
    BadReadingRecord,
    EndedBy,
    GroupRole,
    ReadRecord,
    alive_path,
    assignment_path,
    decode_assignment,
    decode_read_record,
    encode_record,
    permission_name,
    read_record_path,
)
from tanist.model.topics import READ, WRITE

MASTER = Assigned(address="a:1", role=GroupRole.MASTER, broker_id=0)
SLAVE = Assigned(address="b:1", role=GroupRole.SLAVE, broker_id=1)
SLAVE2 = Assigned(address="c:1", role=GroupRole.SLAVE, broker_id=2)
GROUP = Assignment(group="g", brokers=(MASTER, SLAVE, SLAVE2))


def test_records_come_as_they_were_written() -> None:
    record = ReadRecord(
        group="g", term=3, second="b:1", ended_by=EndedBy.HAND_BACK, round=2, brokers=GROUP.brokers
    )
    assert decode_assignment(encode_record(GROUP)) == GROUP
    assert decode_read_record(encode_record(record)) == record


@pytest.mark.behaviour("S3-34")
def test_a_record_is_json_at_the_path_of_its_group_and_names_the_group_as_it_was() -> None:
    record = ReadRecord(group="g", term=1, reader="b:1", brokers=GROUP.brokers)
    assert read_record_path("g/1") == "/slave-consume/g%2F1"
    assert b'"reader":"b:1"' in encode_record(record)
    assert b'"address":"c:1"' in encode_record(record)


def test_paths_keep_names_apart_that_hold_slashes() -> None:
    assert assignment_path("g/1") == "/assignments/g%2F1"
    assert alive_path("g", "a:1") == "/alive/g/a%3A1"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"group": 1}', b"\xff"])
def test_what_is_no_record_is_told(data: bytes) -> None:
    with pytest.raises(BadReadingRecord, match="Assignment"):
        decode_assignment(data)
    with pytest.raises(BadReadingRecord, match="ReadRecord"):
        decode_read_record(data)


def test_a_group_has_one_master_and_it_has_id_0() -> None:
    other = Assigned(address="d:1", role=GroupRole.MASTER, broker_id=0)
    with pytest.raises(BadReadingRecord, match="two masters"):
        decode_assignment(encode_record(Assignment(group="g", brokers=(MASTER, other))))
    for broker in (
        Assigned(address="d:1", role=GroupRole.MASTER, broker_id=3),
        Assigned(address="d:1", role=GroupRole.SLAVE, broker_id=0),
    ):
        with pytest.raises(BadReadingRecord, match="has id 0"):
            decode_assignment(encode_record(Assignment(group="g", brokers=(broker,))))


@pytest.mark.behaviour("S3-32")
def test_the_second_is_the_slave_with_the_least_id_that_may_be_read() -> None:
    assert GROUP.master == MASTER
    assert GROUP.second == SLAVE
    for permission in (WRITE, NONE):
        silent = Assigned(address="b:1", role=GroupRole.SLAVE, broker_id=1, permission=permission)
        assert GROUP.with_broker(silent).second == SLAVE2
    assert Assignment(group="g", brokers=(MASTER,)).second is None


def test_a_broker_is_known_by_its_address() -> None:
    moved = Assigned(address="b:1", role=GroupRole.SLAVE, broker_id=5)
    changed = GROUP.with_broker(moved)
    assert changed.brokers == (MASTER, SLAVE2, moved)
    assert changed.find("b:1") == moved
    assert changed.find("x:1") is None


def test_a_permission_has_its_name() -> None:
    assert [permission_name(each) for each in (FULL, WRITE, READ, NONE)] == ["FULL", "WRITE", "READ", "NONE"]
