import pytest

from tanist.model.reading import Assigned, Assignment, GroupRole, ReadRecord
from tanist.model.topics import WRITE
from tanist.protocol import Command, RequestCode
from tanist.protocol.codes import HeaderEncoding, Language
from tanist.protocol.frame import encode_command
from tanist.supervisor.stand_in import (
    IDLE_S,
    End,
    LeadTo,
    StandIn,
    StandInState,
    find_heir,
    is_turned_away,
    longest_wait_s,
)

OWN, SLAVE, OTHER = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"
LIMIT_S, WAIT_S = 35.0, 8.0
BEGAN_S = 1_000.0
NOBODY = ReadRecord(group="a", term=3)


def read_from(reader: str) -> ReadRecord:
    return ReadRecord(group="a", term=4, reader=reader)


@pytest.fixture
def machine() -> StandIn:
    return StandIn(OWN, began_s=BEGAN_S, limit_s=LIMIT_S, wait_s=WAIT_S)


@pytest.mark.parametrize("before", [None, NOBODY])
def test_callers_wait_until_a_broker_is_read(machine: StandIn, before: ReadRecord | None) -> None:
    assert machine.on_record(before, now_s=BEGAN_S) == []
    assert machine.on_time(now_s=BEGAN_S + WAIT_S - 0.1) == []
    assert machine.on_record(read_from(SLAVE), now_s=BEGAN_S + WAIT_S - 0.1) == [LeadTo(SLAVE)]
    assert machine.reader == SLAVE
    assert machine.on_time(now_s=BEGAN_S + WAIT_S) == []


def test_it_ends_if_nobody_is_read_in_time(machine: StandIn) -> None:
    assert machine.on_time(now_s=BEGAN_S + WAIT_S) == [End("nobody is read in its place")]
    assert machine.on_record(read_from(SLAVE), now_s=BEGAN_S + WAIT_S) == []
    assert machine.on_time(now_s=BEGAN_S + LIMIT_S) == []


def test_a_new_reader_is_told_once(machine: StandIn) -> None:
    machine.on_record(read_from(SLAVE), now_s=BEGAN_S)
    assert machine.on_record(read_from(SLAVE), now_s=BEGAN_S) == []
    assert machine.on_record(read_from(OTHER), now_s=BEGAN_S) == [LeadTo(OTHER)]


@pytest.mark.parametrize("after", [None, NOBODY, read_from(OWN)])
def test_it_ends_when_nobody_is_read_any_more(machine: StandIn, after: ReadRecord | None) -> None:
    machine.on_record(read_from(SLAVE), now_s=BEGAN_S)
    assert machine.on_record(after, now_s=BEGAN_S) == [End("nobody is read in its place any more")]
    assert machine.state is StandInState.OVER


def test_nobody_is_led_back_to_the_stand_in_itself(machine: StandIn) -> None:
    assert machine.on_record(read_from(OWN), now_s=BEGAN_S) == []
    assert machine.state is StandInState.WAITING


def test_it_ends_when_its_time_is_over_whoever_is_led(machine: StandIn) -> None:
    machine.on_record(read_from(SLAVE), now_s=BEGAN_S)
    machine.on_led(1, now_s=BEGAN_S)
    assert machine.on_time(now_s=BEGAN_S + LIMIT_S - 0.1) == []
    assert machine.on_time(now_s=BEGAN_S + LIMIT_S) == [End("its time is over")]


def test_it_ends_when_nobody_has_needed_it_for_a_while(machine: StandIn) -> None:
    machine.on_record(read_from(SLAVE), now_s=BEGAN_S)
    machine.on_led(1, now_s=BEGAN_S + IDLE_S - 1)
    assert machine.on_time(now_s=BEGAN_S + IDLE_S) == []
    machine.on_led(0, now_s=BEGAN_S + IDLE_S)
    assert machine.on_time(now_s=BEGAN_S + 2 * IDLE_S - 0.1) == []
    assert machine.on_time(now_s=BEGAN_S + 2 * IDLE_S) == [End("nobody needs it")]


def test_a_slave_has_its_checks_and_some_time_more_to_be_read() -> None:
    assert 3 < longest_wait_s(3) < longest_wait_s(4) < 15


def assigned(address: str, broker_id: int, permission: int = 6) -> Assigned:
    role = GroupRole.SLAVE if broker_id else GroupRole.MASTER
    return Assigned(address=address, role=role, broker_id=broker_id, permission=permission)


@pytest.mark.parametrize(
    ("brokers", "record", "heir"),
    [
        ((assigned(OWN, 0), assigned(SLAVE, 1), assigned(OTHER, 2)), None, SLAVE),
        ((assigned(OWN, 0), assigned(SLAVE, 1, permission=WRITE), assigned(OTHER, 2)), NOBODY, OTHER),
        ((assigned(OWN, 0), assigned(SLAVE, 1), assigned(OTHER, 2)), read_from(OTHER), OTHER),
        ((assigned(OWN, 0),), NOBODY, None),
        ((assigned(OWN, 0),), read_from(OWN), None),
        ((assigned(OWN, 1),), None, None),
        (None, None, None),
    ],
)
def test_the_heir_is_who_is_read_or_the_slave_that_will_be(
    brokers: tuple[Assigned, ...] | None, record: ReadRecord | None, heir: str | None
) -> None:
    assignment = Assignment(group="a", brokers=brokers) if brokers is not None else None
    assert find_heir(assignment, record, address=OWN, is_master=True) == heir


def test_only_a_master_has_an_heir_and_its_assignment_counts_before_its_settings() -> None:
    master = Assignment(group="a", brokers=(assigned(OWN, 0), assigned(SLAVE, 1)))
    slave = Assignment(group="a", brokers=(assigned(OTHER, 0), assigned(SLAVE, 1), assigned(OWN, 2)))
    assert find_heir(master, NOBODY, address=OWN, is_master=False) == SLAVE
    assert find_heir(slave, NOBODY, address=OWN, is_master=True) is None
    assert find_heir(slave, read_from(SLAVE), address=OWN, is_master=True) is None
    assert find_heir(None, read_from(SLAVE), address=OWN, is_master=False) is None


def said(
    code: int, language: Language = Language.JAVA, encoding: HeaderEncoding = HeaderEncoding.JSON
) -> bytes:
    return encode_command(Command(code, language=language, encoding=encoding, body=b"x" * 100))


@pytest.mark.parametrize("encoding", list(HeaderEncoding))
def test_who_sends_messages_is_turned_away_and_who_reads_is_not(encoding: HeaderEncoding) -> None:
    assert is_turned_away(said(RequestCode.SEND_MESSAGE_V2, encoding=encoding))
    assert is_turned_away(said(RequestCode.SEND_MESSAGE_V2, encoding=encoding)[:-90])
    assert not is_turned_away(said(RequestCode.PULL_MESSAGE, encoding=encoding))
    assert not is_turned_away(said(RequestCode.HEART_BEAT, encoding=encoding))


def test_our_own_clients_are_turned_away() -> None:
    assert is_turned_away(said(RequestCode.PULL_MESSAGE, Language.PYTHON))


@pytest.mark.parametrize(
    "unseen", [b"", b"\x00", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", said(RequestCode.SEND_MESSAGE_V2)[:40]]
)
def test_what_can_not_be_seen_through_is_let_through(unseen: bytes) -> None:
    assert not is_turned_away(unseen)


def test_a_header_that_is_none_is_let_through() -> None:
    whole = bytearray(said(RequestCode.SEND_MESSAGE_V2))
    whole[4] = 9
    assert not is_turned_away(bytes(whole))
