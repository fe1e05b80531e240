"""A lane of C over real sockets: what it takes, what it leaves to Python, and what it does to neither."""

import socket
from typing import Any

import pytest

from tests.support.lane_scene import LOG_START, NOW_MS, TOPIC, LaneScene, frame_of, header_of

pytestmark = pytest.mark.partner("native")
engine: Any = pytest.importorskip("tanist.broker._engine")

SEND = frame_of(header_of(), b"body")
ONE_WAY = frame_of(header_of(flag=2), b"body")


def test_a_plain_send_is_in_the_log_and_answered_within_the_turn() -> None:
    with LaneScene(engine) as scene:
        peer, before = scene.connect(), scene.log.log_end
        peer.far.sendall(SEND + SEND)
        count, first, end, kept = scene.turn()
        assert (count, first, end, kept) == (2, before, scene.log.log_end, None)
        assert scene.offsets[TOPIC, 1] == 79
        assert peer.answers().count(b'"code":0') == 2
        assert peer.connection.handed == []
        assert (peer.line.read_count, peer.line.frame_count) == (1, 2)


def test_where_messages_wait_the_answers_are_kept_and_leave_together() -> None:
    with LaneScene(engine) as scene:
        peers = [scene.connect(), scene.connect()]
        for peer in peers:
            peer.far.sendall(SEND + ONE_WAY + SEND)
        count, _, _, kept = scene.turn(is_waiting=True)
        assert (count, len(kept)) == (6, 8)
        assert [peer.answers() for peer in peers] == [b"", b""]
        scene.lane.answer(kept)
        assert [peer.answers().count(b'"code":0') for peer in peers] == [2, 2]


@pytest.mark.parametrize(
    "changed", [{"refusal": "closed"}, {"busy": "the disk"}, {"cut_count": 1}, {"log_end": 5}]
)
def test_a_log_that_takes_nothing_or_is_another_one_gets_nothing(changed: dict[str, Any]) -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect()
        for name, value in changed.items():
            setattr(scene.log, name, value)
        peer.far.sendall(SEND)
        assert scene.turn()[0] == 0
        assert peer.connection.handed == [SEND]
        assert not any(scene.window)
        assert scene.lane.is_full is (not {"refusal", "busy"} & changed.keys())


def test_a_message_that_finds_no_room_in_the_window_is_for_python() -> None:
    with LaneScene(engine, window_bytes=300) as scene:
        peer = scene.connect()
        peer.far.sendall(SEND + SEND)
        assert scene.turn()[0] == 1
        assert peer.connection.handed == [SEND]
        assert scene.lane.is_full
        assert scene.log.log_end <= LOG_START + 300


def test_a_window_that_moves_on_when_python_is_asked_gets_the_rest_within_the_turn() -> None:
    with LaneScene(engine, window_bytes=4000) as scene:
        scene.lane.open(scene.window, LOG_START, LOG_START + 300, 0)
        scene.on_asked = lambda: scene.lane.open(scene.window, LOG_START, LOG_START + 4000, 0)
        peer = scene.connect()
        peer.far.sendall(SEND * 4)
        assert scene.turn()[0] == 4
        assert peer.connection.handed == []
        assert not scene.lane.is_full


def test_a_flood_comes_back_after_something_in_it_that_was_for_python() -> None:
    odd = frame_of(b"none", b"")
    with LaneScene(engine) as scene:
        peer, cut = scene.connect(), len(ONE_WAY) // 2
        peer.connection.keeps_up = True
        peer.far.sendall(ONE_WAY + odd + ONE_WAY + ONE_WAY[:cut])
        assert scene.turn()[0] == 1
        peer.far.sendall(ONE_WAY[cut:] + SEND + ONE_WAY[:cut])
        assert scene.turn()[0] == 2
        peer.far.sendall(ONE_WAY[cut:])
        assert scene.turn()[0] == 1
        assert peer.connection.handed == [odd + ONE_WAY]
        assert peer.answers().count(b'"code":0') == 1


def test_a_long_frame_is_for_python_to_its_end_and_no_further() -> None:
    long = frame_of(header_of(), bytes(40_000))
    with LaneScene(engine) as scene:
        peer = scene.connect()
        peer.connection.keeps_up = True
        for piece in (long[:9], long[9:1000], long[1000:] + SEND[:7], SEND[7:] + SEND):
            peer.far.sendall(piece)
            scene.turn()
        assert b"".join(peer.connection.handed) == long
        assert peer.line.frame_count == 2


def test_a_line_begins_behind_the_frame_that_its_connection_has_the_beginning_of() -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect(lacking_bytes=2 * len(SEND))
        peer.connection.keeps_up = True
        for piece in (SEND, SEND + SEND, SEND):
            peer.far.sendall(piece)
            scene.turn()
        assert peer.connection.handed == [SEND, SEND + SEND]
        assert peer.line.frame_count == 1


@pytest.mark.parametrize("bad", [b"\0\0\0\2", b"\0\0\0\3\0", b"\xff\xff\xff\xff"])
def test_of_what_can_be_no_frame_python_gets_enough_to_say_so(bad: bytes) -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect()
        peer.connection.keeps_up = True
        for piece in (bad, SEND[:8], SEND):
            peer.far.sendall(piece)
            scene.turn()
        assert len(b"".join(peer.connection.handed)) >= 8


def test_no_more_messages_are_taken_than_there_is_room_for() -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect()
        peer.far.sendall(SEND * 3)
        assert scene.turn(2)[0] == 2
        assert peer.connection.handed == [SEND]


def test_when_python_had_its_say_it_is_asked_again_what_may_be_taken() -> None:
    with LaneScene(engine) as scene:
        first, second = scene.connect(), scene.connect()
        first.far.sendall(b"\0\0\0\4none")
        second.far.sendall(SEND)
        scene.asked_room = 0
        assert scene.turn()[0] == 0
        assert second.connection.handed == [SEND]


def test_what_is_taken_after_python_had_its_say_is_stored_no_earlier_than_what_it_wrote() -> None:
    with LaneScene(engine) as scene:
        first, second = scene.connect(), scene.connect()
        first.far.sendall(b"\0\0\0\4none")
        second.far.sendall(SEND)
        scene.asked_ms = NOW_MS + 7
        assert scene.turn()[0] == 1
        assert (NOW_MS + 7).to_bytes(8, "big") in scene.written
        assert NOW_MS.to_bytes(8, "big") not in scene.written


def test_when_the_room_is_used_up_what_others_have_sent_stays_in_their_sockets() -> None:
    with LaneScene(engine) as scene:
        peers = [scene.connect(), scene.connect()]
        for peer in peers:
            peer.far.sendall(SEND)
        assert [scene.turn(1)[0], scene.turn(1)[0], scene.turn(1)[0]] == [1, 1, 0]
        assert [peer.connection.handed for peer in peers] == [[], []]


def test_rules_that_change_within_a_turn_hold_for_the_rest_of_it() -> None:
    with LaneScene(engine) as scene:
        first, second = scene.connect(), scene.connect()
        first.connection.on_handed = scene.lane.shut
        first.far.sendall(b"\0\0\0\4none")
        second.far.sendall(SEND)
        assert scene.turn()[0] == 0
        assert second.connection.handed == [SEND]


def test_who_says_that_it_does_not_wait_is_for_python_where_others_do() -> None:
    hasty = frame_of(header_of(i="UNIQ_KEY\x01AB12\x02WAIT\x01false"), b"body")
    with LaneScene(engine) as scene:
        peer = scene.connect()
        peer.far.sendall(hasty)
        assert scene.turn(is_waiting=True)[0] == 0
        assert peer.connection.handed == [hasty]


def test_a_field_that_is_not_known_makes_it_a_matter_for_python() -> None:
    runs = ((header_of(writeRun="q;0;0;0;5;x"), 0), (header_of(zone="z"), 0), (header_of(bname="b"), 1))
    for header, count in runs:
        with LaneScene(engine) as scene:
            peer, send = scene.connect(), frame_of(header, b"body")
            peer.far.sendall(send)
            assert scene.turn()[0] == count
            assert peer.connection.handed == [send] * (1 - count)


def test_what_the_system_does_not_take_the_transport_gets_and_all_that_follows_it() -> None:
    with LaneScene(engine, window_bytes=1 << 20) as scene:
        peer = scene.connect()
        peer.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        kept: list[Any] = []
        for _ in range(300):
            peer.far.sendall(SEND)
            kept += scene.turn(is_waiting=True)[3]
        whole = b"".join(kept[1::2])
        scene.lane.answer(kept)
        at_once = peer.answers()
        assert 0 < len(at_once) < len(whole)
        assert at_once + peer.wire.written == whole
        assert peer.line.written_bytes == len(whole)


def test_once_the_transport_closes_nothing_is_read_or_written() -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect()
        peer.far.sendall(SEND)
        kept = scene.turn(is_waiting=True)[3]
        peer.wire.is_closed = True
        peer.far.sendall(SEND)
        assert scene.turn()[0] == 0
        scene.lane.answer(kept)
        assert peer.answers() == peer.wire.written == b""
        assert peer.line.connection is None


def test_the_end_of_a_stream_is_left_to_the_transport() -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect()
        peer.far.shutdown(socket.SHUT_WR)
        scene.turn()
        assert peer.connection.is_at_end
        assert peer.line.connection is None


def test_what_a_connection_raises_ends_it_and_nobody_else() -> None:
    with LaneScene(engine) as scene:
        bad, good = scene.connect(), scene.connect()
        bad.connection.on_handed = lambda: 1 // 0
        bad.far.sendall(b"\0\0\0\4none")
        good.far.sendall(SEND)
        assert scene.turn()[0] == 1
        assert [type(fault) for fault in bad.connection.faults] == [ZeroDivisionError]


def test_a_connection_that_another_one_closes_in_the_same_turn_is_served_no_more() -> None:
    with LaneScene(engine) as scene:
        first, second = scene.connect(), scene.connect()
        for peer, other in ((first, second), (second, first)):
            peer.connection.on_handed = other.line.close
            peer.far.sendall(b"\0\0\0\4none")
        scene.turn()
        assert len(first.connection.handed) + len(second.connection.handed) == 1


def test_a_line_that_is_closed_leaves_its_place_and_no_event_of_its_own() -> None:
    with LaneScene(engine) as scene:
        for _ in range(200):
            peer = scene.connect()
            peer.far.sendall(SEND)
            peer.line.close()
            peer.line.close()
        last = scene.connect()
        last.far.sendall(SEND)
        assert scene.turn()[0] == 1
        assert len(last.answers()) > 0


def test_answers_of_a_line_that_was_closed_go_to_nobody_else() -> None:
    with LaneScene(engine, window_bytes=1 << 20) as scene:
        bad, good = scene.connect(), scene.connect()

        def write(_data: bytes) -> None:
            bad.line.close()

        bad.wire.waiting_bytes = 1
        bad.wire.write = write  # type: ignore[method-assign]
        bad.far.sendall(SEND * 500)
        good.far.sendall(frame_of(header_of(opaque=2222), b"body"))
        count = scene.turn()[0]
        assert good.answers().count(b'"opaque"') == 1
        # Nothing more was taken for it than had been answered by then.
        assert 1 < count < 500


def test_a_line_that_is_paused_within_the_turn_is_not_read() -> None:
    with LaneScene(engine) as scene:
        peers = [scene.connect(), scene.connect()]
        for peer, other in (peers, peers[::-1]):
            peer.connection.on_handed = other.line.pause
            peer.far.sendall(b"\0\0\0\4none")
        scene.turn()
        assert sum(len(peer.connection.handed) for peer in peers) == 1


def test_a_line_that_pauses_is_not_read_until_it_goes_on() -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect()
        peer.line.pause()
        peer.far.sendall(SEND)
        assert scene.turn()[0] == 0
        peer.line.resume()
        assert scene.turn()[0] == 1


def test_of_a_frame_that_is_long_python_keeps_what_came() -> None:
    frame = frame_of(header_of(), bytes(40_000))
    with LaneScene(engine) as scene:
        short, long = scene.connect(), scene.connect()
        short.far.sendall(SEND[:-1])
        long.far.sendall(frame[:-1])
        scene.turn()
        assert (short.line.partial_bytes, short.connection.handed) == (len(SEND) - 1, [])
        assert (long.line.partial_bytes, b"".join(long.connection.handed)) == (0, frame[:-1])


def test_a_plan_that_is_none_and_a_window_that_is_too_short_are_refused() -> None:
    with LaneScene(engine) as scene:
        with pytest.raises(TypeError):
            scene.lane.use(scene.log, ())
        with pytest.raises(ValueError, match="shorter"):
            scene.lane.open(bytearray(10), 0, 11, 0)
        with pytest.raises(BufferError):
            scene.lane.open(bytes(10), 0, 10, 0)
