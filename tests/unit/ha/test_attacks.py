"""The famous attacks, played on the pure ends of a link: nothing is believed, nothing leaves.

What a stranger may get out of a master is its hello, which proves the master and says how long its log is.
"""

import struct
import zlib
from typing import Final

import pytest

from tanist.ha.actions import CloseKind
from tanist.ha.slave_link import SlaveState
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    GREETING,
    HELLO_S,
    MAGIC,
    MAX_UNPROVEN_BYTES,
    PROOF_BYTES,
    Accepted,
    encode_verdict,
)
from tanist.protocol.ha_link import Ack, AckKind, encode_ack, encode_data_header
from tests.support.ha_attacks import HUGE, TELNET_SLIP, random_strings, report
from tests.support.links import INCARNATION, KEYS, Bytes, MasterSide, SlaveSide, meet

LOG: Final = bytes(range(256)) * 10
END: Final = len(LOG)
# kind, ack_kind, log_offset
_ACK: Final = struct.Struct(">BBq")
# log_start, log_end: in the message that proves a slave, behind its head and the incarnation
_RANGE: Final = struct.Struct(">qq")
_RANGE_AT: Final = 9 + 16


def attacked() -> MasterSide:
    return MasterSide(Bytes(LOG))


def in_step() -> SlaveSide:
    return SlaveSide(Bytes(LOG), incarnation=INCARNATION)


def record() -> tuple[bytes, bytes]:
    """What a slave said that was let in: its hello, and what came after the master's."""
    slave = in_step()
    meet(MasterSide(Bytes(LOG), nonce=b"then, not now..."), slave)
    slave.sent += encode_ack(Ack(AckKind.RECEIVED, LogOffset(END)))
    hello_bytes = len(in_step().begin())
    return slave.sent[:hello_bytes], slave.sent[hello_bytes:]


def following() -> tuple[MasterSide, SlaveSide]:
    """Both ends of a link on which the slave is let in."""
    master, slave = attacked(), in_step()
    meet(master, slave)
    assert slave.link.state is SlaveState.TRANSFER
    return master, slave


def wait_in_vain(master: MasterSide) -> None:
    """Nothing more comes."""
    master.do(master.link.on_tick(log_end=END, now_s=HELLO_S))


def assert_nothing_believed(master: MasterSide) -> None:
    assert master.started is None
    assert master.acked == []
    assert master.closed is not None


def test_the_telnet_slip_reads_as_the_famous_number() -> None:
    assert struct.unpack(">q", TELNET_SLIP[:8]) == (4123389851770370361,)


@pytest.mark.behaviour("S5-20")
def test_10000_random_byte_strings_get_not_a_byte() -> None:
    for said in random_strings(10_000):
        master = attacked()
        master.hear(said)
        wait_in_vain(master)
        assert_nothing_believed(master)
        assert master.sent == b""


def test_10000_random_byte_strings_behind_the_magic_get_a_greeting_and_not_a_byte_more() -> None:
    for said in random_strings(10_000, max_bytes=2 * MAX_UNPROVEN_BYTES):
        master = attacked()
        master.hear(MAGIC + said)
        wait_in_vain(master)
        assert_nothing_believed(master)
        assert master.sent in (b"", GREETING)


def test_10000_random_proofs_prove_nothing() -> None:
    hello, rest = record()
    for said in random_strings(10_000):
        master = attacked()
        answer = master.hear(hello)
        master.hear(rest[: -len(said)] + said)
        wait_in_vain(master)
        assert_nothing_believed(master)
        assert master.sent == answer


@pytest.mark.behaviour("S5-19")
def test_every_prefix_of_a_recorded_session_proves_nothing_and_is_closed_in_time() -> None:
    hello, rest = record()
    for end in range(len(hello) + len(rest) + 1):
        master = attacked()
        # What comes too early to be an answer is a fault too, so it comes in two reads.
        answer = master.hear(hello[:end]) if end else b""
        master.hear(rest[: max(0, end - len(hello))])
        wait_in_vain(master)
        assert_nothing_believed(master)
        assert master.sent == answer
        assert len(answer) <= MAX_UNPROVEN_BYTES


def test_a_recorded_session_in_one_read_is_closed_before_it_is_answered() -> None:
    master = attacked()
    assert master.hear(b"".join(record())) == b""
    assert_nothing_believed(master)


def test_a_session_with_any_byte_changed_on_the_way_proves_nothing() -> None:
    slave = in_step()
    proof = slave.hear(attacked().hear(slave.begin()))
    for place in range(len(proof)):
        master = attacked()
        answer = master.hear(in_step().begin())
        changed = bytearray(proof)
        changed[place] ^= 1 << place % 8
        master.hear(bytes(changed))
        wait_in_vain(master)
        assert_nothing_believed(master)
        assert master.sent == answer
    master = attacked()
    master.hear(in_step().begin())
    master.hear(proof)
    assert master.started is not None


def test_one_good_byte_a_second_is_closed_after_three_seconds() -> None:
    master = attacked()
    for second, byte in enumerate(record()[0][:3]):
        master.hear(bytes([byte]), second)
        assert master.closed is None
        assert master.link.next_tick_s == HELLO_S == 3
    wait_in_vain(master)
    assert master.closed is not None
    assert master.closed.kind is CloseKind.TOO_SLOW


def test_a_message_that_says_it_is_long_is_closed_at_its_head() -> None:
    head = bytearray(record()[0][:9])
    head[-2:] = (MAX_UNPROVEN_BYTES + 1).to_bytes(2)
    master = attacked()
    master.hear(bytes(head))
    assert_nothing_believed(master)


@pytest.mark.behaviour("S5-3", "S5-4")
@pytest.mark.parametrize(("log_start", "log_end"), [(0, -2), (-2, 10), (20, 10), (0, HUGE)])
def test_a_proven_slave_with_an_absurd_range_is_not_let_in(log_start: int, log_end: int) -> None:
    """It knows the secret, so the proof of its absurd message is right."""
    slave, master = in_step(), attacked()
    hello = slave.begin()
    answer = master.hear(hello)
    message = bytearray(slave.hear(answer)[:-PROOF_BYTES])
    _RANGE.pack_into(message, _RANGE_AT, log_start, log_end)
    proof = KEYS.prove_slave(slave_hello=hello, master_hello=answer, slave_proof=bytes(message))
    master.hear(bytes(message) + proof)
    assert_nothing_believed(master)


@pytest.mark.behaviour("S5-3")
def test_a_negative_ack_of_a_proven_slave_is_closed() -> None:
    master, _ = following()
    fields = _ACK.pack(2, AckKind.RECEIVED, -5)
    master.hear(fields + zlib.crc32(fields).to_bytes(4))
    assert master.acked == []
    assert master.closed is not None
    assert master.closed.kind is CloseKind.BAD_FRAME


def test_good_acks_before_a_lie_in_the_same_read_are_not_believed_either() -> None:
    master, _ = following()
    master.log.data += b"bytes that were sent"
    master.push()
    acks = [encode_ack(Ack(AckKind.RECEIVED, LogOffset(offset))) for offset in (END + 5, HUGE)]
    master.hear(b"".join(acks))
    assert master.acked == []
    assert master.closed is not None
    assert master.closed.kind is CloseKind.IMPOSSIBLE_ACK


def test_random_byte_strings_of_a_proven_slave_are_no_ack() -> None:
    for said in random_strings(1_000):
        master, _ = following()
        master.hear(said)
        assert master.acked == []
        assert master.link.acked_to == END


# Who lies to a slave.


def test_10000_random_answers_make_a_slave_say_no_more_than_hello() -> None:
    for said in random_strings(10_000):
        slave = in_step()
        hello = slave.begin()
        slave.hear(said)
        slave.tick(HELLO_S)
        assert slave.sent == hello
        assert slave.closed is not None


def test_a_master_of_rocketmq_is_not_taken_for_one_of_ours() -> None:
    slave = in_step()
    slave.begin()
    slave.hear(report(END) + bytes(4))
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.NO_HELLO


def test_a_verdict_that_somebody_else_makes_up_is_not_believed() -> None:
    slave = in_step()
    slave.hear(attacked().hear(slave.begin()))
    slave.hear(encode_verdict(Accepted(LogOffset(END)), KEYS.authentication) + bytes(PROOF_BYTES))
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.NOT_PROVEN


def data(log_offset: int, body: bytes) -> bytes:
    crc = zlib.crc32(body)
    return encode_data_header(log_offset, len(body), epoch=0, confirmed_to=0, body_crc=crc) + body


@pytest.mark.parametrize("size_bytes", [0, (4 << 20) + 1, (1 << 31) - 1, (1 << 32) - 5])
def test_a_body_that_says_it_is_too_long_is_closed_at_its_head(size_bytes: int) -> None:
    _, slave = following()
    head = bytearray(data(END, b"x")[:-1])
    head[1:5] = size_bytes.to_bytes(4)
    slave.hear(bytes(head))
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.BAD_FRAME


def test_a_frame_changed_on_the_way_is_not_appended() -> None:
    frame = data(END, b"bytes of the log")
    for place in range(len(frame)):
        _, slave = following()
        changed = bytearray(frame)
        changed[place] ^= 1 << place % 8
        slave.hear(bytes(changed))
        assert slave.log.data == LOG


def test_random_byte_strings_of_a_proven_master_are_no_log() -> None:
    for said in random_strings(1_000):
        _, slave = following()
        slave.hear(said)
        assert slave.log.data == LOG
        assert slave.link.acked_to == END
