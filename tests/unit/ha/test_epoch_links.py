"""Links between replicas whose master a controller names: epochs, alignment, and what is confirmed."""

import zlib

import pytest

from tanist.ha.actions import CloseKind
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    ALIGN_S,
    HELLO_S,
    MAX_EPOCHS,
    AlignFirst,
    Authentication,
    Refusal,
    encode_verdict,
)
from tanist.protocol.ha_link import (
    FROM_MASTER,
    Data,
    Heartbeat,
    decode_frames,
    encode_data_header,
    encode_heartbeat,
)
from tests.support.links import (
    FILE_BYTES,
    HEARTBEAT_S,
    INCARNATION,
    KEYS,
    Bytes,
    MasterSide,
    SlaveSide,
    epochs_of,
    meet,
)

LOG = bytes(range(250)) * 4


def _master(*epochs: tuple[int, int], log: bytes = LOG, confirmed_to: int = 0, start: int = 0) -> MasterSide:
    """The master of the last of these epochs."""
    history = epochs_of(*epochs)
    assert history.last is not None
    log_bytes = Bytes(log, start)
    return MasterSide(log_bytes, epoch=history.last.epoch, epochs=history, confirmed_to=confirmed_to)


def _slave(
    *epochs: tuple[int, int], log: bytes = b"", epoch: int = 1, known_confirmed_to: int = 0, start: int = 0
) -> SlaveSide:
    return SlaveSide(
        Bytes(log, start),
        incarnation=INCARNATION,
        epoch=epoch,
        epochs=epochs_of(*epochs),
        known_confirmed_to=known_confirmed_to,
    )


def _met(master: MasterSide, slave: SlaveSide) -> None:
    meet(master, slave)
    assert slave.closed is None
    assert master.closed is None
    assert slave.log.data == master.log.data[slave.log.start - master.log.start :]
    assert master.acked[-1:] in ([master.log.end], [])


def _data(log_offset: int, body: bytes, *, epoch: int, confirmed_to: int = 0) -> bytes:
    crc = zlib.crc32(body)
    return (
        encode_data_header(log_offset, len(body), epoch=epoch, confirmed_to=confirmed_to, body_crc=crc) + body
    )


# Who is followed


def test_a_slave_follows_no_master_of_an_older_epoch_and_that_one_learns_it() -> None:
    master, slave = _master((1, 0), (3, 500)), _slave(epoch=4)
    meet(master, slave)
    assert master.newer_epoch == 4
    assert master.started is None
    for end in (master, slave):
        assert end.closed is not None
        assert end.closed.kind is CloseKind.REFUSED
        assert end.closed.reason.startswith("STALE_EPOCH: the master is of epoch 3")
    assert slave.link.refusal is not None
    assert slave.link.refusal.reason is Refusal.STALE_EPOCH
    assert slave.log.data == b""


def test_a_slave_that_a_controller_guides_follows_no_master_with_a_fixed_role() -> None:
    master, slave = MasterSide(Bytes(LOG)), _slave(epoch=1)
    meet(master, slave)
    assert slave.closed is not None
    assert slave.closed.reason.startswith("STALE_EPOCH")
    assert master.newer_epoch is None
    assert master.started is None


def test_a_slave_with_a_fixed_role_is_served_as_ever() -> None:
    master, slave = _master((1, 0), (3, 500)), SlaveSide(Bytes(LOG[:300]), incarnation=INCARNATION)
    _met(master, slave)
    assert (slave.begun, slave.cuts, slave.confirmed) == ([], [], [])


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_slave_that_has_heard_of_no_newer_master_is_served(epoch: int) -> None:
    _met(_master((1, 0), (3, 500)), _slave(epoch=epoch))


# Epochs


@pytest.mark.behaviour("S2-2", "S2-28", "S2-33", "S2-34")
def test_an_empty_slave_learns_every_epoch_with_its_bytes() -> None:
    master, slave = _master((1, 0), (2, 10), (5, 400), (8, len(LOG))), _slave()
    _met(master, slave)
    assert slave.begun == [(1, 0), (2, 10), (5, 400)]
    master.log.data += b"more"
    slave.hear(master.push())
    assert slave.begun[-1] == (8, len(LOG))
    assert slave.epochs.epochs == master.epochs.epochs


@pytest.mark.behaviour("S2-32", "S2-33")
def test_no_frame_has_bytes_of_two_epochs_and_each_says_whose_they_are() -> None:
    master, slave = _let_in((2, 10), (5, 14), (7, 400))
    sent = master.push()
    frames, _ = decode_frames(memoryview(sent), FROM_MASTER)
    spans = [
        (frame.epoch, frame.log_offset, frame.log_offset + len(frame.body))
        for frame in frames
        if isinstance(frame, Data)
    ]
    # Of the first bytes, from before the first epoch, nobody knows who wrote them.
    assert spans[:3] == [(0, 0, 10), (2, 10, 14), (5, 14, 114)]
    assert [span for span in spans if span[0] == 7] == [(7, at, at + 100) for at in range(400, 1000, 100)]
    assert max(end for epoch, _, end in spans if epoch == 5) == 400
    slave.hear(sent)
    assert slave.log.data == LOG


def _let_in(*epochs: tuple[int, int]) -> tuple[MasterSide, SlaveSide]:
    """An empty slave that is about to be sent the log of a master with these epochs."""
    master, slave = _master(*epochs, log=b""), _slave()
    meet(master, slave)
    assert slave.link.is_transferring
    master.log.data = LOG
    return master, slave


@pytest.mark.behaviour("S2-43")
@pytest.mark.parametrize(("is_last_file_first", "start"), [(True, FILE_BYTES), (False, 0)])
def test_a_slave_that_begins_late_knows_where_the_epoch_of_its_first_byte_began(
    is_last_file_first: bool, start: int
) -> None:
    log = LOG + LOG
    master = _master((1, 0), (4, 300), log=log)
    master.is_last_file_first = is_last_file_first
    slave = _slave()
    _met(master, slave)
    assert slave.log.start == start
    assert slave.begun == ([(4, 300)] if is_last_file_first else [(1, 0), (4, 300)])


def test_a_log_from_fixed_roles_gets_the_epochs_of_what_it_holds() -> None:
    master, slave = _master((3, 200), (4, 300), (6, 900)), _slave(log=LOG[:700])
    _met(master, slave)
    assert slave.cuts == []
    assert slave.epochs.epochs == master.epochs.epochs


@pytest.mark.parametrize("first_bytes", [700, 0])
def test_a_log_from_fixed_roles_that_is_not_the_masters_is_refused(first_bytes: int) -> None:
    master, slave = _master((3, 200)), _slave(log=LOG[:first_bytes] + b"other")
    meet(master, slave)
    assert slave.link.refusal is not None
    assert slave.link.refusal.reason is Refusal.DIVERGED_LOG
    assert slave.cuts == []


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (_data(1000, b"abc", epoch=4), "epoch 4"),
        (_data(1000, b"abc", epoch=3), "epoch 3"),
        (_data(1000, b"abc", epoch=0), "epoch 0"),
        (_data(1000, b"abc", epoch=6), "epoch 6"),
        (encode_heartbeat(Heartbeat(LogOffset(1000), 4, LogOffset(0))), "a heartbeat of epoch 4"),
    ],
    ids=["unknown", "before", "none", "later", "heartbeat"],
)
def test_what_is_of_another_epoch_than_the_master_told_is_not_taken(frame: bytes, reason: str) -> None:
    master, slave = _master((1, 0), (3, 500), (5, 600)), _slave()
    _met(master, slave)
    slave.hear(frame)
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.BAD_FRAME
    assert reason in slave.closed.reason
    assert slave.log.data == LOG


def test_bytes_that_reach_into_the_next_epoch_are_not_taken() -> None:
    _, slave = _let_in((1, 0), (3, 500))
    slave.hear(_data(0, LOG[:501], epoch=1))
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.BAD_FRAME
    assert slave.log.data == b""


# Alignment


@pytest.mark.behaviour("S2-25", "S2-29")
@pytest.mark.parametrize(
    ("own", "own_log", "master_epochs", "point"),
    [
        # It was master when nobody followed.
        (((1, 0), (2, 600)), LOG[:600] + b"lost" * 10, ((1, 0), (3, 600)), 600),
        (((1, 0), (2, 600)), LOG[:600] + b"lost" * 10, ((1, 0), (3, 580)), 580),
        # It had more of an epoch than who is master now.
        (((1, 0),), LOG[:700] + b"lost", ((1, 0), (3, 700)), 700),
        # Its last epoch wrote nothing: the bytes stay, the epoch goes.
        (((1, 0), (2, 600)), LOG[:600], ((1, 0), (3, 700)), 600),
    ],
)
def test_a_slave_cuts_what_only_it_has_and_goes_on_from_there(
    own: tuple[tuple[int, int], ...], own_log: bytes, master_epochs: tuple[tuple[int, int], ...], point: int
) -> None:
    master, slave = _master(*master_epochs), _slave(*own, log=own_log)
    _met(master, slave)
    assert slave.cuts == [point]
    assert master.started is not None
    assert (master.started.start_offset, master.started.requested_to) == (point, point)
    assert slave.epochs.epochs == master.epochs.epochs


@pytest.mark.parametrize(
    ("own", "log_end"), [((), 0), (((1, 0),), 400), (((1, 0), (3, 500)), 500), (((1, 0), (3, 500)), 1000)]
)
def test_a_slave_whose_log_is_the_beginning_of_the_masters_cuts_nothing(
    own: tuple[tuple[int, int], ...], log_end: int
) -> None:
    master, slave = _master((1, 0), (3, 500)), _slave(*own, log=LOG[:log_end])
    _met(master, slave)
    assert slave.cuts == []
    assert slave.epochs.epochs == master.epochs.epochs


def test_an_empty_slave_drops_an_epoch_that_it_never_wrote_in() -> None:
    master, slave = _master((1, 0), (4, 500)), _slave((3, 0))
    _met(master, slave)
    assert slave.cuts == [0]
    assert slave.epochs.epochs == master.epochs.epochs


@pytest.mark.behaviour("S2-27")
def test_without_an_epoch_in_common_nothing_is_cut_and_nothing_taken() -> None:
    master, slave = _master((1, 200), (2, 500)), _slave((1, 100), (3, 600), log=LOG[:700])
    meet(master, slave)
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.REFUSED
    assert "no epoch in common" in slave.closed.reason
    assert (slave.cuts, slave.log.data) == ([], LOG[:700])
    assert master.started is None


def test_what_is_confirmed_is_never_cut() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:700], known_confirmed_to=601)
    meet(master, slave)
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.REFUSED
    assert "confirmed up to 601" in slave.closed.reason
    assert slave.cuts == []
    again = _slave((1, 0), log=LOG[:700], known_confirmed_to=600)
    _met(_master((1, 0), (3, 600)), again)
    assert again.cuts == [600]


def test_a_log_that_agrees_only_before_its_own_first_byte_is_not_cut() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[700:800], start=700)
    meet(master, slave)
    assert slave.closed is not None
    assert "begins at 700" in slave.closed.reason
    assert slave.cuts == []


def test_a_slave_is_told_that_what_it_lacks_was_deleted_though_no_epoch_is_common_any_more() -> None:
    master = _master((3, 600), (4, 800), log=LOG[700:], start=700)
    slave = _slave((1, 0), log=LOG[:500])
    meet(master, slave)
    assert slave.link.refusal is not None
    assert slave.link.refusal.reason is Refusal.BEFORE_LOG_START
    assert slave.cuts == []


def test_logs_whose_epochs_agree_and_whose_bytes_differ_are_found_out() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:599] + b"!" + b"lost")
    meet(master, slave)
    assert slave.cuts == [600]
    assert slave.link.refusal is not None
    assert slave.link.refusal.reason is Refusal.DIVERGED_LOG
    assert master.started is None


def test_a_log_of_another_incarnation_is_refused_before_anything_is_cut() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), (2, 600), log=LOG[:700])
    master.incarnation = b"j" * 16
    meet(master, slave)
    assert slave.link.refusal is not None
    assert slave.link.refusal.reason is Refusal.OTHER_INCARNATION
    assert slave.cuts == []


@pytest.mark.behaviour("S2-41")
@pytest.mark.parametrize("count", [1001, 5000, 3 * MAX_EPOCHS])
def test_so_many_epochs_are_told_and_the_newest_decide(count: int) -> None:
    assert MAX_EPOCHS >= 5000
    # Each wrote a byte.
    log = bytes(number % 251 for number in range(count))
    history = EpochHistory(Epoch(number + 1, LogOffset(number)) for number in range(count))
    master = MasterSide(Bytes(log), epoch=count, epochs=history)
    slave = SlaveSide(
        Bytes(log[:-10] + b"lost"),
        incarnation=INCARNATION,
        epoch=count,
        epochs=EpochHistory([*history.epochs[:-10], Epoch(count - 5, LogOffset(count - 10))]),
    )
    _met(master, slave)
    assert slave.cuts == [count - 10]
    assert slave.epochs.epochs == history.epochs


@pytest.mark.behaviour("S2-7")
def test_the_master_sends_nothing_of_its_log_before_the_slave_is_aligned() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), (2, 600), log=LOG[:600] + b"lost")
    hello = slave.begin()
    proof = slave.hear(master.hear(hello))
    epochs = master.hear(proof)
    assert master.link.max_body_bytes > 0
    assert master.is_slave_trusted
    assert not master.link.is_transferring
    assert master.push() == b""
    again = slave.hear(epochs)
    assert slave.cuts == [600]
    assert not slave.link.is_transferring
    slave.hear(master.hear(again))
    assert slave.log.data == LOG


@pytest.mark.behaviour("S2-35")
@pytest.mark.parametrize("heard_messages", [1, 2])
def test_what_comes_before_its_time_is_not_taken(heard_messages: int) -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:700])
    said = slave.begin()
    for _ in range(heard_messages):
        said = slave.hear(master.hear(said))
    slave.hear(_data(slave.log.end, b"early", epoch=1))
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.NO_HELLO
    assert slave.log.data in (LOG[:700], LOG[:600])


def test_each_byte_of_the_hello_may_come_alone() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), (2, 600), log=LOG[:600] + b"lost")
    to_master = slave.begin()
    while to_master:
        to_slave = b"".join(master.hear(bytes([byte])) for byte in to_master)
        to_master = b"".join(slave.hear(bytes([byte])) for byte in to_slave)
    assert slave.log.data == LOG
    assert slave.cuts == [600]


def test_a_slave_may_take_its_time_to_cut_and_no_more() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:700])
    proof = slave.hear(master.hear(slave.begin()))
    master.do(master.link.on_tick(log_end=1000, now_s=HELLO_S - 0.1))
    epochs = master.hear(proof, 2.0)
    for now_s in (HELLO_S, 2.0 + ALIGN_S - 0.1):
        master.do(master.link.on_tick(log_end=1000, now_s=now_s))
        assert master.closed is None
    assert master.link.next_tick_s == 2.0 + ALIGN_S
    master.do(master.link.on_tick(log_end=1000, now_s=2.0 + ALIGN_S))
    assert master.closed is not None
    assert master.closed.kind is CloseKind.TOO_SLOW
    slave.hear(epochs, 2.5)
    slave.tick(2.0 + ALIGN_S)
    assert slave.closed is None
    slave.tick(2.5 + ALIGN_S)
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.TOO_SLOW


@pytest.mark.parametrize("step", ["epochs", "proof", "verdict"])
def test_a_bit_changed_while_both_align_ends_the_link(step: str) -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:700])
    epochs = master.hear(slave.hear(master.hear(slave.begin())))
    if step == "epochs":
        slave.hear(_flipped(epochs))
        assert slave.cuts == []
    else:
        proof = slave.hear(epochs)
        verdict = master.hear(_flipped(proof) if step == "proof" else proof)
        if step == "verdict":
            # The verdict alone: frames have checksums, and no proof.
            slave.hear(_flipped(verdict[:51]))
    found = master.closed if step == "proof" else slave.closed
    assert found is not None
    assert found.kind is CloseKind.NOT_PROVEN


def _flipped(message: bytes) -> bytes:
    return message[:-1] + bytes([message[-1] ^ 1])


def test_the_second_proof_with_any_byte_changed_proves_nothing() -> None:
    place, proof = 0, b"?"
    while place < len(proof):
        master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:700])
        changed = bytearray(slave.hear(master.hear(slave.hear(master.hear(slave.begin())))))
        proof = bytes(changed)
        changed[place] ^= 1 << place % 8
        master.hear(bytes(changed))
        master.do(master.link.on_tick(log_end=1000, now_s=ALIGN_S))
        assert master.started is None
        assert master.closed is not None
        place += 1
    assert place > 64


def test_an_order_to_align_that_comes_twice_cuts_once() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:700])
    epochs = master.hear(slave.hear(master.hear(slave.begin())))
    slave.hear(epochs)
    slave.hear(epochs)
    assert slave.cuts == [600]
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.NOT_PROVEN


def test_an_order_to_align_in_another_hello_cuts_nothing() -> None:
    master, slave = _master((1, 0), (3, 600)), _slave((1, 0), log=LOG[:700])
    epochs = master.hear(slave.hear(master.hear(slave.begin())))
    later = SlaveSide(
        Bytes(LOG[:700]), incarnation=INCARNATION, epoch=1, epochs=epochs_of((1, 0)), nonce=b"t" * 16
    )
    later.hear(_master((1, 0), (3, 600)).hear(later.begin()))
    later.hear(epochs)
    assert later.cuts == []
    assert later.closed is not None
    assert later.closed.kind is CloseKind.NOT_PROVEN


def test_a_slave_with_a_fixed_role_takes_no_order_to_align() -> None:
    slave = SlaveSide(Bytes(LOG[:700]), incarnation=INCARNATION)
    master = MasterSide(Bytes(LOG))
    hello = slave.begin()
    answer = master.hear(hello)
    proof = slave.hear(answer)
    greeting, master_hello = answer[:4], answer[4:]
    assert greeting
    order = encode_verdict(AlignFirst(epochs_of((1, 0)).epochs), Authentication.SECRET)
    order += KEYS.prove_verdict(
        slave_hello=hello, master_hello=master_hello, slave_proof=proof, verdict=order
    )
    slave.hear(order)
    assert slave.closed is not None
    assert slave.closed.kind is CloseKind.NO_HELLO
    assert slave.cuts == []


# What is confirmed


@pytest.mark.behaviour("S2-37")
def test_a_slave_confirms_what_it_is_told_as_far_as_it_holds_it() -> None:
    master, slave = _master((1, 0)), _slave()
    master.confirmed_to = 150
    _met(master, slave)
    # Frames of a hundred bytes: of the first only as much as came with it.
    assert slave.confirmed == [0, 100, 150]
    slave.hear(encode_heartbeat(Heartbeat(LogOffset(2000), 1, LogOffset(1500))))
    assert slave.confirmed[-1] == len(LOG)


def test_what_is_confirmed_never_goes_back() -> None:
    master, slave = _master((1, 0)), _slave((1, 0), log=LOG[:400], known_confirmed_to=300)
    master.confirmed_to = 200
    _met(master, slave)
    assert slave.confirmed == [300]
    slave.hear(encode_heartbeat(Heartbeat(LogOffset(1000), 1, LogOffset(250))))
    assert slave.confirmed == [300]


def test_the_next_tick_tells_an_idle_slave_what_was_confirmed_since() -> None:
    master, slave = _master((1, 0), confirmed_to=400), _slave()
    _met(master, slave)
    assert master.do(master.link.on_tick(log_end=1000, now_s=1.0)) == b""
    master.confirmed_to = 1000
    slave.hear(master.do(master.link.on_tick(log_end=1000, now_s=1.0)))
    assert slave.confirmed[-1] == 1000
    assert master.do(master.link.on_tick(log_end=1000, now_s=1.1)) == b""
    assert master.link.next_tick_s == 1.0 + HEARTBEAT_S
