"""The famous attacks, played on the pure end of a master's link: nothing is believed, nothing leaves.

What an attack may get out of a master is its hello, which says how long the log is and proves the master.
"""

import struct
import zlib
from collections.abc import Iterable
from typing import Final

import pytest

from tanist.ha.actions import CloseKind, CloseLink, MasterAction, StartTransfer, TakeAck
from tanist.ha.master_link import HELLO_S, MasterLink
from tanist.ha.slave_link import SlaveLink
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import MAGIC, MAX_UNPROVEN_BYTES, PROOF_BYTES
from tanist.protocol.ha_link import Ack, AckKind, Heartbeat, encode_ack, encode_heartbeat
from tests.support.ha_attacks import HUGE, TELNET_SLIP, random_strings
from tests.support.ha_ends import KEYS, LOG, START, bytes_of, let_in, master_link, meet, slave_link

# kind, ack_kind, log_offset
_ACK: Final = struct.Struct(">BBq")
# log_start, log_end: in a SlaveProof, behind its head and incarnation
_RANGE: Final = struct.Struct(">qq")
_RANGE_AT: Final = 9 + 16


def record() -> list[bytes]:
    """What a slave said that was let in, and then acked."""
    said, _ = meet(slave_link(), master_link(b"then, not now..."))
    return [*said, encode_ack(Ack(AckKind.RECEIVED, LogOffset(len(LOG))))]


def play(master: MasterLink, pieces: Iterable[bytes], *, now_s: float = 0.1) -> list[MasterAction]:
    """All that the master does about what comes."""
    return [action for piece in pieces for action in master.on_bytes(piece, now_s=now_s)]


def play_to_the_end(master: MasterLink, pieces: Iterable[bytes]) -> list[MasterAction]:
    """The same, and what it does when nothing more comes."""
    return play(master, pieces) + master.on_tick(log_end=len(LOG), now_s=HELLO_S)


def assert_nothing_believed(actions: Iterable[MasterAction]) -> None:
    assert not [action for action in actions if isinstance(action, StartTransfer | TakeAck)]


def kinds(actions: Iterable[MasterAction]) -> list[CloseKind]:
    return [action.kind for action in actions if isinstance(action, CloseLink)]


@pytest.mark.behaviour("S5-17")
@pytest.mark.behaviour("S5-18")
def test_the_telnet_slip_is_closed_at_its_first_byte() -> None:
    assert struct.unpack(">q", TELNET_SLIP[:8]) == (4123389851770370361,)
    actions = master_link().on_bytes(TELNET_SLIP[:1], now_s=0.1)
    assert actions == [CloseLink(CloseKind.NO_HELLO, "39 does not open a hello")]


@pytest.mark.behaviour("S5-20")
def test_10000_random_byte_strings_get_not_a_byte() -> None:
    for said in random_strings(10_000):
        master = master_link()
        actions = play_to_the_end(master, [said])
        # One that is the first byte of a hello could become one, for three seconds.
        assert kinds(actions) == [CloseKind.TOO_SLOW if MAGIC.startswith(said) else CloseKind.NO_HELLO]
        assert bytes_of(actions) == b""


def test_10000_random_byte_strings_behind_the_magic_get_a_hello_at_most() -> None:
    for said in random_strings(10_000, max_bytes=2 * MAX_UNPROVEN_BYTES):
        master = master_link()
        actions = play(master, [MAGIC + said])
        assert_nothing_believed(actions)
        assert bytes_of(actions) == b""


def test_10000_random_proofs_prove_nothing() -> None:
    hello, proof, _ = record()
    for said in random_strings(10_000, max_bytes=len(proof)):
        master = master_link()
        master.on_bytes(hello, now_s=0.1)
        actions = play_to_the_end(master, [proof[: -len(said)] + said])
        assert_nothing_believed(actions)
        assert bytes_of(actions) == b""
        assert len(kinds(actions)) == 1


def test_every_prefix_of_a_recorded_session_proves_nothing_and_is_closed_in_time() -> None:
    session = b"".join(record())
    hello_bytes = len(record()[0])
    for end in range(len(session)):
        master = master_link()
        # What comes too early for an answer is a fault too, so it comes in two reads.
        actions = play_to_the_end(master, [session[: min(end, hello_bytes)], session[hello_bytes:end]])
        assert_nothing_believed(actions)
        assert len(kinds(actions)) == 1
        assert len(bytes_of(actions)) < MAX_UNPROVEN_BYTES


@pytest.mark.behaviour("S5-19")
def test_a_replayed_session_proves_nothing() -> None:
    master = master_link()
    actions = play(master, record())
    assert_nothing_believed(actions)
    assert kinds(actions) == [CloseKind.NOT_PROVEN]


def test_a_replayed_session_in_one_read_is_closed_before_it_is_answered() -> None:
    actions = play(master_link(), [b"".join(record())])
    assert kinds(actions) == [CloseKind.NO_HELLO]
    assert bytes_of(actions) == b""


def test_a_session_with_any_bit_changed_on_the_way_proves_nothing() -> None:
    for place in range(len(record()[1])):
        master, slave = master_link(), slave_link()
        answer = bytes_of(play(master, [bytes_of(slave.on_connected())]))
        proof = bytearray(bytes_of(slave.on_bytes(memoryview(answer), now_s=0.2)[0]))
        proof[place] ^= 1 << place % 8
        actions = play(master, [bytes(proof)])
        assert_nothing_believed(actions)
        assert bytes_of(actions) == b""


LYING_ACKS: Final = {
    "beyond what was sent": len(LOG) + 1,
    "2^62": HUGE,
    "back": len(LOG) - 1,
    "0": 0,
}


@pytest.mark.behaviour("S5-2")
@pytest.mark.behaviour("S5-4")
@pytest.mark.parametrize("offset", LYING_ACKS.values(), ids=LYING_ACKS.keys())
def test_a_proven_slave_that_acks_what_it_can_not_hold_is_closed(offset: int) -> None:
    for frame in (
        encode_ack(Ack(AckKind.RECEIVED, LogOffset(offset))),
        encode_heartbeat(Heartbeat(LogOffset(offset), 0, LogOffset(0))),
    ):
        master = let_in()
        actions = play(master, [frame])
        assert_nothing_believed(actions)
        assert kinds(actions) == [CloseKind.IMPOSSIBLE_ACK]
        assert master.acked_to == len(LOG)


@pytest.mark.behaviour("S5-3")
def test_a_negative_ack_of_a_proven_slave_is_closed() -> None:
    fields = _ACK.pack(2, AckKind.RECEIVED, -5)
    actions = play(let_in(), [fields + zlib.crc32(fields).to_bytes(4)])
    assert_nothing_believed(actions)
    assert kinds(actions) == [CloseKind.BAD_FRAME]


def test_an_ack_of_what_was_not_sent_yet_is_closed_though_the_log_has_it() -> None:
    master = let_in(log_end=0)
    assert master.sent_to == START
    actions = play(master, [encode_ack(Ack(AckKind.RECEIVED, LogOffset(START + 1)))])
    assert kinds(actions) == [CloseKind.IMPOSSIBLE_ACK]


def test_good_acks_before_a_lie_in_the_same_read_are_not_believed_either() -> None:
    master = let_in(log_end=0)
    master.on_sent(len(LOG), now_s=0.4)
    good = encode_ack(Ack(AckKind.RECEIVED, LogOffset(START + 10)))
    actions = play(master, [good + encode_ack(Ack(AckKind.RECEIVED, LogOffset(HUGE)))])
    assert_nothing_believed(actions)
    assert kinds(actions) == [CloseKind.IMPOSSIBLE_ACK]


def test_random_byte_strings_of_a_proven_slave_are_no_ack() -> None:
    for said in random_strings(1_000):
        master = let_in()
        assert_nothing_believed(play(master, [said]))
        assert master.acked_to == len(LOG)


@pytest.mark.behaviour("S5-20")
def test_silence_is_closed_after_three_seconds() -> None:
    master = master_link()
    assert master.next_tick_s == HELLO_S == 3.0
    assert master.on_tick(log_end=len(LOG), now_s=2.9) == []
    assert master.on_tick(log_end=len(LOG), now_s=3.0) == [
        CloseLink(CloseKind.TOO_SLOW, "no proof within 3 s")
    ]


def test_one_good_byte_a_second_is_closed_after_three_seconds() -> None:
    master = master_link()
    for second, byte in enumerate(record()[0][:3]):
        assert master.on_bytes(bytes([byte]), now_s=second) == []
    assert kinds(master.on_tick(log_end=len(LOG), now_s=master.next_tick_s)) == [CloseKind.TOO_SLOW]
    assert master.next_tick_s == 3.0


def test_a_slave_that_says_hello_and_then_nothing_is_closed_after_three_seconds() -> None:
    master = master_link()
    master.on_bytes(record()[0], now_s=2.5)
    assert kinds(master.on_tick(log_end=len(LOG), now_s=3.0)) == [CloseKind.TOO_SLOW]


def test_a_message_that_says_it_is_long_is_closed_at_its_head() -> None:
    head = bytearray(record()[0][:9])
    head[-2:] = (MAX_UNPROVEN_BYTES + 1).to_bytes(2)
    assert kinds(play(master_link(), [bytes(head)])) == [CloseKind.NO_HELLO]


REFUSED: Final = {
    "beyond the end": (
        slave_link(len(LOG) + 1),
        "AHEAD_OF_MASTER: it has 1 bytes more than the master's 4096",
    ),
    "2^62": (slave_link(HUGE), "AHEAD_OF_MASTER: it has "),
    "below the start": (slave_link(START - 1, log_start=0), "BEFORE_LOG_START: the master has deleted what"),
    "of another incarnation": (
        slave_link(incarnation=b"r" * 16),
        "OTHER_INCARNATION: its log is of another master, or of one redeployed",
    ),
    "of other bytes": (slave_link(2000, crc_before=lambda _end, _size: 1), "DIVERGED_LOG: the last "),
}


@pytest.mark.behaviour("S5-8")
@pytest.mark.behaviour("S5-9")
@pytest.mark.parametrize(("slave", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_proven_slave_whose_log_is_no_prefix_is_refused_on_both_sides(
    slave: SlaveLink, reason: str
) -> None:
    master = master_link()
    _, actions = meet(slave, master)
    assert_nothing_believed(actions)
    closing = actions[-1]
    assert isinstance(closing, CloseLink)
    assert closing.kind is CloseKind.REFUSED
    assert closing.reason.startswith(reason)
    assert closing.reason.endswith(": run tanist admin rebuildSlave")
    at_slave, _ = slave.on_bytes(memoryview(bytes_of(actions)), now_s=0.4)
    assert at_slave == [closing]


@pytest.mark.parametrize(("log_start", "log_end"), [(0, -2), (-2, 10), (20, 10)])
def test_a_proven_slave_with_an_absurd_range_is_closed(log_start: int, log_end: int) -> None:
    """It knows the secret, so the proof of the absurd message is right."""
    slave, master = slave_link(), master_link()
    hello = bytes_of(slave.on_connected())
    answer = bytes_of(master.on_bytes(hello, now_s=0.1))
    message = bytearray(bytes_of(slave.on_bytes(memoryview(answer), now_s=0.2)[0])[:-PROOF_BYTES])
    _RANGE.pack_into(message, _RANGE_AT, log_start, log_end)
    proof = KEYS.prove_slave(slave_hello=hello, master_hello=answer, slave_proof=bytes(message))
    actions = play(master, [bytes(message) + proof])
    assert kinds(actions) == [CloseKind.NO_HELLO]
    assert_nothing_believed(actions)
    assert bytes_of(actions) == b""
