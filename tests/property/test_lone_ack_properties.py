"""An ack that is taken in one step is one that ``on_bytes`` would take, and anything else is left to that."""

from hypothesis import given
from hypothesis import strategies as st

from tanist.ha.actions import TakeAck
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_link import Ack, AckKind, Heartbeat, encode_ack, encode_heartbeat, encode_note
from tests.support.links import Bytes, MasterSide, SlaveSide

_LOG = b"x" * 500


def _ack(kind: AckKind, offset: int) -> bytes:
    return encode_ack(Ack(kind, LogOffset(offset)))


def _heartbeat(log_end: int) -> bytes:
    return encode_heartbeat(Heartbeat(LogOffset(log_end), 0, LogOffset(0)))


def _bent(ack: bytes, place: int, value: int) -> bytes:
    return ack[:place] + bytes([value]) + ack[place + 1 :]


_acks = st.builds(_ack, st.sampled_from(AckKind), st.integers(0, 900))
_said = st.one_of(
    _acks,
    _acks,
    st.lists(_acks, min_size=2, max_size=3).map(b"".join),
    st.builds(_bent, _acks, st.integers(0, 13), st.integers(0, 255)),
    st.builds(_heartbeat, st.integers(0, 900)),
    st.just(encode_note(b"a note")),
    st.binary(max_size=20),
)


def _transferring() -> MasterSide:
    master, slave = MasterSide(Bytes(_LOG)), SlaveSide(Bytes())
    said = slave.begin()
    while said:
        said = slave.hear(master.hear(said))
    # The slave has all; more is sent that it has not acked.
    master.log.data += b"y" * 300
    master.push()
    return master


@given(st.lists(_said, max_size=5))
def test_what_is_taken_in_one_step_is_what_is_taken_otherwise(said: list[bytes]) -> None:
    quick, careful = _transferring(), _transferring()
    for data in said:
        acked_to = quick.link.take_ack(data, now_s=1.0)
        actions = careful.link.on_bytes(data, now_s=1.0)
        if acked_to is None:
            assert quick.link.on_bytes(data, now_s=1.0) == actions
        else:
            assert actions == [TakeAck(acked_to)]
        assert quick.link.acked_to == careful.link.acked_to
        assert quick.link.state is careful.link.state
        assert quick.link.next_tick_s == careful.link.next_tick_s


def test_most_acks_are_taken_in_one_step() -> None:
    master = _transferring()
    ack = encode_ack(Ack(AckKind.RECEIVED, LogOffset(600)))
    assert master.link.take_ack(ack, now_s=1.0) == 600
    assert master.link.take_ack(ack[:5], now_s=1.0) is None
    assert master.link.on_bytes(ack[:5], now_s=1.0) == []
    # The rest of one that began before is none of its own.
    assert master.link.take_ack(ack, now_s=1.0) is None
