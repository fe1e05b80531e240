from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.ha.actions import AppendLog, CloseKind, CloseLink, FollowLog, SendBytes, SlaveAction
from tanist.ha.classic_slave import ClassicSlaveLink
from tanist.ha.record_walk import RecordWalk
from tanist.protocol.ha_classic import encode_report, encode_transfer_header
from tanist.protocol.ha_link import AckKind
from tests.support.messages import SMALL, make_message, open_store

_FILE_BYTES = SMALL.mapped_file_size_commit_log


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bytes]:
    """A master's log of several files."""
    with open_store(Path(tmp_path_factory.mktemp("master"))) as store:
        for number in range(60):
            store.append(make_message(number, body_bytes=100))
        pieces: list[bytes] = []
        while (start := sum(map(len, pieces))) < store.log.log_end:
            pieces.append(bytes(store.log.read_ahead(start, _FILE_BYTES)))
        yield b"".join(pieces)


def _link(log_end: int = 0, *, unfinished: bytes = b"") -> ClassicSlaveLink:
    """A slave whose log ends there, perhaps within a record of which it has this much."""
    walk = RecordWalk(log_end - len(unfinished), file_bytes=_FILE_BYTES) if log_end else None
    if walk is not None:
        walk.feed(unfinished)
    return ClassicSlaveLink(
        log_end=log_end,
        walk=walk,
        file_bytes=_FILE_BYTES,
        ack_kind=AckKind.RECEIVED,
        now_s=100.0,
        heartbeat_s=5.0,
        silence_s=20.0,
    )


def _frame(log: bytes, start: int, end: int) -> bytes:
    return encode_transfer_header(start, end - start) + log[start:end]


def _receive(link: ClassicSlaveLink, data: bytes, *, now_s: float = 100.0) -> list[SlaveAction]:
    """Take what came as the shell does, whose appends succeed; what it has to do about the log."""
    actions, used = link.on_bytes(memoryview(data), now_s=now_s)
    assert used == len(data)
    for action in actions:
        if isinstance(action, AppendLog):
            link.on_appended(action.log_offset + len(action.body))
    return [action for action in actions if not isinstance(action, FollowLog)]


def _appended(actions: list[SlaveAction]) -> list[tuple[int, bytes]]:
    return [(each.log_offset, bytes(each.body)) for each in actions if isinstance(each, AppendLog)]


@pytest.mark.behaviour("S1-81")
@pytest.mark.parametrize("log_end", [0, 3 * _FILE_BYTES])
def test_a_slave_reports_where_its_log_ends_as_soon_as_it_is_connected(log_end: int) -> None:
    assert _link(log_end).on_connected() == [SendBytes(encode_report(log_end))]


@pytest.mark.behaviour("S1-91", "S1-98")
def test_several_frames_of_one_read_are_appended_in_order_each_where_it_says(log: bytes) -> None:
    link = _link()
    actions = _receive(link, _frame(log, 0, 500) + _frame(log, 500, 700) + _frame(log, 700, 4096))
    assert _appended(actions) == [(0, log[:500]), (500, log[500:700]), (700, log[700:4096])]


@pytest.mark.behaviour("S1-92", "S1-93")
def test_a_frame_that_is_not_whole_waits_for_its_rest_and_nothing_of_it_is_applied(log: bytes) -> None:
    link = _link()
    stream = _frame(log, 0, 300) + _frame(log, 300, 600)
    applied: list[tuple[int, bytes]] = []
    for position in range(len(stream)):
        got = _appended(_receive(link, stream[position : position + 1]))
        assert bool(got) == (position + 1 in (312, 624))
        applied += got
    assert applied == [(0, log[:300]), (300, log[300:600])]


@pytest.mark.behaviour("S1-87", "S1-103")
def test_what_was_appended_is_reported_at_once_and_once(log: bytes) -> None:
    link = _link()
    link.on_connected()
    _receive(link, _frame(log, 0, 500) + _frame(log, 500, 700))
    assert link.on_held(link.log_end, now_s=101.0) == [SendBytes(encode_report(700))]
    assert link.on_held(link.log_end, now_s=101.0) == []


@pytest.mark.behaviour("S1-102")
def test_what_was_not_appended_is_not_reported(log: bytes) -> None:
    link = _link()
    link.on_bytes(memoryview(_frame(log, 0, 500)), now_s=100.0)
    # The shell did not say that it was appended.
    assert link.on_held(link.log_end, now_s=101.0) == []
    link.on_lost()
    assert link.on_tick(now_s=110.0) == []


@pytest.mark.behaviour("S1-95")
@pytest.mark.parametrize("size_bytes", [0, 200])
def test_a_frame_that_does_not_begin_at_our_end_closes_the_link(log: bytes, size_bytes: int) -> None:
    link = _link(4096)
    actions = _receive(link, encode_transfer_header(8192, size_bytes))
    assert actions == [
        CloseLink(
            CloseKind.WRONG_OFFSET,
            "master pushed offset not equal the max phy offset in slave, SLAVE: 4096 MASTER: 8192",
        )
    ]
    assert _receive(link, _frame(log, 4096, 5000)) == []


@pytest.mark.behaviour("S1-91", "S1-95")
def test_what_came_whole_before_a_wrong_frame_is_kept(log: bytes) -> None:
    link = _link()
    actions = _receive(link, _frame(log, 0, 500) + _frame(log, 600, 700))
    assert _appended(actions) == [(0, log[:500])]
    assert isinstance(actions[-1], CloseLink)


@pytest.mark.behaviour("S1-96")
def test_an_empty_slave_begins_with_whichever_file_the_master_sends(log: bytes) -> None:
    link = _link()
    assert _appended(_receive(link, _frame(log, _FILE_BYTES, 5000))) == [(_FILE_BYTES, log[_FILE_BYTES:5000])]
    assert _appended(_receive(link, _frame(log, 5000, 5200))) == [(5000, log[5000:5200])]


def test_an_empty_slave_takes_no_frame_that_begins_within_a_file(log: bytes) -> None:
    (closing,) = _receive(_link(), _frame(log, 500, 700))
    assert isinstance(closing, CloseLink)
    assert "set mappedFileSizeCommitLog, now 4096, to the master's" in closing.reason


@pytest.mark.behaviour("S1-97")
def test_a_heartbeat_appends_nothing_and_is_not_answered(log: bytes) -> None:
    for log_end in (0, 4096):
        link = _link(log_end)
        assert _receive(link, encode_transfer_header(4096, 0)) == []
        assert link.log_end == log_end
        assert link.on_held(link.log_end, now_s=100.0) == []
    assert _appended(_receive(link, _frame(log, 4096, 5000))) == [(4096, log[4096:5000])]


def test_an_empty_slave_that_was_sent_a_heartbeat_is_empty_still(log: bytes) -> None:
    link = _link()
    _receive(link, encode_transfer_header(8192, 0))
    assert _appended(_receive(link, _frame(log, 4096, 5000))) == [(4096, log[4096:5000])]


def test_bytes_of_another_log_are_not_appended(log: bytes) -> None:
    link = _link(4096)
    (closing,) = _receive(link, encode_transfer_header(4096, 300) + log[:300])
    assert isinstance(closing, CloseLink)
    assert closing.kind is CloseKind.BAD_FRAME
    assert "at log offset 4096 comes a record that says it lies at 0" in closing.reason


def test_a_log_that_ends_within_a_record_goes_on_there(log: bytes) -> None:
    link = _link(4200, unfinished=log[4096:4200])
    assert _appended(_receive(link, _frame(log, 4200, 5000))) == [(4200, log[4200:5000])]


def test_the_master_is_followed_from_its_first_frame_on_and_not_before() -> None:
    link = _link(4096)
    link.on_connected()
    assert not link.is_transferring
    actions, _ = link.on_bytes(memoryview(encode_transfer_header(4096, 0)), now_s=100.0)
    assert actions == [FollowLog(None)]
    assert link.is_transferring
    assert link.on_bytes(memoryview(encode_transfer_header(4096, 0)), now_s=100.0) == ([], 12)


@pytest.mark.parametrize("size_bytes", [-1, (4 << 20) + 1, (1 << 31) - 1])
def test_a_frame_of_an_absurd_size_closes_the_link(size_bytes: int) -> None:
    raw = (4096).to_bytes(8, "big") + size_bytes.to_bytes(4, "big", signed=True)
    (closing,) = _receive(_link(4096), raw)
    assert isinstance(closing, CloseLink)
    assert closing.kind is CloseKind.BAD_FRAME


@pytest.mark.behaviour("S1-82")
def test_after_5_s_without_a_report_the_last_one_is_repeated(log: bytes) -> None:
    link = _link()
    _receive(link, _frame(log, 0, 500), now_s=102.0)
    link.on_held(500, now_s=102.0)
    assert link.next_tick_s == 107.0
    assert link.on_tick(now_s=106.9) == []
    assert link.on_tick(now_s=107.0) == [SendBytes(encode_report(500))]
    assert link.next_tick_s == 112.0


@pytest.mark.behaviour("S1-89")
def test_a_master_that_is_silent_for_20_s_is_left_whatever_the_slave_wrote_meanwhile() -> None:
    link = _link()
    for now_s in (105.0, 110.0, 115.0):
        assert link.on_tick(now_s=now_s) == [SendBytes(encode_report(0))]
    assert link.on_tick(now_s=120.0) == [
        CloseLink(CloseKind.SILENT, "the master did not respond for 20000 ms")
    ]
    assert link.on_tick(now_s=125.0) == []


@pytest.mark.behaviour("S1-89")
def test_a_heartbeat_is_a_sign_of_life() -> None:
    link = _link()
    _receive(link, encode_transfer_header(0, 0), now_s=119.0)
    link.on_tick(now_s=119.0)
    assert not any(isinstance(action, CloseLink) for action in link.on_tick(now_s=138.0))
