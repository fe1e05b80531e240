"""Both ends of Tanist's link together, in memory: who is let in, what is believed, when it ends."""

import struct
import zlib

import pytest

from tanist.ha import master_link
from tanist.ha.actions import CloseKind, SendBytes, StartTransfer
from tanist.ha.keys import HaKeys
from tanist.ha.master_link import MasterState
from tanist.ha.slave_link import SlaveState
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import HELLO_S, NO_INCARNATION, Authentication, Refusal
from tanist.protocol.ha_link import (
    MAX_NOTE_BYTES,
    Ack,
    AckKind,
    Frame,
    FrameKind,
    Heartbeat,
    decode_frames,
    encode_ack,
    encode_data_header,
    encode_heartbeat,
    encode_note,
    encode_table_change,
)
from tests.support.links import (
    HEARTBEAT_S,
    INCARNATION,
    KEYS,
    SECRET,
    SILENCE_S,
    Bytes,
    MasterSide,
    SlaveSide,
    meet,
)

LOG = bytes(range(256)) * 10


def _transferring(slave_log: bytes = b"") -> tuple[MasterSide, SlaveSide]:
    master, slave = MasterSide(Bytes(LOG)), SlaveSide(Bytes(slave_log))
    meet(master, slave)
    assert master.link.state is MasterState.TRANSFER
    assert slave.link.state is SlaveState.TRANSFER
    return master, slave


@pytest.mark.behaviour("S1-77")
def test_an_empty_slave_gets_the_whole_log_and_acks_it() -> None:
    master, slave = _transferring()
    assert slave.log.data == LOG
    assert slave.incarnation == INCARNATION
    assert master.acked[-1] == len(LOG)
    assert master.started == StartTransfer(0, 0, 1, AckKind.RECEIVED)


def test_a_slave_goes_on_where_its_log_ends() -> None:
    master, slave = _transferring(LOG[:1000])
    assert slave.log.data == LOG
    assert master.started == StartTransfer(1000, 1000, 1, AckKind.RECEIVED)


def test_an_empty_slave_begins_at_the_first_byte_that_the_master_has() -> None:
    master, slave = MasterSide(Bytes(LOG, start=2048)), SlaveSide(Bytes())
    meet(master, slave)
    assert (slave.log.start, slave.log.data) == (2048, LOG)


def test_an_empty_slave_begins_with_the_last_file_if_it_is_told_to() -> None:
    master, slave = MasterSide(Bytes(LOG), is_last_file_first=True), SlaveSide(Bytes())
    meet(master, slave)
    assert (slave.log.start, slave.log.data) == (2048, LOG[2048:])
    # What it acks tells nothing of what lies before.
    assert master.started == StartTransfer(2048, 0, 1, AckKind.RECEIVED, held_from=2048)


def test_what_is_appended_later_follows() -> None:
    master, slave = _transferring()
    master.log.data += b"more"
    master.hear(slave.hear(master.push()))
    assert slave.log.data == LOG + b"more"
    assert master.acked[-1] == len(LOG) + 4


def test_changes_of_the_tables_come_in_order_with_the_log() -> None:
    _, slave = _transferring()
    slave.hear(encode_table_change(b"first") + encode_table_change(b"second"))
    assert slave.tables == [b"first", b"second"]


def _notes(side: MasterSide | SlaveSide, *notes: bytes, now_s: float = 0.0) -> bytes:
    """What a side sends to tell these."""
    out = b""
    for note in notes:
        for action in side.link.send_note(note, now_s=now_s):
            assert isinstance(action, SendBytes)
            out += action.data
    return out


def test_notes_go_both_ways_in_order_between_all_else() -> None:
    master, slave = _transferring()
    master.log.data += b"more"
    acked = slave.hear(_notes(master, b"one") + master.push() + _notes(master, b"two", b"three"))
    assert slave.notes == [b"one", b"two", b"three"]
    assert slave.log.data == LOG + b"more"
    master.hear(_notes(slave, b"four") + acked + _notes(slave, b"five"))
    assert master.notes == [b"four", b"five"]
    assert master.acked[-1] == len(LOG) + 4


def test_before_a_slave_is_let_in_and_after_its_link_nothing_is_noted() -> None:
    for master, slave in ((MasterSide(Bytes(LOG)), SlaveSide(Bytes())), _transferring()):
        if slave.link.is_transferring:
            master.link.on_lost()
            slave.link.on_lost()
        assert _notes(master, b"x") == _notes(slave, b"x") == b""


def test_a_note_before_the_proof_is_no_hello() -> None:
    master = MasterSide(Bytes(LOG))
    master.hear(encode_note(b"x"))
    assert master.notes == []
    assert master.closed is not None
    assert master.closed.kind is CloseKind.NO_HELLO


def test_a_note_says_as_much_as_a_heartbeat() -> None:
    master, slave = _transferring()
    master.hear(_notes(slave, b"x", now_s=4.0), 4.0)
    slave.hear(_notes(master, b"y", now_s=4.0), 4.0)
    for now_s, is_due in ((HEARTBEAT_S, False), (4.0 + HEARTBEAT_S, True)):
        assert bool(master.do(master.link.on_tick(log_end=len(LOG), now_s=now_s))) is is_due
        assert bool(slave.tick(now_s)) is is_due
    for now_s, is_silent in ((SILENCE_S, False), (4.0 + SILENCE_S, True)):
        master.do(master.link.on_tick(log_end=len(LOG), now_s=now_s))
        slave.tick(now_s)
        assert (master.closed is not None) is is_silent
        assert (slave.closed is not None) is is_silent


def test_the_largest_note_is_looked_at_when_it_is_whole_however_many_reads_bring_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []

    def decode(view: memoryview, allowed: frozenset[FrameKind]) -> tuple[list[Frame], int]:
        looked_at.append(len(view))
        return decode_frames(view, allowed)

    monkeypatch.setattr(master_link, "decode_frames", decode)
    master, slave = _transferring()
    looked_at.clear()
    note = bytes(range(256)) * (MAX_NOTE_BYTES // 256)
    stream = _notes(slave, b"first", note, b"last")
    for start in range(0, len(stream), 64):
        master.hear(stream[start : start + 64])
    assert master.notes == [b"first", note, b"last"]
    assert master.link._held == b""
    assert len(looked_at) <= 4


def test_a_master_holds_no_more_of_a_note_than_one_has() -> None:
    master, _ = _transferring()
    head = struct.pack(">BII", FrameKind.NOTE, MAX_NOTE_BYTES + 1, 0)
    master.hear(head)
    assert master.closed is not None
    assert master.closed.kind is CloseKind.BAD_FRAME
    assert str(MAX_NOTE_BYTES + 1) in master.closed.reason


def test_notes_before_a_lie_in_the_same_read_are_not_taken_either() -> None:
    master, slave = _transferring()
    master.hear(_notes(slave, b"x") + encode_ack(Ack(AckKind.RECEIVED, LogOffset(len(LOG) + 1))))
    assert master.notes == []
    assert master.closed is not None


@pytest.mark.parametrize(
    ("slave", "reason"),
    [
        (SlaveSide(Bytes(LOG + b"x"), incarnation=INCARNATION), Refusal.AHEAD_OF_MASTER),
        (SlaveSide(Bytes(LOG[:100]), incarnation=b"o" * 16), Refusal.OTHER_INCARNATION),
        (SlaveSide(Bytes(LOG[:99] + b"!"), incarnation=INCARNATION), Refusal.DIVERGED_LOG),
        (SlaveSide(Bytes(LOG[:99] + b"!")), Refusal.DIVERGED_LOG),
        (
            SlaveSide(Bytes(LOG[:100]), keys=HaKeys("broker-b", Authentication.SECRET, SECRET)),
            Refusal.WRONG_GROUP,
        ),
        (SlaveSide(Bytes(), broker_id=0), Refusal.UNKNOWN_REPLICA),
        (SlaveSide(Bytes(), file_bytes=512), Refusal.OTHER_FILE_SIZE),
    ],
    ids=[
        "ahead",
        "other incarnation",
        "diverged",
        "diverged, no incarnation",
        "wrong group",
        "the master's id",
        "other files",
    ],
)
@pytest.mark.behaviour("S5-8")
def test_a_log_that_is_no_prefix_is_refused_with_the_reason_on_both_sides(
    slave: SlaveSide, reason: Refusal
) -> None:
    master = MasterSide(Bytes(LOG))
    meet(master, slave)
    assert slave.link.refusal is not None
    assert slave.link.refusal.reason is reason
    for side in (master, slave):
        assert side.closed is not None
        assert side.closed.kind is CloseKind.REFUSED
        assert reason.name in side.closed.reason
    assert master.acked == []
    assert master.started is None
    assert LOG[:50] not in master.sent


@pytest.mark.known_bug("RMQ #3388")
def test_a_slave_below_the_masters_first_byte_is_refused() -> None:
    master = MasterSide(Bytes(LOG, start=2048))
    slave = SlaveSide(Bytes(LOG[:100]), incarnation=INCARNATION)
    meet(master, slave)
    assert slave.link.refusal is not None
    assert slave.link.refusal.reason is Refusal.BEFORE_LOG_START
    assert "rebuildSlave" in slave.link.refusal.text


def test_at_the_masters_first_byte_the_incarnation_alone_tells() -> None:
    for incarnation, is_in in ((INCARNATION, True), (NO_INCARNATION, False)):
        master = MasterSide(Bytes(LOG, start=2048))
        slave = SlaveSide(Bytes(LOG[:1024], start=1024), incarnation=incarnation)
        meet(master, slave)
        assert (slave.link.state is SlaveState.TRANSFER) is is_in


def test_neither_side_believes_another_secret() -> None:
    other = HaKeys("broker-a", Authentication.SECRET, b"another secret of enough bytes")
    master, slave = MasterSide(Bytes(LOG)), SlaveSide(Bytes(), keys=other)
    meet(master, slave)
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.NOT_PROVEN
    assert master.started is None
    # The slave has hung up, and the master's operator should know why.
    meant = master.link.on_lost()
    assert meant is not None
    assert meant.kind is CloseKind.NOT_PROVEN
    assert "haSecret" in meant.reason


def test_a_link_that_is_lost_while_it_works_means_nothing_else() -> None:
    master, _slave = _transferring()
    assert master.link.on_lost() is None


def test_a_side_without_a_secret_is_refused_by_one_with() -> None:
    plain = HaKeys("broker-a", Authentication.NONE)
    for master_keys, slave_keys in ((KEYS, plain), (plain, KEYS)):
        master, slave = MasterSide(Bytes(LOG), keys=master_keys), SlaveSide(Bytes(), keys=slave_keys)
        meet(master, slave)
        assert master.started is None
        assert master.closed is not None
        assert master.closed.kind is CloseKind.NO_HELLO
    master, slave = MasterSide(Bytes(LOG), keys=plain), SlaveSide(Bytes(), keys=plain)
    meet(master, slave)
    assert slave.log.data == LOG


@pytest.mark.parametrize(
    "frame",
    [
        encode_ack(Ack(AckKind.RECEIVED, LogOffset(len(LOG) + 1))),
        encode_ack(Ack(AckKind.RECEIVED, LogOffset(len(LOG) - 1))),
        encode_ack(Ack(AckKind.FLUSHED, LogOffset(len(LOG)))),
        encode_heartbeat(Heartbeat(LogOffset(len(LOG) + 1), 0, LogOffset(0))),
    ],
    ids=["beyond the end", "going back", "of another kind", "a heartbeat beyond the end"],
)
@pytest.mark.behaviour("S5-2")
def test_what_a_slave_can_not_hold_is_not_believed(frame: bytes) -> None:
    master, _ = _transferring()
    before = list(master.acked)
    master.hear(frame)
    assert master.acked == before
    assert master.closed is not None
    assert master.closed.kind is CloseKind.IMPOSSIBLE_ACK


def test_a_slave_acks_only_what_it_was_sent_though_the_log_has_more() -> None:
    master, _ = _transferring()
    master.log.data += b"not sent yet"
    master.link.on_bytes(encode_ack(Ack(AckKind.RECEIVED, LogOffset(master.log.end))), now_s=0.0)
    assert master.link.state is MasterState.CLOSED


@pytest.mark.behaviour("S1-53")
def test_of_several_acks_in_one_read_the_newest_counts() -> None:
    master, slave = _transferring()
    master.log.data += b"abcdef"
    slave.hear(master.push())
    acks = [encode_ack(Ack(AckKind.RECEIVED, LogOffset(len(LOG) + n))) for n in (1, 3, 6)]
    before = len(master.acked)
    master.hear(b"".join(acks))
    assert master.acked[before:] == [len(LOG) + 6]


@pytest.mark.behaviour("S1-52")
def test_an_ack_that_comes_byte_by_byte_is_understood() -> None:
    master, slave = _transferring()
    master.log.data += b"abcdef"
    slave.hear(master.push())
    for byte in encode_ack(Ack(AckKind.RECEIVED, LogOffset(len(LOG) + 6))):
        master.hear(bytes([byte]))
    assert master.acked[-1] == len(LOG) + 6


@pytest.mark.behaviour("S1-95", "S2-36")
@pytest.mark.parametrize("log_offset", [0, len(LOG) - 1, len(LOG) + 1])
def test_a_slave_takes_bytes_only_at_its_own_end(log_offset: int) -> None:
    _, slave = _transferring()
    header = encode_data_header(log_offset, 4, epoch=0, confirmed_to=0, body_crc=zlib.crc32(b"evil"))
    slave.hear(header + b"evil")
    assert slave.log.data == LOG
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.WRONG_OFFSET
    assert f"SLAVE: {len(LOG)} MASTER: {log_offset}" in slave.closed.reason


def test_what_is_no_record_is_not_appended_though_a_proven_master_sends_it() -> None:
    master, slave = MasterSide(Bytes(b"no record, but of a master")), SlaveSide(Bytes(b""), walks=True)
    meet(master, slave)
    assert slave.link.state is SlaveState.CLOSED
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.BAD_FRAME
    assert "no record begins with" in slave.closed.reason
    assert slave.log.end == 0


def test_the_frames_before_a_wrong_one_are_taken() -> None:
    _, slave = _transferring()
    good = encode_data_header(len(LOG), 4, epoch=0, confirmed_to=0, body_crc=zlib.crc32(b"good")) + b"good"
    slave.hear(good + good)
    assert slave.log.data == LOG + b"good"
    assert slave.closed is not None


@pytest.mark.behaviour("S1-97")
def test_a_heartbeat_appends_nothing_and_is_checked_like_any_frame() -> None:
    _, slave = _transferring()
    assert slave.hear(encode_heartbeat(Heartbeat(LogOffset(len(LOG)), 0, LogOffset(0)))) == b""
    assert slave.log.data == LOG
    slave.hear(encode_heartbeat(Heartbeat(LogOffset(len(LOG) - 1), 0, LogOffset(0))))
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.WRONG_OFFSET


@pytest.mark.behaviour("S1-64", "S1-82")
def test_both_sides_send_a_heartbeat_after_five_quiet_seconds() -> None:
    master, slave = _transferring()
    assert master.do(master.link.on_tick(log_end=len(LOG), now_s=HEARTBEAT_S - 0.1), 4.9) == b""
    beat = master.do(master.link.on_tick(log_end=len(LOG), now_s=HEARTBEAT_S), HEARTBEAT_S)
    assert beat == encode_heartbeat(Heartbeat(LogOffset(len(LOG)), 0, LogOffset(len(LOG))))
    assert slave.tick(HEARTBEAT_S - 0.1) == b""
    assert slave.tick(HEARTBEAT_S) == encode_heartbeat(Heartbeat(LogOffset(len(LOG)), 0, LogOffset(0)))


@pytest.mark.known_bug("RMQ #1082")
def test_a_link_without_traffic_is_kept_for_as_long_as_both_ends_are_there() -> None:
    master, slave = _transferring()
    for now_s in range(1, 61):
        to_slave = master.do(master.link.on_tick(log_end=len(LOG), now_s=now_s), now_s)
        to_master = slave.tick(now_s)
        if to_slave:
            to_master += slave.hear(to_slave, now_s)
        if to_master:
            master.hear(to_master, now_s)
    assert (master.closed, slave.closed) == (None, None)
    assert (master.link.state, slave.link.state) == (MasterState.TRANSFER, SlaveState.TRANSFER)


@pytest.mark.behaviour("S1-46", "S1-89", "S2-38")
def test_each_side_ends_the_link_when_the_other_is_silent_for_twenty_seconds() -> None:
    master, slave = _transferring()
    master.hear(encode_heartbeat(Heartbeat(LogOffset(len(LOG)), 0, LogOffset(0))), 10.0)
    master.do(master.link.on_tick(log_end=len(LOG), now_s=10 + SILENCE_S - 0.1))
    assert master.closed is None
    master.do(master.link.on_tick(log_end=len(LOG), now_s=10 + SILENCE_S))
    assert master.closed is not None
    assert master.closed.kind is CloseKind.SILENT
    # What a slave itself sends does not count.
    slave.tick(HEARTBEAT_S)
    slave.tick(SILENCE_S)
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.SILENT


@pytest.mark.behaviour("S5-20")
def test_who_does_not_prove_itself_in_time_is_dropped() -> None:
    silent = MasterSide(Bytes(LOG))
    silent.do(silent.link.on_tick(log_end=len(LOG), now_s=HELLO_S))
    half = MasterSide(Bytes(LOG))
    half.hear(SlaveSide(Bytes()).begin(), 1.0)
    half.do(half.link.on_tick(log_end=len(LOG), now_s=HELLO_S - 0.01))
    assert half.closed is None
    half.do(half.link.on_tick(log_end=len(LOG), now_s=HELLO_S))
    for master in (silent, half):
        assert master.closed is not None
        assert master.closed.kind is CloseKind.TOO_SLOW


def test_a_recorded_session_proves_nothing_later() -> None:
    master, slave = _transferring()
    again = MasterSide(Bytes(LOG), nonce=b"n" * 16)
    hello_bytes = len(SlaveSide(Bytes()).begin())
    again.hear(slave.sent[:hello_bytes])
    again.hear(slave.sent[hello_bytes:])
    assert again.started is None
    assert again.acked == []
    assert again.closed is not None
    fresh = SlaveSide(Bytes(), nonce=b"t" * 16)
    fresh.begin()
    fresh.hear(master.sent)
    assert fresh.log.data == b""
    assert fresh.closed is not None
    assert fresh.closed.kind is CloseKind.NOT_PROVEN


@pytest.mark.behaviour("S5-17", "S5-18")
def test_the_telnet_slip_is_closed_at_its_first_byte() -> None:
    master = MasterSide(Bytes(LOG))
    assert master.hear(b"9") == b""
    assert master.closed is not None
    assert master.closed.kind is CloseKind.NO_HELLO
    assert master.hear(b"99999999\r\n") == b""
    assert master.acked == []
