"""The record of a group, and where it is kept."""

import pytest

from tanist.controller.group_record import (
    BadGroupRecord,
    GroupRecord,
    decode_group,
    encode_group,
    group_name,
    group_path,
)
from tanist.coord.changes import check_path
from tests.support.reigning import group, replica


def test_a_record_comes_back_as_it_was_written() -> None:
    for record in (group(), group(master=None), GroupRecord(cluster="c", broker_name="b")):
        assert decode_group(encode_group(record), path="/x") == record


def test_members_that_a_later_version_adds_are_passed_over() -> None:
    value = encode_group(group()).replace(b"{", b'{"later":1,', 1)
    assert decode_group(value, path="/x") == group()


@pytest.mark.parametrize(
    "value",
    [b"", b"{", b"{}", b"\xff", b"null", encode_group(group()).replace(b'"master_id":1', b'"master_id":3')],
)
def test_what_is_no_record_is_told_with_its_place(value: bytes) -> None:
    with pytest.raises(BadGroupRecord, match="/groups/b in the registry"):
        decode_group(value, path="/groups/b")


@pytest.mark.parametrize("name", ["b", "broker-a", "..", ".", "a/b", "%2E", "ü\n ", "/"])
def test_no_name_leaves_its_folder(name: str) -> None:
    path = check_path(group_path(name))
    folder, _, child = path.rpartition("/")
    assert folder == "/groups"
    assert group_name(child) == name


def test_a_reign_begins_with_the_master_alone_in_step() -> None:
    record = group(members=(1, 2)).with_master(2, epoch=5, session="s2", lease_ms=1_000)
    assert (record.epoch, record.set_epoch, record.sync_state_set) == (5, 8, {2})
    assert (record.master_id, record.master_address) == (2, "127.0.0.1:2")


def test_a_reign_that_ends_leaves_set_and_epoch() -> None:
    record = group().without_master()
    assert (record.epoch, record.set_epoch, record.sync_state_set) == (4, 7, {1, 2})
    assert record.master_address is None


def test_the_next_id_is_beyond_every_id() -> None:
    assert group().with_replica(9, replica(9)).next_id == 10
    assert group().with_replica(2, replica(2)).next_id == 4
