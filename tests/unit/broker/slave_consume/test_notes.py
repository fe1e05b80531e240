import msgspec
import pytest

from tanist.broker.slave_consume import notes
from tanist.broker.slave_consume.live_view import HeldLock, LiveView, bounded
from tanist.broker.slave_consume.notes import (
    MasterNote,
    SlaveNote,
    decode_master_note,
    decode_slave_note,
    encode_note,
    gone_back,
    never_less,
    pieces,
)
from tanist.errors import RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.ha_link import MAX_NOTE_BYTES

OFFSETS = {"TopicA@g": {0: QueueOffset(7), 1: QueueOffset(0)}, "TopicB@g": {0: QueueOffset(3)}}


def _slave_note(offsets: dict[str, dict[int, QueueOffset]]) -> SlaveNote:
    return SlaveNote(
        seq=1, heard=2, address="a:1", checks=3, term=4, is_reading=True, has_offsets=True, offsets=offsets
    )


@pytest.mark.behaviour("S3-38")
def test_a_slaves_note_comes_as_it_was_sent() -> None:
    note = _slave_note(OFFSETS)
    found = decode_slave_note(encode_note(note))
    assert (found.offsets, found.is_reading, found.term, found.heard) == (OFFSETS, True, 4, 2)


def test_a_masters_note_comes_as_it_was_sent() -> None:
    note = MasterNote(seq=1, heard=2, taken=3, adopted_term=4, adopted_round=5)
    found = decode_master_note(encode_note(note))
    assert (found.seq, found.heard, found.taken) == (1, 2, 3)
    assert (found.adopted_term, found.adopted_round) == (4, 5)


@pytest.mark.parametrize("data", [b"", b"null", b"{", b'{"seq": 1}', b"\xff"])
def test_what_is_no_note_is_a_fault_of_the_peer(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="no note of a slave"):
        decode_slave_note(data)
    with pytest.raises(RemoteProtocolError, match="no note of a master"):
        decode_master_note(data)


def test_an_offset_below_0_is_a_fault_of_the_peer() -> None:
    note = _slave_note({"TopicA@g": {0: QueueOffset(-1)}})
    with pytest.raises(RemoteProtocolError, match="below 0"):
        decode_slave_note(encode_note(note))


@pytest.mark.parametrize("room", [1, 80, 120, 500])
def test_pieces_hold_all_offsets_once_and_the_last_one_says_so(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(notes, "_PIECE_BYTES", room)
    found = list(pieces(OFFSETS))
    assert [is_last for _piece, is_last in found] == [False] * (len(found) - 1) + [True]
    held = [
        (key, queue, offset)
        for piece, _ in found
        for key, each in piece.items()
        for queue, offset in each.items()
    ]
    assert held == [("TopicA@g", 0, 7), ("TopicA@g", 1, 0), ("TopicB@g", 0, 3)]
    assert len(found) == {1: 3, 80: 3, 120: 2, 500: 1}[room]


def test_offsets_and_a_view_of_whatever_names_fit_a_note() -> None:
    ids = tuple(f"\U0001f600\x01{number}" for number in range(200))
    lock = HeldLock(queue=MessageQueue(topic="T", broker_name="b", queue_id=0), client_id="c", left_ms=1)
    view = LiveView(
        members={f"g{number}": ids for number in range(500)},
        locks={f"g{number}": (lock,) * 100 for number in range(500)},
    )
    keys = [f"{number:0127}@{number:0255}" for number in range(5_000)]
    offsets = {key: {2**31 - 1: QueueOffset(2**63 - 2)} for key in keys}
    base = {key: {2**31 - 1: QueueOffset(2**63 - 1)} for key in keys}
    for piece, _ in pieces(offsets):
        note = msgspec.structs.replace(
            _slave_note(piece), gone_back=gone_back(piece, base), view=bounded(view)
        )
        assert len(encode_note(note)) <= MAX_NOTE_BYTES


def test_nothing_is_one_piece_too() -> None:
    assert list(pieces({})) == [({}, True)]


def _queues(**offsets: int) -> dict[str, dict[int, QueueOffset]]:
    return {"TopicA@g": {int(name[1:]): QueueOffset(offset) for name, offset in offsets.items()}}


def test_a_group_that_stands_before_where_it_stood_has_gone_back() -> None:
    base = _queues(q0=5, q1=5, q2=5)
    assert gone_back(_queues(q0=4, q1=6, q3=0), base) == {"TopicA@g": [0]}
    assert gone_back(_queues(q0=5, q1=6), base) == {}
    assert gone_back(_queues(q0=0), {}) == {}


def test_a_master_keeps_its_own_offset_where_it_is_greater_unless_the_group_has_gone_back() -> None:
    own = _queues(q0=9, q1=9, q2=9)
    told = _queues(q0=7, q1=12, q2=3, q3=1)
    assert never_less(told, own, {"TopicA@g": [2]}) == _queues(q0=9, q1=12, q2=3, q3=1)
    assert never_less(told, {}, {}) == told
