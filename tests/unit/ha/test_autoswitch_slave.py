import struct
from collections.abc import Iterator
from typing import Any

import pytest

from tanist.ha.actions import (
    AppendLog,
    BeginEpoch,
    CloseKind,
    CloseLink,
    ConfirmTo,
    FollowLog,
    SendBytes,
    SlaveAction,
    TellEpochs,
    TruncateTo,
)
from tanist.ha.autoswitch_slave import CUT_S, HANDSHAKE_S, AutoswitchSlaveLink
from tanist.model.epochs import EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_autoswitch import (
    HaState,
    MasterHandshake,
    SlaveHandshake,
    TransferHeader,
    encode_master_handshake,
    encode_slave_handshake,
    encode_slave_report,
    encode_transfer_header,
)
from tests.support import golden
from tests.support.autoswitch import (
    BROKER_ID,
    FILE_BYTES,
    history,
    log_bytes,
    open_reigns,
    receive,
    slave_link,
)

_HANDSHAKE = encode_slave_handshake(SlaveHandshake(BROKER_ID))


class _Master:
    """What a master sends: its log, and epochs that begin with these records."""

    def __init__(self, log: bytes, starts: list[int]) -> None:
        self.log = log
        self.starts = starts
        self.epochs = history((1, 0), (3, starts[0]), (4, starts[1]))

    def answer(self, *epochs: tuple[int, int], log_end: int | None = None) -> bytes:
        told = history(*epochs).epochs if epochs else self.epochs.epochs
        end = LogOffset(len(self.log) if log_end is None else log_end)
        return encode_master_handshake(MasterHandshake(end, told[-1].epoch, told))

    def frame(self, start: int, end: int, label: tuple[int, int] | None = None, confirmed: int = -1) -> bytes:
        """A frame as Tanist labels it, unless another label is given."""
        epoch, epoch_start = label or self.epochs.at(start) or (0, 0)
        header = TransferHeader(start, end - start, epoch, LogOffset(epoch_start), confirmed)
        return encode_transfer_header(header) + self.log[start:end]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Master]:
    with open_reigns(tmp_path_factory.mktemp("master"), ((1, 25), (3, 1), (4, 34))) as store:
        starts = [epoch.start for epoch in store.epochs.epochs[1:]]
        yield _Master(log_bytes(store), list(starts))


def _shaken(log_end: int = 0, epochs: EpochHistory | None = None) -> AutoswitchSlaveLink:
    link = slave_link(log_end, epochs)
    link.on_connected()
    return link


def _following(master: _Master, log_end: int = 0) -> AutoswitchSlaveLink:
    """A slave that has the beginning of the master's log."""
    epochs = EpochHistory(each for each in master.epochs.epochs if each.start < log_end)
    link = _shaken(log_end, epochs)
    receive(link, master.answer())
    assert link.is_transferring
    return link


def _closing(actions: list[SlaveAction]) -> CloseLink:
    (closing,) = actions
    assert isinstance(closing, CloseLink)
    return closing


def _behind_telling(actions: list[SlaveAction]) -> list[SlaveAction]:
    """What is to be done after operators were told which epochs there are."""
    assert isinstance(actions[0], TellEpochs)
    return actions[1:]


def _appended(actions: list[SlaveAction]) -> bytes:
    return b"".join(bytes(each.body) for each in actions if isinstance(each, AppendLog))


def _begun(actions: list[SlaveAction]) -> list[tuple[int, int]]:
    return [(each.epoch, each.start) for each in actions if isinstance(each, BeginEpoch)]


# READY and HANDSHAKE


@pytest.mark.behaviour("S2-14", "S2-16", "S2-22", "S2-23")
def test_a_slave_is_ready_and_once_connected_it_says_who_it_is_in_one_write() -> None:
    link = slave_link()
    assert link.state is HaState.READY
    assert link.on_tick(now_s=500.0) == []
    assert link.on_connected() == [SendBytes(_HANDSHAKE)]
    assert link.state is HaState.HANDSHAKE


@pytest.mark.behaviour("S2-29")
def test_an_empty_slave_reports_0_as_soon_as_it_is_answered(master: _Master) -> None:
    link = _shaken()
    assert _behind_telling(receive(link, master.answer())) == [
        FollowLog(None),
        SendBytes(encode_slave_report(0)),
    ]
    assert link.state is HaState.TRANSFER
    assert link.master_log_end == len(master.log)


def test_an_answer_that_comes_byte_by_byte_is_understood(master: _Master) -> None:
    link, answer = _shaken(), master.answer()
    for position in range(len(answer) - 1):
        assert receive(link, answer[position : position + 1]) == []
    assert receive(link, answer[-1:])
    assert link.is_transferring


@pytest.mark.behaviour("S2-24")
def test_a_master_that_does_not_answer_for_5_s_is_left() -> None:
    link = _shaken()
    assert link.next_tick_s == 100.0 + HANDSHAKE_S
    assert link.on_tick(now_s=104.9) == []
    assert _closing(link.on_tick(now_s=105.0)).kind is CloseKind.SILENT
    assert link.state is HaState.READY


@pytest.mark.behaviour("S2-24", "S2-38")
def test_a_link_that_is_lost_is_ready_again_and_takes_nothing_more(master: _Master) -> None:
    for link in (_shaken(), _following(master)):
        link.on_lost()
        assert link.state is HaState.READY
        assert receive(link, master.frame(0, 500)) == []
        assert link.on_held(500, now_s=100.0) == []
        assert link.on_tick(now_s=500.0) == []


@pytest.mark.behaviour("S2-41")
def test_more_than_1000_epochs_are_taken(master: _Master) -> None:
    link = _shaken()
    assert receive(link, master.answer(*((number + 1, number) for number in range(3000))))
    assert link.is_transferring


# Alignment


@pytest.mark.behaviour("S2-25", "S2-26", "S2-29", "S2-30")
def test_what_only_the_slave_has_is_cut_and_then_its_end_is_reported(master: _Master) -> None:
    start = master.starts[0]
    link = _shaken(start + 900, history((1, 0), (2, start)))
    assert _behind_telling(receive(link, master.answer())) == [TruncateTo(start)]
    assert link.state is HaState.HANDSHAKE
    assert link.on_truncated() == [
        FollowLog(None),
        BeginEpoch(3, start),
        SendBytes(encode_slave_report(start)),
    ]
    assert (link.state, link.log_end, link.acked_to) == (HaState.TRANSFER, start, start)
    assert _appended(receive(link, master.frame(start, start + 100))) == master.log[start : start + 100]


def test_a_slave_may_take_its_time_to_cut_and_no_more(master: _Master) -> None:
    start = master.starts[0]
    link = _shaken(start + 900, history((1, 0), (2, start)))
    actions, _ = link.on_bytes(memoryview(master.answer()), now_s=101.0)
    assert _behind_telling(actions) == [TruncateTo(start)]
    assert link.on_tick(now_s=100.0 + 2 * HANDSHAKE_S) == []
    assert link.next_tick_s == 101.0 + CUT_S
    assert _closing(link.on_tick(now_s=101.0 + CUT_S)).kind is CloseKind.TOO_SLOW


@pytest.mark.behaviour("S2-25")
def test_a_slave_that_is_ahead_within_the_same_epoch_is_cut_at_the_masters_end(master: _Master) -> None:
    end = len(master.log)
    assert _behind_telling(receive(_shaken(end + 500, master.epochs), master.answer())) == [TruncateTo(end)]


@pytest.mark.behaviour("S2-55")
def test_the_epochs_of_both_and_where_they_agree_are_told(master: _Master) -> None:
    start = master.starts[0]
    ours = history((1, 0), (2, start))
    told = receive(_shaken(start + 900, ours), master.answer())[0]
    assert told == TellEpochs(ours.epochs, master.epochs.epochs, start + 900, start)


def test_a_slave_that_has_the_beginning_goes_on_at_its_end(master: _Master) -> None:
    end = master.starts[1] + 500
    link = _shaken(end, master.epochs)
    assert _behind_telling(receive(link, master.answer())) == [
        FollowLog(None),
        SendBytes(encode_slave_report(end)),
    ]


def test_an_epoch_of_ours_that_wrote_nothing_and_is_not_the_masters_is_forgotten(master: _Master) -> None:
    start = master.starts[0]
    link = _shaken(start, history((1, 0), (2, start)))
    assert _behind_telling(receive(link, master.answer())) == [TruncateTo(start)]
    assert _begun(link.on_truncated()) == [(3, start)]


@pytest.mark.behaviour("S2-27")
def test_where_no_epoch_is_common_nothing_is_cut_and_nothing_is_taken(master: _Master) -> None:
    link = _shaken(900, history((1, 100)))
    closing = _closing(receive(link, master.answer()))
    assert closing.kind is CloseKind.REFUSED
    assert "no epoch of our log is the master's: ours are {1@100}" in closing.reason
    assert link.state is HaState.READY


def test_a_log_of_no_epoch_is_not_taken_for_the_masters(master: _Master) -> None:
    closing = _closing(receive(_shaken(900), master.answer()))
    assert "our log is of no epoch" in closing.reason


@pytest.mark.behaviour("S2-28")
def test_an_empty_slave_aligns_with_any_master_and_forgets_its_epochs(master: _Master) -> None:
    link = _shaken(0, history((2, 0)))
    assert _behind_telling(receive(link, master.answer())) == [TruncateTo(0)]
    assert link.on_truncated() == [FollowLog(None), SendBytes(encode_slave_report(0))]
    assert _begun(receive(link, master.frame(0, 500))) == [(1, 0)]


def test_a_master_of_an_older_epoch_than_our_log_is_not_followed(master: _Master) -> None:
    link = _shaken(900, history((1, 0), (5, 500)))
    closing = _closing(receive(link, master.answer()))
    assert closing.kind is CloseKind.REFUSED
    assert "the master is of epoch 4 and our log of epoch 5" in closing.reason


@pytest.mark.behaviour("S2-35")
def test_a_second_answer_and_a_frame_before_the_report_reset_the_link(master: _Master) -> None:
    link = _following(master)
    assert _closing(receive(link, master.answer())).kind is CloseKind.BAD_FRAME
    link = _shaken()
    closing = _closing(receive(link, master.frame(0, 500)))
    assert "HANDSHAKE was due" in closing.reason
    assert link.state is HaState.READY
    link = _shaken(len(master.log) + 500, master.epochs)
    _, cut, closing = receive(link, master.answer() + master.frame(900, 1000))
    assert isinstance(cut, TruncateTo)
    assert isinstance(closing, CloseLink)
    assert "a frame of the log in state HANDSHAKE" in closing.reason


# The log


@pytest.mark.behaviour("S2-31", "S2-34")
def test_what_comes_is_appended_and_reported_and_epochs_are_written_down_before_their_bytes(
    master: _Master,
) -> None:
    link = _following(master)
    first, second = master.starts
    actions = receive(
        link,
        master.frame(0, first) + master.frame(first, second) + master.frame(second, len(master.log)),
    )
    assert _appended(actions) == master.log
    told = [
        (type(each), each.log_offset if isinstance(each, AppendLog) else each.start)
        for each in actions
        if isinstance(each, AppendLog | BeginEpoch)
    ]
    assert told == [
        (BeginEpoch, 0),
        (AppendLog, 0),
        (BeginEpoch, first),
        (AppendLog, first),
        (BeginEpoch, second),
        (AppendLog, second),
    ]
    assert link.on_held(link.log_end, now_s=101.0) == [SendBytes(encode_slave_report(len(master.log)))]
    assert link.on_held(link.log_end, now_s=101.0) == []


@pytest.mark.behaviour("S2-33")
def test_labels_of_rocketmq_which_are_one_epoch_early_teach_the_same_epochs(master: _Master) -> None:
    link = _following(master)
    first, second = master.starts
    actions = receive(
        link,
        master.frame(0, first, (3, first))
        + master.frame(first, second, (4, second))
        + master.frame(second, len(master.log), (4, second)),
    )
    assert _begun(actions) == [(1, 0), (3, first), (4, second)]
    assert _appended(actions) == master.log


def test_an_epoch_is_not_written_down_before_our_log_reaches_it(master: _Master) -> None:
    first = master.starts[0]
    link = _following(master)
    assert _begun(receive(link, master.frame(0, 500, (3, first)))) == [(1, 0)]
    assert _begun(receive(link, master.frame(500, first, (3, first)))) == [(3, first)]


def test_a_frame_over_the_start_of_an_epoch_is_appended_in_two_pieces(master: _Master) -> None:
    first = master.starts[0]
    link = _shaken()
    receive(link, master.answer((3, first)))
    actions = receive(link, master.frame(0, first + 100, (3, first)))
    assert actions == [
        AppendLog(0, memoryview(master.log[:first])),
        BeginEpoch(3, first),
        AppendLog(first, memoryview(master.log[first : first + 100])),
    ]


def test_an_epoch_that_begins_after_the_answer_is_learnt_from_an_empty_frame(master: _Master) -> None:
    end = len(master.log)
    link = _following(master, end)
    assert receive(link, master.frame(end, end, (6, end))) == [BeginEpoch(6, end)]
    assert receive(link, master.frame(end, end, (6, end))) == []
    # The master of epoch 6 was replaced before it wrote anything.
    assert receive(link, master.frame(end, end, (7, end))) == [BeginEpoch(7, end)]


def test_a_heartbeat_that_tells_no_epoch_teaches_none(master: _Master) -> None:
    link = _following(master, 900)
    assert receive(link, master.frame(900, 900, (-1, 0))) == []


@pytest.mark.parametrize("label", [(2, 0), (2, 700), (4, 700), (5, 500), (3, 0)])
def test_epochs_that_do_not_rise_reset_the_link(master: _Master, label: tuple[int, int]) -> None:
    link = _following(master, 900)
    closing = _closing(receive(link, master.frame(900, 1000, label)))
    assert closing.kind is CloseKind.BAD_FRAME
    assert f"of epoch {label[0]} from {label[1]} on" in closing.reason


@pytest.mark.behaviour("S2-37")
def test_as_much_is_confirmed_as_the_master_says_and_we_hold(master: _Master) -> None:
    link = _following(master)
    assert ConfirmTo(500) in receive(link, master.frame(0, 500, confirmed=9000))
    assert ConfirmTo(700) in receive(link, master.frame(500, 900, confirmed=700))
    assert receive(link, master.frame(900, 900, confirmed=700)) == []
    assert receive(link, master.frame(900, 900, confirmed=-1)) == []
    assert receive(link, master.frame(900, 900, confirmed=850)) == [ConfirmTo(850)]


@pytest.mark.behaviour("S2-36")
@pytest.mark.parametrize("end", [800, 1000])
def test_a_frame_that_does_not_begin_at_our_end_resets_the_link(master: _Master, end: int) -> None:
    link = _following(master, 900)
    assert receive(link, master.frame(end, end + 100)) == [
        CloseLink(
            CloseKind.WRONG_OFFSET,
            f"master pushed offset not equal the max phy offset in slave, SLAVE: 900 MASTER: {end}",
        )
    ]
    assert link.state is HaState.READY
    assert receive(link, master.frame(900, 1000)) == []


def test_an_empty_slave_begins_with_whichever_file_the_master_sends_and_its_epoch(master: _Master) -> None:
    start = len(master.log) - len(master.log) % FILE_BYTES
    link = _following(master)
    actions = receive(link, master.frame(start, start + 500))
    assert _begun(actions) == [(4, master.starts[1])]
    assert _appended(actions) == master.log[start : start + 500]


def test_an_empty_slave_takes_no_frame_that_begins_within_a_file(master: _Master) -> None:
    closing = _closing(receive(_following(master), master.frame(500, 700)))
    assert "set mappedFileSizeCommitLog, now 4096, to the master's" in closing.reason


def test_a_heartbeat_of_a_master_without_a_file_changes_nothing(master: _Master) -> None:
    link = _shaken()
    receive(link, master.answer((1, 0), log_end=0))
    beat = encode_transfer_header(TransferHeader(-1, 0, 1, LogOffset(0), -1))
    assert receive(link, beat) == []
    assert _appended(receive(link, master.frame(0, 500, (1, 0)))) == master.log[:500]
    assert _closing(receive(link, beat)).kind is CloseKind.WRONG_OFFSET


@pytest.mark.parametrize("size_bytes", [-203, (4 << 20) + 1, (1 << 31) - 1])
def test_a_frame_of_an_absurd_size_resets_the_link(master: _Master, size_bytes: int) -> None:
    raw = struct.pack(">iiqiqq", 2, size_bytes, 900, 1, 0, 0)
    assert _closing(receive(_following(master, 900), raw)).kind is CloseKind.BAD_FRAME


def test_bytes_of_another_log_are_not_appended(master: _Master) -> None:
    link = _following(master, master.starts[0])
    header = TransferHeader(master.starts[0], 300, 3, LogOffset(master.starts[0]), -1)
    closing = _closing(receive(link, encode_transfer_header(header) + master.log[:300]))
    assert closing.kind is CloseKind.BAD_FRAME
    assert "comes a record that says it lies at 0" in closing.reason


def test_a_frame_that_is_not_whole_waits_for_its_rest(master: _Master) -> None:
    link = _following(master)
    raw = master.frame(0, 300)
    for position in range(len(raw) - 1):
        assert receive(link, raw[position : position + 1]) == []
    assert _appended(receive(link, raw[-1:])) == master.log[:300]


def test_after_5_s_without_a_report_the_last_one_is_repeated(master: _Master) -> None:
    link = _following(master)
    receive(link, master.frame(0, 500), now_s=102.0)
    link.on_held(500, now_s=102.0)
    assert link.next_tick_s == 107.0
    assert link.on_tick(now_s=106.9) == []
    assert link.on_tick(now_s=107.0) == [SendBytes(encode_slave_report(500))]


@pytest.mark.behaviour("S2-38")
def test_a_master_that_is_silent_for_20_s_is_left(master: _Master) -> None:
    link = _following(master)
    for now_s in (105.0, 110.0, 115.0):
        assert link.on_tick(now_s=now_s) == [SendBytes(encode_slave_report(0))]
    assert _closing(link.on_tick(now_s=120.0)) == CloseLink(
        CloseKind.SILENT, "the master did not respond for 20000 ms"
    )
    assert link.state is HaState.READY


@pytest.mark.behaviour("S2-1")
def test_what_a_master_of_rocketmq_really_sent_is_followed() -> None:
    case: dict[str, Any] = golden.load("replication")["auto_switch"]
    link = slave_link()
    link.file_bytes = case["log_file_bytes"]
    (handshake,) = link.on_connected()
    assert handshake == SendBytes(encode_slave_handshake(SlaveHandshake(BROKER_ID)))
    answer, *frames = map(bytes.fromhex, case["master_frames"])
    receive(link, answer)
    actions = receive(link, b"".join(frames))
    assert _begun(actions) == [tuple(each) for each in case["epochs"]]
    assert link.log_end == case["log_end"]
    assert _appended(actions) == b"".join(frame[36:] for frame in frames)
    assert ConfirmTo(case["log_end"]) in actions
