"""A slave's part, event by event."""

import msgspec
import pytest

from tanist.broker.slave_consume.actions import Claim, PutRecord, SendNote, SendOffsets, Tell
from tanist.broker.slave_consume.notes import MasterNote
from tanist.broker.slave_consume.slave_standing import HAND_BACK_TIMEOUT_S, SlaveStanding, SlaveState
from tanist.model.reading import (
    FULL,
    NONE,
    Assigned,
    Assignment,
    EndedBy,
    GroupRole,
    ReadRecord,
    permission_name,
)
from tanist.model.topics import READ, WRITE

MASTER = Assigned(address="master", role=GroupRole.MASTER, broker_id=0)
SLAVE = Assigned(address="slave", role=GroupRole.SLAVE, broker_id=1)
GROUP = Assignment(group="g", brokers=(MASTER, SLAVE))
NAMED = ReadRecord(group="g", second="slave")
READING = ReadRecord(group="g", term=1, second="slave", reader="slave")


def _slave(
    record: ReadRecord | None = NAMED,
    *,
    assignment: Assignment = GROUP,
    is_master_alive: bool | None = False,
    held_until_s: float = 1000.0,
    damage: str | None = None,
) -> SlaveStanding:
    standing = SlaveStanding("slave", 3, lambda: held_until_s, lambda: damage)
    standing.on_assignment(assignment)
    standing.on_master_alive(is_master_alive)
    if record is not None:
        standing.on_record(record)
    return standing


def _note(seq: int, *, heard: int = 0, taken: int = 0, adopted: tuple[int, int] = (0, 0)) -> MasterNote:
    return MasterNote(seq=seq, heard=heard, taken=taken, adopted_term=adopted[0], adopted_round=adopted[1])


def _permission(standing: SlaveStanding, now_s: float = 100.0) -> str:
    return permission_name(standing.permitted(now_s).permission)


def _claims(standing: SlaveStanding, first_s: float = 0) -> bool:
    found = [action for second in range(5) for action in standing.on_check(first_s + second)]
    return any(isinstance(action, Claim) for action in found)


def _hand_back(standing: SlaveStanding) -> None:
    """The link is up, the offsets are exchanged, and the final ones are sent with note 2."""
    standing.on_master_alive(True)
    standing.on_linked()
    assert standing.on_master_note(_note(1), 5) == [SendOffsets(0)]
    standing.on_offered(1)
    assert standing.on_master_note(_note(2, heard=1, taken=1), 5) == [Tell(), SendOffsets(1)]
    standing.on_offered(2)


@pytest.mark.behaviour("S3-29", "S3-34", "S3-35")
def test_a_slave_claims_when_all_conditions_have_held_in_all_checks() -> None:
    standing = _slave()
    assert [standing.on_check(0), standing.on_check(1)] == [[], []]
    (claim,) = standing.on_check(2)
    assert isinstance(claim, Claim)
    assert (claim.record.term, claim.record.reader, claim.record.brokers) == (1, "slave", GROUP.brokers)
    assert "master absent from the registry: it is not there" in claim.record.reason
    assert _permission(standing) == "NONE"
    standing.on_record(claim.record)
    assert _permission(standing) == "READ"


@pytest.mark.behaviour("S3-23", "S3-24", "S3-29", "S3-31", "S3-32", "S3-33")
@pytest.mark.parametrize(
    "standing",
    [
        pytest.param(_slave(is_master_alive=True), id="master-alive"),
        pytest.param(_slave(is_master_alive=None), id="not-known-whether-master-is-alive"),
        pytest.param(_slave(held_until_s=0.0), id="registry-not-reached"),
        pytest.param(_slave(record=None), id="record-not-known"),
        pytest.param(_slave(ReadRecord(group="g", second="slave2")), id="not-the-second"),
        pytest.param(_slave(ReadRecord(group="g")), id="nobody-is-second"),
        pytest.param(_slave(damage="commitlog/0 at byte 7 is damaged"), id="damaged"),
        *(
            pytest.param(
                _slave(assignment=GROUP.with_broker(msgspec.structs.replace(broker, permission=permission))),
                id=f"{broker.address}-{permission_name(permission)}",
            )
            for broker, permission in [
                (MASTER, WRITE),
                (MASTER, READ),
                (MASTER, NONE),
                (SLAVE, WRITE),
                (SLAVE, NONE),
            ]
        ),
        pytest.param(_slave(assignment=Assignment(group="g", brokers=(SLAVE,))), id="no-master"),
        pytest.param(_slave(assignment=Assignment(group="g", brokers=(MASTER,))), id="not-assigned"),
    ],
)
def test_a_slave_does_not_claim_if_one_condition_does_not_hold(standing: SlaveStanding) -> None:
    assert not _claims(standing)


@pytest.mark.behaviour("S3-25", "S3-29")
def test_a_slave_that_is_linked_does_not_claim() -> None:
    standing = _slave()
    standing.on_linked()
    assert not _claims(standing)
    standing.on_unlinked()
    assert _claims(standing, 10)


@pytest.mark.behaviour("S3-29")
def test_a_link_on_which_no_answer_comes_any_more_counts_as_down() -> None:
    standing = _slave()
    standing.on_linked()
    standing.on_master_note(_note(1), 0)
    assert not any(standing.on_check(now_s) for now_s in (1, 2, 3))
    assert standing.on_check(4)


@pytest.mark.behaviour("S3-30")
def test_a_link_that_came_and_went_between_two_checks_begins_the_count_anew() -> None:
    standing = _slave()
    standing.on_check(0)
    standing.on_check(1)
    standing.on_linked()
    standing.on_unlinked()
    assert [standing.on_check(2), standing.on_check(3)] == [[], []]
    assert standing.on_check(4)


def test_a_claim_that_failed_begins_the_count_anew() -> None:
    standing = _slave()
    assert _claims(standing)
    standing.on_claim_failed()
    assert standing.state is SlaveState.FOLLOWING
    assert standing.on_check(10) == []


def test_a_slave_says_nothing_while_it_does_not_know_whether_it_is_the_reader() -> None:
    standing = _slave(record=None)
    assert SendNote() not in standing.on_linked()
    assert standing.on_note_due() == []
    standing.on_record(NAMED)
    assert standing.on_note_due() == [SendNote()]
    standing.on_unlinked()
    assert _claims(standing)
    assert SendNote() not in standing.on_linked()


@pytest.mark.behaviour("S3-15")
def test_a_claim_that_lands_late_lets_nobody_read_before_the_masters_lease_is_over() -> None:
    standing = _slave()
    standing.on_linked()
    standing.on_master_note(_note(1), 50)
    standing.on_record(READING)
    assert _permission(standing, 51.9) == "NONE"
    assert _permission(standing, 52.1) == "READ"
    # What it hears as the reader is no promise any more.
    standing.on_master_note(_note(2), 60)
    assert _permission(standing, 60) == "READ"


@pytest.mark.behaviour("S3-37")
def test_a_slave_that_starts_again_reads_on_and_holds_back_its_masters_offsets_from_the_start() -> None:
    standing = _slave(record=None)
    assert standing.owns_offsets
    standing.on_record(READING)
    assert standing.owns_offsets
    assert _permission(standing) == "READ"


@pytest.mark.behaviour("S3-38", "S3-43", "S3-48", "S3-49", "S3-51")
def test_a_slave_hands_back_when_the_master_is_back_and_has_its_offsets() -> None:
    standing = _slave(READING)
    _hand_back(standing)
    assert (standing.state, _permission(standing)) == (SlaveState.HANDING_BACK, "NONE")
    tell, put = standing.on_master_note(_note(3, heard=2, taken=2, adopted=(1, 1)), 6)
    assert tell == Tell()
    assert isinstance(put, PutRecord)
    assert (put.record.reader, put.record.ended_by, put.record.round) == (None, EndedBy.HAND_BACK, 1)
    assert (put.record.term, put.record.second) == (1, "slave")
    assert _permission(standing) == "NONE"
    assert standing.owns_offsets
    standing.on_record(put.record)
    assert (standing.state, standing.owns_offsets) == (SlaveState.FOLLOWING, False)


def test_the_end_is_written_again_until_it_is_seen() -> None:
    standing = _slave(READING)
    _hand_back(standing)
    _, put = standing.on_master_note(_note(3, heard=2, taken=2, adopted=(1, 1)), 6)
    standing.on_unlinked()
    assert standing.on_check(7) == [put]
    assert _permission(standing) == "NONE"


@pytest.mark.parametrize("adopted", [(0, 0), (1, 0), (1, 2), (2, 1)])
def test_another_hand_back_than_this_one_ends_nothing(adopted: tuple[int, int]) -> None:
    standing = _slave(READING)
    _hand_back(standing)
    assert standing.on_master_note(_note(3, heard=2, taken=2, adopted=adopted), 6) == []


def test_a_slave_does_not_hand_back_to_a_master_that_is_not_in_the_registry() -> None:
    standing = _slave(READING)
    standing.on_linked()
    standing.on_master_note(_note(1), 5)
    standing.on_offered(1)
    assert standing.on_master_note(_note(2, heard=1, taken=1), 5) == []
    assert _permission(standing) == "READ"


def test_a_link_lost_before_the_answer_lets_the_slave_read_on_and_begin_another_round() -> None:
    standing = _slave(READING)
    _hand_back(standing)
    standing.on_unlinked()
    assert _permission(standing) == "READ"
    standing.on_linked()
    standing.on_master_note(_note(1, adopted=(1, 1)), 8)
    standing.on_offered(4)
    assert standing.on_master_note(_note(2, heard=4, taken=4, adopted=(1, 1)), 8) == [Tell(), SendOffsets(2)]


def test_a_slave_that_started_again_begins_a_round_that_the_master_has_not_adopted() -> None:
    standing = _slave(READING, is_master_alive=True)
    standing.on_linked()
    standing.on_master_note(_note(1, adopted=(1, 6)), 8)
    standing.on_offered(1)
    assert standing.on_master_note(_note(2, heard=1, taken=1, adopted=(1, 6)), 8)[-1] == SendOffsets(7)


def test_a_hand_back_without_an_answer_ends_after_its_time() -> None:
    standing = _slave(READING)
    _hand_back(standing)
    standing.on_check(5 + HAND_BACK_TIMEOUT_S - 0.1)
    assert _permission(standing) == "NONE"
    assert standing.on_check(5 + HAND_BACK_TIMEOUT_S) == [Tell(), SendOffsets(0)]
    assert _permission(standing) == "READ"


@pytest.mark.behaviour("S3-38")
def test_offsets_are_offered_again_each_second_until_they_can_be_handed_back() -> None:
    standing = _slave(READING)
    standing.on_linked()
    assert standing.on_master_note(_note(1), 5) == [SendOffsets(0)]
    standing.on_offered(1)
    # Not before the last ones were heard.
    assert standing.on_check(6) == [Tell()]
    # The master did not know the record yet, and took nothing.
    assert standing.on_master_note(_note(2, heard=1), 6) == []
    assert standing.on_check(7) == [Tell(), SendOffsets(0)]


def test_an_operators_end_stops_a_slave_at_once() -> None:
    standing = _slave(READING)
    standing.on_record(msgspec.structs.replace(READING, reader=None, ended_by=EndedBy.OPERATOR))
    assert (_permission(standing), standing.state) == ("NONE", SlaveState.FOLLOWING)


def test_full_permission_of_a_slave_is_read_permission_at_most() -> None:
    assert SLAVE.permission == FULL
    assert _permission(_slave(READING)) == "READ"
