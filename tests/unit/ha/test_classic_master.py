from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.ha.actions import CloseKind, CloseLink, MasterAction, SendBytes, StartTransfer, TakeAck
from tanist.ha.classic_master import ClassicMasterLink, ClassicState
from tanist.ha.crcs import Crcs
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaSettings
from tanist.protocol.ha_classic import encode_report, encode_transfer_header
from tanist.protocol.ha_link import AckKind
from tanist.store import MessageStore
from tests.support.messages import SMALL, make_message, open_store

_FILE_BYTES = SMALL.mapped_file_size_commit_log
_BATCH_BYTES = 512
_ATTACK = b"999999999\r\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    """A log of several files, with records that are smaller and larger than a frame."""
    with _open_full(tmp_path_factory.mktemp("store")) as store:
        yield store


def _open_full(root: Path) -> MessageStore:
    store = open_store(root)
    for number in range(60):
        store.append(make_message(number, body_bytes=1500 if number % 10 == 9 else 100))
    store.dispatch()
    return store


def _link(store: MessageStore, *, first_for_empty: int = 0) -> ClassicMasterLink:
    return ClassicMasterLink(
        log=store.log,
        first_for_empty=first_for_empty,
        batch_bytes=_BATCH_BYTES,
        now_s=100.0,
        heartbeat_s=5.0,
        silence_s=20.0,
    )


def _report(link: ClassicMasterLink, log_offset: int, *, now_s: float = 100.0) -> list[MasterAction]:
    return link.on_bytes(log_offset.to_bytes(8, "big", signed=True), now_s=now_s)


def _send_all(link: ClassicMasterLink, store: MessageStore, *, now_s: float = 100.0) -> list[bytes]:
    """Send as the shell does; the frames without their headers."""
    frames: list[bytes] = []
    while link.sent_to < store.log.log_end:
        body = bytes(store.log.read_ahead(link.sent_to, link.max_body_bytes))
        header = link.header(link.sent_to, body, log_end=store.log.log_end, crcs=Crcs())
        assert header == encode_transfer_header(link.sent_to, len(body))
        frames.append(body)
        link.on_sent(link.sent_to + len(body), now_s=now_s)
    return frames


def _log_bytes(store: MessageStore, start: int) -> bytes:
    pieces: list[bytes] = []
    while start < store.log.log_end:
        pieces.append(bytes(store.log.read_ahead(start, _FILE_BYTES)))
        start += len(pieces[-1])
    return b"".join(pieces)


@pytest.mark.behaviour("S1-59")
def test_nothing_is_sent_before_the_first_report(store: MessageStore) -> None:
    link = _link(store)
    assert not link.is_transferring
    assert link.on_tick(log_end=store.log.log_end, now_s=119.0) == []
    assert link.on_bytes(encode_report(0)[:7], now_s=119.0) == []
    assert not link.is_transferring
    link.on_bytes(encode_report(0)[7:], now_s=119.0)
    assert link.is_transferring


@pytest.mark.behaviour("S1-56", "S1-62")
def test_a_slave_goes_on_exactly_where_its_first_report_says(store: MessageStore) -> None:
    link, start = _link(store), _record_start(store, 20)
    assert _report(link, start) == [StartTransfer(start, start, None, AckKind.RECEIVED)]
    assert (link.sent_to, link.acked_to) == (start, start)
    assert b"".join(_send_all(link, store)) == _log_bytes(store, start)
    later = _record_start(store, 30)
    assert _report(link, later) == [TakeAck(later)]
    assert link.sent_from == start


def _record_start(store: MessageStore, queue_offset: int) -> int:
    (record,) = store.records("TopicA", 0, queue_offset, 1)
    return record.log_offset


@pytest.mark.behaviour("S1-60")
def test_an_empty_slave_begins_where_the_master_says_that_empty_ones_do(store: MessageStore) -> None:
    last_file = store.log.log_end - store.log.log_end % _FILE_BYTES
    for first in (0, last_file):
        link = _link(store, first_for_empty=first)
        assert _report(link, 0) == [StartTransfer(first, 0, None, AckKind.RECEIVED, held_from=first)]
        assert b"".join(_send_all(link, store)) == _log_bytes(store, first)


@pytest.mark.behaviour("S1-67", "S1-68")
def test_frames_follow_each_other_are_no_larger_than_a_batch_and_cross_no_file(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0)
    frames = _send_all(link, store)
    assert max(map(len, frames)) == _BATCH_BYTES
    offset = 0
    for frame in frames:
        assert offset // _FILE_BYTES == (offset + len(frame) - 1) // _FILE_BYTES
        offset += len(frame)
    assert offset == store.log.log_end
    assert b"".join(frames) == _log_bytes(store, 0)


def test_wherever_a_slave_stops_that_was_sent_whole_frames_it_may_come_again(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0)
    stop = 0
    for frame in _send_all(link, store):
        stop += len(frame)
        again = _link(store)
        _report(again, stop)
        assert again.is_transferring, stop
        assert b"".join(_send_all(again, store)) == _log_bytes(store, stop)


def test_a_batch_size_beyond_the_buffer_of_a_slave_is_not_used(store: MessageStore) -> None:
    link = _link(store)
    link.batch_bytes = 1 << 30
    link.__post_init__()
    assert link.batch_bytes == (4 << 20) - 12


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (-1, "where no log ends"),
        (-(1 << 63), "where no log ends"),
        (1 << 62, "it is no copy of this one"),
        (7, "where no record of this log ends"),
        (int.from_bytes(_ATTACK[:8], "big"), "it is no copy of this one"),
    ],
)
@pytest.mark.behaviour("S5-2", "S5-3", "S5-4", "S5-14")
def test_a_first_report_that_can_not_be_true_is_refused(
    store: MessageStore, report: int, reason: str
) -> None:
    link = _link(store)
    (closing,) = _report(link, report)
    assert isinstance(closing, CloseLink)
    assert closing.kind is CloseKind.REFUSED
    assert f"its first report is {report}" in closing.reason
    assert reason in closing.reason
    assert not link.is_transferring
    assert (link.acked_to, link.sent_to) == (0, 0)


def test_a_slave_that_is_one_byte_ahead_is_refused(store: MessageStore) -> None:
    (closing,) = _report(_link(store), store.log.log_end + 1)
    assert isinstance(closing, CloseLink)
    assert "stop that slave, empty its store and start it again" in closing.reason


def test_a_slave_that_lacks_what_was_deleted_is_refused(tmp_path: Path) -> None:
    with _open_full(tmp_path) as store:
        start = _record_start(store, 3)
        store.flush()
        store.log.segments.discard([store.log.take_first_segment()])
        (closing,) = _report(_link(store), start)
    assert isinstance(closing, CloseLink)
    assert f"this log begins at {_FILE_BYTES}: what it lacks was deleted" in closing.reason


@pytest.mark.behaviour("S5-17", "S5-18")
def test_the_line_that_somebody_types_is_refused(store: MessageStore) -> None:
    link = _link(store)
    (closing,) = link.on_bytes(_ATTACK, now_s=100.0)
    assert isinstance(closing, CloseLink)
    assert "4123389851770370361" in closing.reason
    assert link.on_bytes(encode_report(0), now_s=100.0) == []
    assert link.on_tick(log_end=store.log.log_end, now_s=200.0) == []


@pytest.mark.behaviour("S1-55", "S1-57")
def test_every_report_of_more_than_before_is_an_ack(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0)
    frames = _send_all(link, store)
    first = len(frames[0])
    assert _report(link, first) == [TakeAck(first)]
    assert _report(link, first) == []
    assert _report(link, link.sent_to) == [TakeAck(link.sent_to)]
    assert link.acked_to == link.sent_to == store.log.log_end


def test_an_ack_of_what_was_not_sent_closes_the_link(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0)
    body = store.log.read_ahead(0, link.max_body_bytes)
    link.on_sent(len(body), now_s=100.0)
    sent_to = link.sent_to
    assert sent_to < store.log.log_end
    assert _report(link, sent_to + 1) == [
        CloseLink(CloseKind.IMPOSSIBLE_ACK, f"ack {sent_to + 1} is outside [0, {sent_to}]")
    ]
    assert link.acked_to == 0
    assert not link.is_transferring


@pytest.mark.parametrize("back_by", [1, 1 << 40])
def test_an_ack_that_goes_back_closes_the_link(store: MessageStore, back_by: int) -> None:
    link = _link(store)
    _report(link, 0)
    _send_all(link, store)
    _report(link, link.sent_to)
    (closing,) = _report(link, link.sent_to - back_by)
    assert isinstance(closing, CloseLink)
    assert closing.kind is CloseKind.IMPOSSIBLE_ACK
    assert link.acked_to == store.log.log_end


def test_an_empty_slave_may_say_0_until_it_holds_something_and_nothing_before_its_start(
    store: MessageStore,
) -> None:
    first = 2 * _FILE_BYTES
    link = _link(store, first_for_empty=first)
    _report(link, 0)
    assert _report(link, 0) == []
    # It made a file of the first heartbeat, as RocketMQ's do.
    assert _report(link, first) == [TakeAck(first)]
    link = _link(store, first_for_empty=first)
    _report(link, 0)
    _send_all(link, store)
    (closing,) = _report(link, first - 1)
    assert isinstance(closing, CloseLink)
    assert closing.kind is CloseKind.IMPOSSIBLE_ACK


@pytest.mark.behaviour("S1-64", "S1-65", "S1-74")
def test_after_5_s_without_sending_a_heartbeat_tells_the_next_offset(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0, now_s=101.0)
    assert link.next_tick_s == 106.0
    _send_all(link, store, now_s=103.0)
    assert link.next_tick_s == 108.0
    assert link.on_tick(log_end=store.log.log_end, now_s=107.9) == []
    assert link.on_tick(log_end=store.log.log_end, now_s=108.0) == [
        SendBytes(encode_transfer_header(store.log.log_end, 0))
    ]
    assert link.on_tick(log_end=store.log.log_end, now_s=108.0) == []
    assert link.next_tick_s == 113.0


@pytest.mark.behaviour("S1-46")
def test_a_slave_that_is_silent_for_20_s_is_given_up(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0)
    assert not any(isinstance(action, CloseLink) for action in link.on_tick(log_end=0, now_s=119.9))
    assert link.on_tick(log_end=0, now_s=120.0) == [CloseLink(CloseKind.SILENT, "nothing came for 20000 ms")]
    assert link.state is ClassicState.CLOSED


def test_a_peer_that_takes_20_s_over_its_first_report_is_given_up_however_often_it_says_something(
    store: MessageStore,
) -> None:
    link = _link(store)
    for second in range(1, 7):
        assert link.on_bytes(b"\0", now_s=100.0 + 3 * second) == []
    assert link.next_tick_s == 120.0
    assert link.on_tick(log_end=0, now_s=119.9) == []
    assert link.on_tick(log_end=0, now_s=120.0) == [CloseLink(CloseKind.TOO_SLOW, "no report within 20 s")]


def test_a_single_byte_is_a_sign_of_life(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0)
    link.on_bytes(b"\0", now_s=115.0)
    link.on_tick(log_end=0, now_s=115.0)
    assert link.next_tick_s == 120.0
    assert not any(isinstance(action, CloseLink) for action in link.on_tick(log_end=0, now_s=134.9))
    assert isinstance(link.on_tick(log_end=0, now_s=135.0)[0], CloseLink)


@pytest.mark.behaviour("S1-50")
def test_a_link_that_is_lost_asks_for_nothing_any_more(store: MessageStore) -> None:
    link = _link(store)
    _report(link, 0)
    link.on_lost()
    link.on_lost()
    assert not link.is_transferring
    assert _report(link, 0) == []
    assert link.on_tick(log_end=store.log.log_end, now_s=500.0) == []


@pytest.mark.behaviour("S1-43")
def test_every_slave_has_its_own_position(store: MessageStore) -> None:
    one, other, start = _link(store), _link(store), _record_start(store, 40)
    _report(one, 0)
    _report(other, start)
    _send_all(other, store)
    _report(other, other.sent_to)
    assert (one.sent_to, one.acked_to) == (0, 0)
    assert (other.sent_from, other.acked_to) == (start, store.log.log_end)


@pytest.mark.behaviour("S1-45", "S1-64", "S1-67")
def test_the_times_and_the_batch_are_rocketmqs_by_default() -> None:
    settings = HaSettings()
    assert settings.ha_send_heartbeat_interval == 5_000
    assert settings.ha_housekeeping_interval == 20_000
    assert settings.ha_transfer_batch_size == 32 << 10


def test_its_acks_say_that_it_has_received_and_it_tells_no_id(store: MessageStore) -> None:
    link = _link(store)
    assert link.dialect is Dialect.CLASSIC
    (start,) = _report(link, 0)
    assert start == StartTransfer(0, 0, None, AckKind.RECEIVED)
