from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.ha.actions import CloseKind, CloseLink, MasterAction, SendBytes, StartTransfer, TakeAck
from tanist.ha.autoswitch_master import AutoswitchMasterLink, AutoswitchState
from tanist.ha.crcs import Crcs
from tanist.ha.replicas import Dialect
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_autoswitch import (
    NO_EPOCH,
    MasterFrameDecoder,
    MasterHandshake,
    SlaveHandshake,
    TransferHeader,
    encode_master_handshake,
    encode_slave_handshake,
    encode_slave_report,
    encode_transfer_header,
)
from tanist.protocol.ha_link import AckKind
from tanist.store import MessageStore
from tests.support.autoswitch import (
    BATCH_BYTES,
    BROKER_ID,
    FILE_BYTES,
    history,
    log_bytes,
    master_link,
    open_reigns,
)
from tests.support.messages import make_message

_HANDSHAKE = encode_slave_handshake(SlaveHandshake(BROKER_ID))
_REIGNS = ((1, 25), (3, 1), (4, 34))
"""The second is shorter than a frame."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    with open_reigns(tmp_path_factory.mktemp("store"), _REIGNS) as store:
        store.dispatch()
        yield store


def _shaken(store: MessageStore, **flags: bool) -> AutoswitchMasterLink:
    """A link whose slave has said who it is."""
    link = master_link(store)
    link.on_bytes(encode_slave_handshake(SlaveHandshake(BROKER_ID, **flags)), now_s=100.0)
    assert link.state is AutoswitchState.REPORT
    return link


def _report(link: AutoswitchMasterLink, log_offset: int, *, now_s: float = 100.0) -> list[MasterAction]:
    return link.on_bytes(b"\0\0\0\2" + log_offset.to_bytes(8, "big", signed=True), now_s=now_s)


def _transferring(store: MessageStore, log_offset: int = 0) -> AutoswitchMasterLink:
    link = _shaken(store)
    _report(link, log_offset)
    assert link.is_transferring
    return link


def _header(raw: bytes) -> TransferHeader:
    decoder = MasterFrameDecoder()
    decoder.feed(encode_master_handshake(MasterHandshake(LogOffset(0), -1, ())))
    (header,) = decoder.feed(raw)
    assert isinstance(header, TransferHeader)
    return header


def _send_all(
    link: AutoswitchMasterLink, store: MessageStore, *, now_s: float = 100.0
) -> list[tuple[TransferHeader, bytes]]:
    """Send as the shell does."""
    frames: list[tuple[TransferHeader, bytes]] = []
    while link.sent_to < store.log.log_end:
        body = bytes(store.log.read_ahead(link.sent_to, link.max_body_bytes))
        raw = link.header(link.sent_to, body, log_end=store.log.log_end, crcs=Crcs())
        frames.append((_header(raw), body))
        link.on_sent(link.sent_to + len(body), now_s=now_s)
    return frames


def _closing(actions: list[MasterAction]) -> CloseLink:
    (closing,) = actions
    assert isinstance(closing, CloseLink)
    return closing


def _answer(actions: list[MasterAction]) -> MasterHandshake:
    (answer,) = actions
    assert isinstance(answer, SendBytes)
    (handshake,) = MasterFrameDecoder().feed(answer.data)
    assert isinstance(handshake, MasterHandshake)
    return handshake


@pytest.mark.behaviour("S2-2", "S2-6", "S2-8")
def test_a_handshake_is_answered_with_the_end_of_the_log_and_its_epochs(store: MessageStore) -> None:
    link = master_link(store)
    answer = _answer(link.on_bytes(_HANDSHAKE, now_s=100.0))
    assert answer == MasterHandshake(store.log.log_end, 4, store.epochs.epochs)
    assert [epoch for epoch, _ in answer.epochs] == [1, 3, 4]
    assert not link.is_transferring


@pytest.mark.behaviour("S2-7")
def test_nothing_is_sent_before_all_of_the_handshake_is_there_wherever_it_is_split(
    store: MessageStore,
) -> None:
    for cut in range(1, len(_HANDSHAKE)):
        link = master_link(store)
        assert link.on_bytes(_HANDSHAKE[:cut], now_s=100.0) == []
        assert link.on_tick(log_end=store.log.log_end, now_s=106.0) == []
        assert _answer(link.on_bytes(_HANDSHAKE[cut:], now_s=107.0)).epoch == 4


def test_a_handshake_that_comes_again_is_answered_once(store: MessageStore) -> None:
    link = master_link(store)
    assert len(link.on_bytes(_HANDSHAKE * 2, now_s=100.0)) == 1
    assert link.on_bytes(_HANDSHAKE, now_s=105.0) == []
    other = encode_slave_handshake(SlaveHandshake(BROKER_ID, async_learner=True))
    assert _closing(link.on_bytes(other, now_s=105.0)).kind is CloseKind.BAD_FRAME


@pytest.mark.parametrize("broker_id", [0, 1, 3, (1 << 63) - 1])
def test_a_slave_that_the_group_does_not_know_is_refused(store: MessageStore, broker_id: int) -> None:
    link = master_link(store)
    closing = _closing(link.on_bytes(encode_slave_handshake(SlaveHandshake(broker_id)), now_s=100.0))
    assert closing.kind is CloseKind.REFUSED
    assert f"no slave with broker id {broker_id}" in closing.reason


@pytest.mark.parametrize(
    "raw",
    [
        encode_slave_report(0),
        b"\0\0\0\0",
        b"\0\0\0\3",
        b"\0\0\0\4",
        b"\0\0\0\5",
        b"\xff\xff\xff\xff",
        b"999999999\r\n",
        b"\0\0\0\1\0\0\0\0" + b"\xff" * 8,
    ],
)
def test_what_is_no_handshake_closes_the_link_and_is_not_answered(store: MessageStore, raw: bytes) -> None:
    link = master_link(store)
    assert _closing(link.on_bytes(raw, now_s=100.0)).kind is CloseKind.NO_HELLO
    assert link.on_bytes(_HANDSHAKE, now_s=100.0) == []
    assert link.on_tick(log_end=store.log.log_end, now_s=500.0) == []
    assert (link.acked_to, link.sent_to) == (0, 0)


@pytest.mark.behaviour("S2-43")
def test_an_empty_slave_begins_with_the_first_file_or_with_the_last_one_if_it_says_so(
    store: MessageStore,
) -> None:
    _, start = _report(_shaken(store), 0)
    assert start == StartTransfer(0, 0, BROKER_ID, AckKind.RECEIVED)
    last_file = store.log.log_end - store.log.log_end % FILE_BYTES
    link = _shaken(store, sync_from_last_file=True)
    _, start = _report(link, 0)
    assert start == StartTransfer(last_file, 0, BROKER_ID, AckKind.RECEIVED, held_from=last_file)
    assert b"".join(body for _, body in _send_all(link, store)) == log_bytes(store, last_file)


def test_a_learner_is_told_from_others(store: MessageStore) -> None:
    _, start = _report(_shaken(store, async_learner=True), 0)
    assert isinstance(start, StartTransfer)
    assert start.is_learner


def test_a_slave_goes_on_where_its_first_report_says(store: MessageStore) -> None:
    (record,) = store.records("TopicA", 0, 20, 1)
    link = _shaken(store)
    announced, start = _report(link, record.log_offset)
    assert start == StartTransfer(record.log_offset, record.log_offset, BROKER_ID, AckKind.RECEIVED)
    assert isinstance(announced, SendBytes)
    assert _header(announced.data) == TransferHeader(record.log_offset, 0, 1, LogOffset(0), store.log.log_end)
    assert b"".join(body for _, body in _send_all(link, store)) == log_bytes(store, record.log_offset)


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (-1, "where no log ends"),
        (-(1 << 63), "where no log ends"),
        (1 << 62, "it did not cut its own"),
    ],
)
def test_a_first_report_that_can_not_be_true_is_refused(
    store: MessageStore, report: int, reason: str
) -> None:
    link = _shaken(store)
    closing = _closing(_report(link, report))
    assert closing.kind is CloseKind.REFUSED
    assert f"its first report is {report}, " in closing.reason
    assert reason in closing.reason
    assert (link.acked_to, link.sent_to) == (0, 0)


def test_a_slave_may_not_go_beyond_the_end_that_it_was_told(tmp_path: Path) -> None:
    with open_reigns(tmp_path, ((1, 5),)) as store:
        link, told_end = _shaken(store), store.log.log_end
        store.append(make_message(5))
        closing = _closing(_report(link, store.log.log_end))
    assert f"it was told that this log ends at {told_end}" in closing.reason


def test_a_slave_that_lacks_what_was_deleted_is_refused(tmp_path: Path) -> None:
    with open_reigns(tmp_path, ((1, 60),)) as store:
        store.dispatch()
        (record,) = store.records("TopicA", 0, 3, 1)
        store.flush()
        store.log.segments.discard([store.log.take_first_segment()])
        closing = _closing(_report(_shaken(store), record.log_offset))
    assert f"this log begins at {FILE_BYTES}: what it lacks was deleted" in closing.reason


def test_of_all_first_reports_only_ends_of_records_are_believed_and_of_pieces_of_one_that_we_sent(
    tmp_path: Path,
) -> None:
    with open_reigns(tmp_path, ((1, 10), (2, 2))) as store:
        ends = {header.log_offset + len(body) for header, body in _send_all(_transferring(store), store)}
        ends |= {end for end in range(store.log.log_end) if store.log.is_record_start(end)}
        believed: set[int] = set()
        for log_offset in range(store.log.log_end + 2):
            link = _shaken(store)
            _report(link, log_offset)
            if link.is_transferring:
                believed.add(log_offset)
                assert b"".join(body for _, body in _send_all(link, store)) == log_bytes(store, log_offset)
    assert believed == ends
    assert len(ends) > 12


def test_a_slave_that_stopped_within_a_record_is_told_to_restart(store: MessageStore) -> None:
    closing = _closing(_report(_shaken(store), 7))
    assert "restart that slave, which cuts half a record off its end" in closing.reason


@pytest.mark.behaviour("S2-32", "S2-33")
def test_a_frame_has_bytes_of_one_epoch_and_is_labelled_with_it(store: MessageStore) -> None:
    frames = _send_all(_transferring(store), store)
    assert b"".join(body for _, body in frames) == log_bytes(store)
    assert max(len(body) for _, body in frames) == BATCH_BYTES
    for header, body in frames:
        epoch = store.epochs.at(header.log_offset)
        assert epoch == Epoch(header.epoch, header.epoch_start)
        assert store.epochs.at(header.log_offset + len(body) - 1) == epoch
        assert header.log_offset // FILE_BYTES == (header.log_offset + len(body) - 1) // FILE_BYTES
    assert {header.epoch for header, _ in frames} == {1, 3, 4}


def test_an_epoch_is_not_told_before_it_has_written_something(tmp_path: Path) -> None:
    """A slave of RocketMQ would reign under its number if it became master where it begins."""
    with open_reigns(tmp_path, ((1, 5), (2, 0))) as store:
        end = store.log.log_end
        link = master_link(store)
        answer = _answer(link.on_bytes(_HANDSHAKE, now_s=100.0))
        assert answer == MasterHandshake(end, 2, (Epoch(1, LogOffset(0)),))
        announced, _ = _report(link, end)
        assert isinstance(announced, SendBytes)
        assert _header(announced.data) == TransferHeader(end, 0, 1, LogOffset(0), end)
        store.append(make_message(5))
        ((header, _),) = _send_all(link, store)
        assert (header.epoch, header.epoch_start) == (2, end)


@pytest.mark.parametrize("message_count", [0, 1])
def test_masters_before_the_first_byte_are_told_to_have_written_nothing(
    tmp_path: Path, message_count: int
) -> None:
    """A slave of RocketMQ that was one of them finds no other epoch in common."""
    with open_reigns(tmp_path, ((4, message_count),)) as store:
        answer = _answer(master_link(store).on_bytes(_HANDSHAKE, now_s=100.0))
    assert answer.epoch == 4
    assert [tuple(each) for each in answer.epochs] == [(1, 0), (2, 0), (3, 0), (4, 0)][: 3 + message_count]


def test_a_first_epoch_is_not_told_before_it_has_written_something(tmp_path: Path) -> None:
    """A slave of RocketMQ keeps it, and shares no epoch with the next master if that begins at 0 too."""
    with open_reigns(tmp_path, ((1, 0),)) as store:
        link = _shaken(store)
        announced, _ = _report(link, 0)
        assert isinstance(announced, SendBytes)
        assert _header(announced.data) == TransferHeader(0, 0, NO_EPOCH, LogOffset(0), 0)
        store.append(make_message(0))
        ((header, _),) = _send_all(link, store)
        assert (header.epoch, header.epoch_start) == (1, 0)


def test_an_epoch_that_begins_meanwhile_labels_what_follows(tmp_path: Path) -> None:
    with open_reigns(tmp_path, ((1, 5),)) as store:
        link = _transferring(store)
        _send_all(link, store)
        begun_at = store.log.log_end
        store.begin_epoch(2)
        (beat,) = link.on_tick(log_end=begun_at, now_s=105.0)
        assert isinstance(beat, SendBytes)
        assert _header(beat.data)[2:4] == (1, 0)
        store.append(make_message(5))
        ((header, _),) = _send_all(link, store)
        assert header[2:4] == (2, begun_at)


def test_what_is_older_than_all_epochs_is_of_epoch_0_and_no_frame_has_a_negative_size(
    store: MessageStore,
) -> None:
    first_start = store.epochs.epochs[1].start
    link = master_link(store, epochs=history((3, first_start)))
    answer = _answer(link.on_bytes(_HANDSHAKE, now_s=100.0))
    assert answer.epochs == ((0, 0), (3, first_start))
    (record,) = store.records("TopicA", 0, 3, 1)
    _report(link, record.log_offset)
    frames = _send_all(link, store)
    assert b"".join(body for _, body in frames) == log_bytes(store, record.log_offset)
    labels = {header.log_offset >= first_start: header[2:4] for header, _ in frames}
    assert labels == {False: (0, 0), True: (3, first_start)}


def test_a_master_without_epochs_serves_all_as_epoch_0(store: MessageStore) -> None:
    link = master_link(store, epochs=EpochHistory())
    assert _answer(link.on_bytes(_HANDSHAKE, now_s=100.0)) == MasterHandshake(
        store.log.log_end, 0, (Epoch(0, LogOffset(0)),)
    )


@pytest.mark.behaviour("S2-41")
def test_more_than_1000_epochs_are_told(store: MessageStore) -> None:
    epochs = history(*((number + 1, number) for number in range(3000)))
    answer = _answer(master_link(store, epochs=epochs).on_bytes(_HANDSHAKE, now_s=100.0))
    assert answer.epochs == epochs.epochs


def test_every_report_of_more_than_before_is_an_ack_and_of_several_the_newest(store: MessageStore) -> None:
    link = _transferring(store)
    sizes = [len(body) for _, body in _send_all(link, store)]
    first, second = sizes[0], sizes[0] + sizes[1]
    assert _report(link, first) == [TakeAck(first)]
    assert _report(link, first) == []
    both = encode_slave_report(second) + encode_slave_report(link.sent_to)
    assert link.on_bytes(both, now_s=100.0) == [TakeAck(link.sent_to)]
    assert link.acked_to == link.sent_to == store.log.log_end


def test_an_ack_of_what_was_not_sent_closes_the_link(store: MessageStore) -> None:
    link = _transferring(store)
    link.on_sent(len(store.log.read_ahead(0, link.max_body_bytes)), now_s=100.0)
    sent_to = link.sent_to
    assert sent_to < store.log.log_end
    assert _report(link, sent_to + 1) == [
        CloseLink(CloseKind.IMPOSSIBLE_ACK, f"ack {sent_to + 1} is outside [0, {sent_to}]")
    ]
    assert link.acked_to == 0


def test_an_ack_that_goes_back_closes_the_link(store: MessageStore) -> None:
    link = _transferring(store)
    _send_all(link, store)
    _report(link, link.sent_to)
    assert _closing(_report(link, link.sent_to - 1)).kind is CloseKind.IMPOSSIBLE_ACK
    assert link.acked_to == store.log.log_end


@pytest.mark.parametrize("state", [0, 1, 3, 4, 5])
def test_a_slave_that_transfers_says_nothing_but_reports(store: MessageStore, state: int) -> None:
    link = _transferring(store)
    closing = _closing(link.on_bytes(state.to_bytes(4, "big"), now_s=100.0))
    assert closing.kind is CloseKind.BAD_FRAME
    assert "TRANSFER was due" in closing.reason


def test_a_frame_tells_what_is_confirmed_and_so_does_the_next_tick(store: MessageStore) -> None:
    confirmed = [500]
    link = master_link(store, confirmed_to=lambda: confirmed[0])
    link.on_bytes(_HANDSHAKE + encode_slave_report(0), now_s=100.0)
    frames = _send_all(link, store)
    assert {header.confirmed_to for header, _ in frames} == {500}
    assert link.on_tick(log_end=store.log.log_end, now_s=101.0) == []
    confirmed[0] = 700
    (told,) = link.on_tick(log_end=store.log.log_end, now_s=101.0)
    assert isinstance(told, SendBytes)
    assert _header(told.data)[-1] == 700
    assert link.on_tick(log_end=store.log.log_end, now_s=101.0) == []


def test_after_5_s_without_sending_a_heartbeat_tells_the_next_offset_and_its_epoch(
    store: MessageStore,
) -> None:
    link, end = _transferring(store), store.log.log_end
    _send_all(link, store, now_s=103.0)
    assert link.next_tick_s == 108.0
    assert link.on_tick(log_end=end, now_s=107.9) == []
    epoch = store.epochs.epochs[-1]
    assert link.on_tick(log_end=end, now_s=108.0) == [
        SendBytes(encode_transfer_header(TransferHeader(end, 0, epoch.epoch, epoch.start, end)))
    ]
    assert link.on_tick(log_end=end, now_s=108.0) == []


def test_a_slave_that_is_too_slow_for_the_deletion_of_files_is_given_up(tmp_path: Path) -> None:
    with open_reigns(tmp_path, ((1, 10), (2, 60))) as store:
        link = _transferring(store)
        store.flush()
        store.log.segments.discard([store.log.take_first_segment()])
        pruned = EpochHistory(store.epochs.epochs)
        pruned.raise_start(store.log.log_start)
        assert pruned.at(0) is None
        link.look_at_epochs = lambda: pruned
        closing = _closing(link.on_tick(log_end=store.log.log_end, now_s=105.0))
    assert "has deleted what follows 0" in closing.reason


def test_a_slave_that_is_silent_for_20_s_is_given_up(store: MessageStore) -> None:
    link = _transferring(store)
    assert not any(isinstance(action, CloseLink) for action in link.on_tick(log_end=0, now_s=119.9))
    assert link.on_tick(log_end=0, now_s=120.0) == [CloseLink(CloseKind.SILENT, "nothing came for 20000 ms")]


def test_a_peer_has_20_s_for_its_handshake_and_20_s_more_for_its_report(store: MessageStore) -> None:
    silent = master_link(store)
    silent.on_bytes(_HANDSHAKE[:3], now_s=119.0)
    assert silent.next_tick_s == 120.0
    assert silent.on_tick(log_end=0, now_s=120.0) == [
        CloseLink(CloseKind.TOO_SLOW, "no handshake within 20 s")
    ]
    link = master_link(store)
    link.on_bytes(_HANDSHAKE, now_s=119.0)
    assert link.next_tick_s == 139.0
    assert link.on_tick(log_end=0, now_s=138.9) == []
    assert link.on_tick(log_end=0, now_s=139.0) == [CloseLink(CloseKind.TOO_SLOW, "no report within 20 s")]


def test_a_link_that_is_lost_asks_for_nothing_any_more(store: MessageStore) -> None:
    link = _transferring(store)
    link.on_lost()
    assert not link.is_transferring
    assert _report(link, 0) == []
    assert link.on_tick(log_end=store.log.log_end, now_s=500.0) == []


def test_it_speaks_the_dialect_that_brings_no_tables(store: MessageStore) -> None:
    assert master_link(store).dialect is Dialect.AUTOSWITCH
    assert not Dialect.AUTOSWITCH.has_tables


def test_a_batch_size_beyond_the_buffer_of_a_slave_is_not_used(store: MessageStore) -> None:
    link = master_link(store, batch_bytes=1 << 30)
    link.on_bytes(_HANDSHAKE + encode_slave_report(0), now_s=100.0)
    assert 0 < link.max_body_bytes <= (4 << 20) - 36
