"""A master's part, event by event."""

import msgspec
import pytest

from tanist.broker.slave_consume.actions import PutRecord, ReadAgain, SendNote, TakeOffsets, Tell
from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.notes import SlaveNote
from tanist.broker.slave_consume.permitted import NOTHING_ADOPTED, Adopted
from tanist.model.offsets import QueueOffset
from tanist.model.reading import (
    Assigned,
    Assignment,
    EndedBy,
    GroupRole,
    ReadRecord,
    permission_name,
)

MASTER = Assigned(address="master", role=GroupRole.MASTER, broker_id=0)
SLAVE = Assigned(address="slave", role=GroupRole.SLAVE, broker_id=1)
SLAVE2 = Assigned(address="slave2", role=GroupRole.SLAVE, broker_id=2)
GROUP = Assignment(group="g", brokers=(MASTER, SLAVE, SLAVE2))
NAMED = ReadRecord(group="g", second="slave")
LEASE_S = 2 * 0.95


class _Session:
    """Up to when it is held."""

    def __init__(self) -> None:
        self.until_s = 10.0

    def __call__(self) -> float:
        return self.until_s


def _master(
    record: ReadRecord | None = NAMED, adopted: Adopted = NOTHING_ADOPTED
) -> tuple[MasterStanding, _Session]:
    session = _Session()
    standing = MasterStanding("master", session, adopted)
    standing.on_assignment(GROUP)
    if record is not None:
        standing.on_record(record)
    return standing, session


def _note(
    *, address: str = "slave", seq: int = 1, heard: int = 0, term: int = 0, is_reading: bool = False
) -> SlaveNote:
    return SlaveNote(seq=seq, heard=heard, address=address, checks=3, term=term, is_reading=is_reading)


def _offsets(
    offset: int, *, queue: int = 0, round_: int = 0, is_last: bool = True, term: int = 1
) -> SlaveNote:
    note = _note(term=term, is_reading=True)
    offsets = {"TopicA@g": {queue: QueueOffset(offset)}}
    return msgspec.structs.replace(note, round=round_, has_offsets=True, is_last=is_last, offsets=offsets)


def _hear(standing: MasterStanding, now_s: float, address: str = "slave") -> None:
    """The slave hears a note that is sent now, and says so at once."""
    standing.on_slave_note(_note(address=address, heard=standing.next_seq(now_s)), now_s)


def _permission(standing: MasterStanding, now_s: float) -> str:
    return permission_name(standing.permitted(now_s).permission)


@pytest.mark.behaviour("S3-46")
def test_a_master_that_has_not_read_the_record_has_nothing() -> None:
    standing, _ = _master(record=None)
    assert _permission(standing, 1) == "NONE"


@pytest.mark.behaviour("S3-26", "S3-27", "S3-63")
def test_a_master_gives_up_everything_when_neither_session_nor_lease_is_held() -> None:
    standing, _ = _master()
    assert _permission(standing, 9.9) == "FULL"
    assert _permission(standing, 10) == "NONE"
    assert standing.given_up is not None


@pytest.mark.behaviour("S3-25")
def test_the_lease_of_the_second_holds_a_master_without_the_registry() -> None:
    standing, _ = _master()
    _hear(standing, 9.5)
    assert _permission(standing, 9.5 + LEASE_S - 0.01) == "FULL"
    assert _permission(standing, 9.5 + LEASE_S + 0.01) == "NONE"


def test_a_lease_counts_from_when_the_note_was_sent_that_the_slave_heard() -> None:
    standing, _ = _master()
    seq = standing.next_seq(8.5)
    standing.on_slave_note(_note(heard=seq), 10)
    assert standing.safe_until_s == pytest.approx(8.5 + LEASE_S)


@pytest.mark.parametrize("address", ["slave2", "stranger"])
def test_nobody_but_the_second_gives_a_lease(address: str) -> None:
    standing, _ = _master()
    _hear(standing, 9.5, address)
    assert _permission(standing, 10) == "NONE"


def test_a_slave_that_is_read_gives_no_lease() -> None:
    standing, _ = _master()
    standing.on_slave_note(_note(heard=standing.next_seq(9.5), is_reading=True, term=0), 9.5)
    assert standing.safe_until_s == 10


def test_a_note_that_was_never_sent_gives_no_lease() -> None:
    standing, _ = _master()
    standing.on_slave_note(_note(heard=77), 9.5)
    assert standing.safe_until_s == 10


@pytest.mark.behaviour("S3-59", "S3-60", "S3-61", "S3-62")
def test_a_master_that_nobody_can_replace_needs_no_registry() -> None:
    standing, _ = _master(ReadRecord(group="g"))
    assert _permission(standing, 1000) == "FULL"


def test_the_slave_of_least_id_is_named_second_once_it_is_linked() -> None:
    standing, _ = _master(ReadRecord(group="g"))
    assert standing.on_slave_note(_note(address="slave2"), 1) == [SendNote()]
    actions = standing.on_slave_note(_note(), 1)
    assert [type(action) for action in actions] == [PutRecord, SendNote]
    assert isinstance(actions[0], PutRecord)
    assert (actions[0].record.second, actions[0].record.brokers) == ("slave", GROUP.brokers)
    # While that is on its way it is not said again.
    assert standing.on_slave_note(_note(seq=2), 1) == [SendNote()]


def test_a_second_that_may_have_been_named_counts_until_the_record_is_another() -> None:
    standing, session = _master(ReadRecord(group="g"))
    standing.on_slave_note(_note(), 1)
    assert standing.on_put_lost() == [ReadAgain()]
    standing.on_record(ReadRecord(group="g"))
    # What was sent may be written yet.
    assert standing.safe_until_s == session.until_s
    assert _permission(standing, 10) == "NONE"


def test_the_lease_of_the_old_second_is_not_enough_while_another_may_have_been_named() -> None:
    standing, _ = _master()
    standing.on_assignment(Assignment(group="g", brokers=(MASTER, SLAVE2)))
    standing.on_slave_note(_note(address="slave2"), 9)
    standing.on_put_lost()
    _hear(standing, 9.8)
    assert _permission(standing, 10) == "NONE"


@pytest.mark.behaviour("S3-45")
def test_a_new_session_is_worth_nothing_before_the_record_is_read_in_it() -> None:
    standing, session = _master()
    assert standing.on_session_lost() == [Tell()]
    session.until_s = 20.0
    assert _permission(standing, 11) == "NONE"


def test_who_asks_does_not_swallow_the_news() -> None:
    standing, _ = _master()
    assert _permission(standing, 10) == "NONE"
    assert standing.on_tick(10.1) == [Tell()]


@pytest.mark.behaviour("S3-57")
def test_the_second_that_is_not_read_restores_a_master_after_it_has_read_the_record_again() -> None:
    standing, session = _master()
    standing.on_tick(10)
    session.until_s = 20.0
    actions = standing.on_slave_note(_note(heard=standing.next_seq(11)), 11)
    assert actions == [ReadAgain(), SendNote()]
    assert _permission(standing, 11) == "NONE"
    standing.on_record(NAMED)
    assert _permission(standing, 11) == "FULL"


def test_without_the_registry_the_word_of_the_second_is_enough() -> None:
    standing, _ = _master()
    standing.on_tick(10)
    standing.on_slave_note(_note(), 11)
    assert _permission(standing, 11) == "NONE"
    _hear(standing, 11)
    assert _permission(standing, 11) == "FULL"


@pytest.mark.parametrize("address", ["slave2", "stranger"])
def test_the_word_of_another_slave_restores_nothing(address: str) -> None:
    standing, _ = _master()
    standing.on_tick(10)
    _hear(standing, 11, address)
    assert _permission(standing, 11) == "NONE"


@pytest.mark.behaviour("S3-65")
def test_the_registry_alone_restores_nothing_and_an_operator_does() -> None:
    standing, session = _master()
    standing.on_tick(10)
    session.until_s = 20.0
    standing.on_record(NAMED)
    assert _permission(standing, 11) == "NONE"
    standing.on_restored()
    assert _permission(standing, 11) == "FULL"


def test_an_operator_can_not_restore_a_master_that_may_be_replaced_now() -> None:
    standing, _ = _master()
    standing.on_tick(10)
    standing.on_restored()
    assert _permission(standing, 11) == "NONE"


def test_an_operators_end_of_a_slave_consumption_restores_though_the_master_never_heard_of_it() -> None:
    standing, session = _master()
    standing.on_tick(10)
    session.until_s = 20.0
    standing.on_record(msgspec.structs.replace(NAMED, term=1, ended_by=EndedBy.OPERATOR))
    assert _permission(standing, 11) == "FULL"


def test_a_slave_that_says_that_it_is_read_in_a_newer_term_is_believed_at_once() -> None:
    standing, _ = _master()
    actions = standing.on_slave_note(_note(is_reading=True, term=1), 1)
    assert actions == [Tell(), ReadAgain(), SendNote()]
    assert _permission(standing, 1) == "NONE"


@pytest.mark.behaviour("S3-39", "S3-48", "S3-50", "S3-52")
@pytest.mark.parametrize("is_record_first", [False, True])
def test_a_master_is_read_after_both_the_offsets_and_the_end_of_the_record(is_record_first: bool) -> None:
    standing, _ = _master(msgspec.structs.replace(NAMED, term=1, reader="slave"))
    ended = msgspec.structs.replace(NAMED, term=1, ended_by=EndedBy.HAND_BACK, round=1)
    actions = standing.on_slave_note(_offsets(7, round_=1), 1)
    assert actions == [TakeOffsets({"TopicA@g": {0: QueueOffset(7)}}, 1, 1), SendNote()]
    if is_record_first:
        standing.on_record(ended)
        assert _permission(standing, 1) == "NONE"
        assert standing.on_adopted(1, 1) == [Tell(), SendNote()]
    else:
        standing.on_adopted(1, 1)
        assert _permission(standing, 1) == "NONE"
        standing.on_record(ended)
    assert _permission(standing, 1) == "FULL"


def test_an_older_round_is_not_enough() -> None:
    standing, _ = _master(
        msgspec.structs.replace(NAMED, term=1, ended_by=EndedBy.HAND_BACK, round=2), Adopted(1, 1)
    )
    assert _permission(standing, 1) == "NONE"


def test_pieces_are_taken_together_also_when_another_slave_joins_between_them() -> None:
    standing, _ = _master(msgspec.structs.replace(NAMED, term=1, reader="slave"))
    standing.on_linked("slave")
    assert standing.on_slave_note(_offsets(7, queue=0, is_last=False), 1) == [SendNote()]
    standing.on_linked("slave2")
    actions = standing.on_slave_note(_offsets(8, queue=1), 1)
    assert actions[0] == TakeOffsets({"TopicA@g": {0: QueueOffset(7), 1: QueueOffset(8)}}, 1, 0)


def test_pieces_of_a_link_that_is_gone_are_forgotten() -> None:
    standing, _ = _master(msgspec.structs.replace(NAMED, term=1, reader="slave"))
    standing.on_slave_note(_offsets(7, queue=0, is_last=False), 1)
    standing.on_linked("slave")
    actions = standing.on_slave_note(_offsets(8, queue=1), 1)
    assert actions[0] == TakeOffsets({"TopicA@g": {1: QueueOffset(8)}}, 1, 0)


def test_what_has_gone_back_is_told_with_its_piece_and_forgotten_with_it() -> None:
    standing, _ = _master(msgspec.structs.replace(NAMED, term=1, reader="slave"))
    back = msgspec.structs.replace(_offsets(7, is_last=False), gone_back={"TopicA@g": [0]})
    standing.on_slave_note(back, 1)
    actions = standing.on_slave_note(_offsets(8, queue=1), 1)
    offsets = {"TopicA@g": {0: QueueOffset(7), 1: QueueOffset(8)}}
    assert actions[0] == TakeOffsets(offsets, 1, 0, gone_back={"TopicA@g": [0]})
    standing.on_slave_note(back, 1)
    standing.on_linked("slave")
    actions = standing.on_slave_note(_offsets(9), 1)
    assert actions[0] == TakeOffsets({"TopicA@g": {0: QueueOffset(9)}}, 1, 0)


def test_offsets_of_who_is_not_the_reader_are_not_taken() -> None:
    standing, _ = _master(msgspec.structs.replace(NAMED, term=2, reader="slave2"))
    assert standing.on_slave_note(_offsets(7, term=1), 1) == [SendNote()]
    standing, _ = _master(record=None)
    assert standing.on_slave_note(_offsets(7), 1) == [ReadAgain(), SendNote()]


def test_a_master_that_lost_its_role_sends_nobody_to_itself() -> None:
    standing, _ = _master()
    standing.on_assignment(Assignment(group="g", brokers=(SLAVE,)))
    assert (_permission(standing, 1), standing.permitted(1).reader) == ("NONE", None)
    successor = Assigned(address="successor", role=GroupRole.MASTER, broker_id=0)
    standing.on_assignment(Assignment(group="g", brokers=(successor, SLAVE)))
    assert standing.permitted(1).reader == "successor"
