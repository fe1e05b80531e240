"""What a lane takes of a stream, cut anywhere, is what ``take_send`` takes; the rest it hands on.

That ``take_send`` is what Python does step by step is in test_quick_send_properties.
"""

import asyncio
import socket
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.protocol import Command
from tanist.remoting.connection import Connection, ConnectionLimits, Keeper
from tests.property.test_quick_send_properties import mixed_headers
from tests.support.fake_transport import FakeTransport
from tests.support.lane_scene import FIRST_OFFSET, HOST, NOW_MS, TOPIC, LaneScene, frame_of, header_of

pytestmark = pytest.mark.partner("native")
native = pytest.importorskip("tanist.protocol._native")
engine = pytest.importorskip("tanist.broker._engine")


def header_for(queue_id: int, opaque: int) -> bytes:
    return header_of(e=str(queue_id), opaque=opaque)


_plain = st.builds(header_for, st.integers(0, 3), st.integers(0, 9))
_frames = st.builds(frame_of, st.one_of(_plain, _plain, _plain, mixed_headers), st.binary(max_size=70))
_streams = st.lists(_frames | st.binary(min_size=1, max_size=30), max_size=8)


def taken_by_frame(frames: list[bytes], scene: LaneScene) -> tuple[bytes, bytes, int]:
    """Records and answers of the frames before the first that is not taken, and how many these are."""
    records, answers, offsets = b"", b"", dict(scene.offsets)
    plan = (scene.plan[0], offsets, *scene.plan[2:])
    for number, frame in enumerate(frames):
        total, size = int.from_bytes(frame[:4], "big"), int.from_bytes(frame[4:8], "big")
        taken = None
        if len(frame) >= 8 and 4 + total == len(frame) and 0 < size <= len(frame) - 8:
            log_offset = scene.log.log_end + len(records)
            taken = native.take_send(frame[8 : 8 + size], frame[8 + size :], HOST, plan, log_offset, NOW_MS)
        if taken is None or taken[6] & 1:
            return records, answers, number
        records += taken[0]
        answers += b"" if taken[6] & 2 else taken[5]
        offsets[taken[3]] = taken[4] + 1
    return records, answers, len(frames)


@given(_streams, st.lists(st.integers(1, 900), min_size=1, max_size=6), st.booleans())
def test_a_stream_is_taken_alike_however_it_is_cut(
    frames: list[bytes], cuts: list[int], is_waiting: bool
) -> None:
    stream = b"".join(frames)
    with LaneScene(engine) as scene:
        records, answers, count = taken_by_frame(frames, scene)
        kept: list[Any] = []
        peer, position, number = scene.connect(), 0, 0
        while position < len(stream):
            piece = stream[position : position + cuts[number % len(cuts)]]
            peer.far.sendall(piece)
            kept += scene.turn(is_waiting=is_waiting)[3] or []
            position, number = position + len(piece), number + 1
        scene.lane.answer(kept)
        taken_bytes = sum(map(len, frames[:count]))
        # What bytes that are no frame begin may be one with the next; then it is another story from there.
        assert scene.written[: len(records)] == records
        handed = b"".join(peer.connection.handed)
        held = peer.line.partial_bytes
        if scene.written == records:
            assert peer.answers() == answers
            assert handed == stream[taken_bytes : len(stream) - held]
        assert not peer.connection.faults


_odd = st.just(frame_of(b"none", b""))
_long = st.just(frame_of(header_of(), bytes(40_000)))


@settings(deadline=None)
@given(
    st.lists(st.one_of(_plain.map(lambda header: frame_of(header, b"body")), _odd, _long), max_size=8),
    st.lists(st.integers(1, 5000), min_size=1, max_size=6),
    st.integers(0, 500),
)
def test_each_frame_of_a_stream_goes_whole_to_one_of_the_two_however_it_is_cut(
    frames: list[bytes], cuts: list[int], joined_at: int
) -> None:
    stream = b"".join(frames)
    with LaneScene(engine, window_bytes=1 << 20) as scene:
        # The connection has the beginning of the first frame.
        position = min(joined_at, len(frames[0]) if frames else 0)
        lacking_bytes = len(frames[0]) - position if position else 0
        peer, number = scene.connect(lacking_bytes=lacking_bytes), 0
        peer.connection.keeps_up = True
        begun, rest = stream[:position], stream[position:]
        while rest:
            cut = cuts[number % len(cuts)]
            peer.far.sendall(rest[:cut])
            scene.turn()
            rest, number = rest[cut:], number + 1
        handed = whole_frames(begun + b"".join(peer.connection.handed))
        assert len(handed) + peer.line.frame_count == len(frames)
        assert all(frame in frames for frame in handed)
        assert peer.line.partial_bytes == 0


def whole_frames(stream: bytes) -> list[bytes]:
    """The frames of a stream, of which the last has to be whole."""
    frames: list[bytes] = []
    at = 0
    while at < len(stream):
        size = 4 + int.from_bytes(stream[at : at + 4], "big")
        assert at + size <= len(stream)
        frames.append(stream[at : at + size])
        at += size
    return frames


_LIMITS = ConnectionLimits(
    idle_s=60, frame_s=60, write_s=60, high_water_bytes=1 << 20, low_water_bytes=1 << 18, max_outstanding=9
)


class _OpenHouse:
    """Takes every connection in, and wants to know nothing."""

    def __getattr__(self, name: str) -> Any:
        def ignore(*_arguments: object, **_named: object) -> None:
            return None

        return ignore


class _SocketTransport(FakeTransport):
    def __init__(self, own: socket.socket) -> None:
        super().__init__()
        self._own = own

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._own if name == "socket" else super().get_extra_info(name, default)


_bodies = st.binary(min_size=1, max_size=70) | _plain.map(lambda header: frame_of(header, b"inner"))


@settings(deadline=None, max_examples=50)  # Each example has an event loop of its own.
@given(st.lists(_bodies, min_size=1, max_size=5), st.lists(st.integers(1, 900), min_size=1, max_size=6))
def test_a_lane_that_joins_when_something_was_read_takes_the_rest_of_the_stream(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(frame_of(header_of(), body) for body in bodies)

    async def scenario() -> None:
        handled: list[bytes] = []

        def handle(request: Command, _connection: Connection) -> None:
            handled.append(bytes(request.body))

        with LaneScene(engine) as scene:
            near, far = socket.socketpair()
            near.setblocking(False)
            scene.sockets += [near, far]
            transport = _SocketTransport(near)
            limits, keeper = _LIMITS, cast("Keeper", _OpenHouse())
            connection = Connection({310: handle}, limits, keeper, holds_back=True, lane=scene.lane)
            connection.connection_made(transport)
            position, number = 0, 0
            while position < len(stream):
                piece = stream[position : position + cuts[number % len(cuts)]]
                if transport.is_paused:
                    far.sendall(piece)
                    scene.turn()
                else:
                    connection.data_received(piece)
                position, number = position + len(piece), number + 1
            # Once joined it is the lane that takes, so what Python handled comes first.
            assert handled == bodies[: len(handled)]
            assert scene.offsets[TOPIC, 1] - FIRST_OFFSET == len(bodies) - len(handled)
            assert transport.is_paused
            connection.connection_lost(None)

    asyncio.run(scenario())


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8))
def test_no_bytes_whatever_they_are_do_harm(pieces: list[bytes]) -> None:
    with LaneScene(engine) as scene:
        peer = scene.connect()
        for piece in pieces:
            peer.far.sendall(piece)
            assert scene.turn()[0] == 0
        handed = b"".join(peer.connection.handed)
        assert handed == b"".join(pieces)[: len(handed)]
        assert len(handed) + peer.line.partial_bytes == sum(map(len, pieces))
