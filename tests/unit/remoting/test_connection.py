"""A connection over a transport that is only pretended."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tanist.errors import (
    ConnectionLost,
    LocalProtocolError,
    RemoteProtocolError,
    RequestTimeout,
    ResponseError,
    TooBusy,
)
from tanist.protocol import Command, FrameDecoder, ResponseCode, encode_command
from tanist.remoting.connection import MAX_WAITING_BYTES, WRITE_BYTES, Connection, Handler, Wire
from tanist.remoting.settings import ConnectionLimits
from tanist.remoting.watch import CloseCause

ECHO, FAIL, BIG, CLOSE, PARK = range(1, 6)
LIMITS = ConnectionLimits(
    idle_s=60, frame_s=60, write_s=60, high_water_bytes=4000, low_water_bytes=1000, max_outstanding=3
)
BAD_FRAME = bytes.fromhex("7fffffff 00000000")


class FakeTransport(asyncio.Transport):
    """Keeps what is written. Past its high-water mark it is full until ``take_all``."""

    def __init__(
        self, peername: tuple[Any, ...] = ("10.0.0.7", 40112), *, sock: socket.socket | None = None
    ) -> None:
        super().__init__({"peername": peername, "socket": sock})
        self.writes: list[bytes] = []
        self.waiting_bytes = 0
        self.is_slow = self.is_reading_paused = self.is_closed = self.is_aborted = False

    def attach(self, connection: Connection) -> None:
        self._connection = connection
        connection.connection_made(self)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self._high = high

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closed
        self.writes.append(bytes(data))
        if self.is_slow:
            was_full = self.waiting_bytes > self._high
            self.waiting_bytes += len(data)
            if self.waiting_bytes > self._high and not was_full:
                self._connection.pause_writing()

    def take_all(self) -> None:
        self.waiting_bytes = 0
        self._connection.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True

    def answers(self) -> list[Command]:
        return list(FrameDecoder().feed(b"".join(self.writes)))


@dataclass
class FakeKeeper:
    ends: list[tuple[CloseCause, str]] = field(default_factory=list[tuple[CloseCause, str]])
    mistakes: list[Exception] = field(default_factory=list[Exception])
    held: list[int] = field(default_factory=list[int])
    bad_input: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    refusal: str | None = None

    def admit(self, connection: Connection, *, file_number: int) -> str | None:
        return self.refusal

    def note_held(self, connection: Connection, size_bytes: int) -> None:
        self.held.append(size_bytes)

    def report_bad_input(self, connection: Connection, request: Command, reason: str) -> None:
        self.bad_input.append((request.code, reason))

    def forget(self, connection: Connection, cause: CloseCause, reason: str) -> None:
        self.ends.append((cause, reason))

    def report_mistake(self, connection: Connection, request: Command, error: Exception) -> None:
        self.mistakes.append(error)


def echo(request: Command, _connection: Connection) -> Command:
    return request.reply(body=bytes(request.body))


def fail(request: Command, _connection: Connection) -> Command:
    raise RuntimeError("no luck")


def big(request: Command, _connection: Connection) -> Command:
    return request.reply(body=bytes(2000))


def close(request: Command, connection: Connection) -> Command:
    connection.close("asked to")
    return request.reply(body=b"bye")


def park(request: Command, _connection: Connection) -> None:
    return None


HANDLERS: dict[int, Handler] = {ECHO: echo, FAIL: fail, BIG: big, CLOSE: close, PARK: park}


class Scene:
    """A connection, its transport and its keeper."""

    def __init__(
        self,
        *,
        handlers: Mapping[int, Handler] = HANDLERS,
        is_server: bool = True,
        refusal: str | None = None,
        sock: socket.socket | None = None,
    ) -> None:
        self.keeper = FakeKeeper(refusal=refusal)
        self.transport = FakeTransport(sock=sock)
        self.connection = Connection(handlers, LIMITS, self.keeper, holds_back=is_server)
        self.transport.attach(self.connection)

    def receive(self, *commands: Command) -> None:
        self.connection.data_received(b"".join(map(encode_command, commands)))


def ask(code: int, opaque: int = 0, **fields: Any) -> Command:
    return Command.request(code, opaque=opaque, **fields)


def in_loop(scenario: Callable[[], Any]) -> None:
    async def run() -> None:
        outcome = scenario()
        if outcome is not None:
            await outcome

    asyncio.run(run())


def test_the_frames_of_one_read_are_answered_with_one_write() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.receive(ask(ECHO, 1, body=b"a"), ask(ECHO, 2, body=b"b"), ask(FAIL, 3), ask(4711, 4))
        assert len(scene.transport.writes) == 1
        answers = [(answer.opaque, answer.code) for answer in scene.transport.answers()]
        assert answers == [(1, 0), (2, 0), (3, 1), (4, 3)]

    in_loop(scenario)


def test_a_read_is_offered_whole_first_and_what_is_not_taken_goes_the_usual_way() -> None:
    offered: list[bytes] = []

    def take(data: bytes, _connection: Connection) -> bytes | None:
        offered.append(data)
        asked = next(iter(FrameDecoder().feed(data)), None)
        if asked is None or asked.code != ECHO:
            return None
        return b"" if asked.body == b"later" else encode_command(asked.reply(body=b"express"))

    def scenario() -> None:
        scene = Scene()
        scene.connection.express = take
        scene.receive(ask(ECHO, 1))
        scene.receive(ask(ECHO, 2, body=b"later"))
        scene.receive(ask(BIG, 3))
        frame = encode_command(ask(ECHO, 4, body=b"x"))
        scene.connection.data_received(frame[:9])
        scene.connection.data_received(frame[9:])
        answers = [(answer.opaque, bytes(answer.body)[:8]) for answer in scene.transport.answers()]
        assert answers == [(1, b"express"), (3, bytes(8)), (4, b"x")]
        # The rest of a frame is not offered.
        assert len(offered) == 4

    in_loop(scenario)


def test_a_mistake_on_the_express_way_is_answered_and_the_connection_stays() -> None:
    def take(_data: bytes, _connection: Connection) -> bytes:
        raise RuntimeError("no luck")

    def scenario() -> None:
        scene = Scene()
        scene.connection.express = take
        scene.receive(ask(ECHO, 1))
        (answer,) = scene.transport.answers()
        assert (answer.opaque, answer.code) == (1, ResponseCode.SYSTEM_ERROR)
        assert [str(mistake) for mistake in scene.keeper.mistakes] == ["no luck"]
        assert scene.connection.is_open

    in_loop(scenario)


@dataclass
class FakeLine:
    """What a lane has of the connection."""

    partial_bytes: int = 0
    read_count: int = 0
    frame_count: int = 0
    written_bytes: int = 0
    calls: list[str] = field(default_factory=list[str])

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")


class FakeLane:
    def __init__(self) -> None:
        self.line = FakeLine()
        self.lacking_bytes: int | None = None

    def join(
        self, connection: Connection, wire: Wire, file_number: int, host: bytes, lacking_bytes: int
    ) -> FakeLine:
        self.lacking_bytes = lacking_bytes
        return self.line


def in_lane(scenario: Callable[[Scene, FakeLine], None]) -> None:
    """Run it with a connection that has said something, for which a lane reads therefore."""

    def joined() -> None:
        with socket.socket() as own:
            scene, lane = Scene(), FakeLane()
            scene.transport = FakeTransport(sock=own)
            scene.connection = Connection(HANDLERS, LIMITS, scene.keeper, holds_back=True, lane=lane)
            scene.transport.attach(scene.connection)
            assert not scene.transport.is_reading_paused
            scene.receive(ask(ECHO, 1))
            assert scene.transport.is_reading_paused
            scenario(scene, lane.line)

    in_loop(joined)


def test_a_lane_reads_from_the_first_word_on_and_is_left_before_the_transport_closes() -> None:
    def scenario(scene: Scene, line: FakeLine) -> None:
        scene.receive(ask(ECHO, 2))
        assert [answer.opaque for answer in scene.transport.answers()] == [1, 2]
        assert line.calls == []
        scene.receive(ask(CLOSE, 3))
        assert line.calls == ["close"]

    in_lane(scenario)


def test_a_lane_is_told_what_lacks_of_the_frame_within_which_it_begins() -> None:
    def scenario() -> None:
        with socket.socket() as own:
            scene, lane = Scene(), FakeLane()
            scene.transport = FakeTransport(sock=own)
            scene.connection = Connection(HANDLERS, LIMITS, scene.keeper, holds_back=True, lane=lane)
            scene.transport.attach(scene.connection)
            frame = encode_command(ask(ECHO, 1))
            seen: list[bool] = []
            for piece in (frame[:3], frame[3:7], frame[7:-2], frame[-2:]):
                scene.connection.data_received(piece)
                seen.append(scene.transport.is_reading_paused)
            assert seen == [False, False, True, True]
            assert lane.lacking_bytes == 2
            assert [answer.opaque for answer in scene.transport.answers()] == [1]

    in_loop(scenario)


def test_where_no_lane_can_watch_a_connection_the_transport_reads_on() -> None:
    class FullLane:
        def join(
            self, connection: Connection, wire: Wire, file_number: int, host: bytes, lacking_bytes: int
        ) -> FakeLine:
            raise OSError("no space left")

    def scenario() -> None:
        with socket.socket() as own:
            scene = Scene()
            scene.transport = FakeTransport(sock=own)
            scene.connection = Connection(HANDLERS, LIMITS, scene.keeper, holds_back=True, lane=FullLane())
            scene.transport.attach(scene.connection)
            for number in (1, 2):
                scene.receive(ask(ECHO, number))
            assert [answer.opaque for answer in scene.transport.answers()] == [1, 2]
            assert not scene.transport.is_reading_paused

    in_loop(scenario)


def test_while_the_peer_does_not_take_its_answers_the_lane_does_not_read_for_it() -> None:
    def scenario(scene: Scene, line: FakeLine) -> None:
        scene.transport.is_slow = True
        for number in range(4):
            scene.receive(ask(BIG, number))
        assert line.calls == ["pause"]
        scene.transport.is_slow = False
        scene.transport.take_all()
        assert line.calls == ["pause", "resume"]

    in_lane(scenario)


def test_at_the_end_of_the_stream_the_transport_reads_again() -> None:
    def scenario(scene: Scene, line: FakeLine) -> None:
        scene.connection.on_stream_end()
        assert not scene.transport.is_reading_paused
        scene.connection.connection_lost(None)
        assert line.calls == []

    in_lane(scenario)


def test_half_a_frame_that_the_lane_holds_is_not_waited_for_for_ever() -> None:
    def scenario(scene: Scene, line: FakeLine) -> None:
        now_s = asyncio.get_running_loop().time()
        line.partial_bytes = 5000
        scene.connection.look(now_s)
        assert scene.keeper.held == [5000]
        line.read_count += 1
        scene.connection.look(now_s + 61)
        assert scene.transport.is_aborted
        scene.connection.connection_lost(None)
        assert scene.keeper.ends[0][0] is CloseCause.HALF_FRAME

    in_lane(scenario)


def test_what_a_read_of_the_lane_raised_ends_the_connection() -> None:
    def scenario(scene: Scene, line: FakeLine) -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        scene.connection.on_fault(RuntimeError("no luck"))
        assert [str(context["exception"]) for context in told] == ["no luck"]
        assert scene.transport.is_aborted
        assert line.calls == ["close"]

    in_lane(scenario)


def test_frames_that_are_kept_leave_in_one_write_and_not_on_a_closed_connection() -> None:
    def scenario() -> None:
        scene = Scene()
        for number in (1, 2):
            scene.connection.keep(encode_command(ask(ECHO, number).reply()))
        assert not scene.transport.writes
        scene.connection.flush()
        assert len(scene.transport.writes) == 1
        assert [answer.opaque for answer in scene.transport.answers()] == [1, 2]
        scene.connection.close("enough")
        scene.connection.keep(encode_command(ask(ECHO, 3).reply()))
        scene.connection.flush()
        assert len(scene.transport.writes) == 1

    in_loop(scenario)


def test_what_is_kept_while_requests_are_handled_leaves_with_their_answers() -> None:
    def keep_and_answer(request: Command, connection: Connection) -> Command:
        connection.keep(encode_command(request.reply(body=b"earlier")))
        connection.flush()
        return request.reply(body=b"now")

    def scenario() -> None:
        scene = Scene(handlers={ECHO: keep_and_answer})
        scene.receive(ask(ECHO, 1))
        assert len(scene.transport.writes) == 1
        assert [bytes(answer.body) for answer in scene.transport.answers()] == [b"earlier", b"now"]

    in_loop(scenario)


def test_a_large_answer_goes_straight_to_the_socket_unless_that_may_be_anothers_by_now() -> None:
    def scenario() -> None:
        ours, peer = socket.socketpair()
        with ours, peer:
            peer.setblocking(False)
            scene = Scene(sock=ours)
            scene.connection.send(bytes(20_000))
            assert len(peer.recv(1 << 20)) == 20_000
            # The transport has seen the peer's end and closed the file; it tells us in its next turn.
            scene.transport.is_closed = True
            scene.transport.write = lambda data: None
            scene.connection.send(bytes(20_000))
            with pytest.raises(BlockingIOError):
                peer.recv(1)

    in_loop(scenario)


def test_what_a_handler_sends_leaves_with_the_answers() -> None:
    def push(request: Command, connection: Connection) -> Command:
        connection.send(Command.request(40, is_one_way=True))
        return request.reply()

    def scenario() -> None:
        scene = Scene(handlers={ECHO: push})
        scene.receive(ask(ECHO, 1))
        assert len(scene.transport.writes) == 1
        assert [answer.code for answer in scene.transport.answers()] == [40, 0]

    in_loop(scenario)


def test_an_answer_may_come_later_and_out_of_order() -> None:
    def scenario() -> None:
        scene = Scene()
        parked = ask(PARK, 1)
        scene.receive(parked, ask(ECHO, 2))
        scene.connection.send(parked.reply())
        assert [answer.opaque for answer in scene.transport.answers()] == [2, 1]

    in_loop(scenario)


def test_one_way_requests_are_handled_and_get_nothing() -> None:
    seen: list[Command] = []

    def scenario() -> None:
        scene = Scene(handlers={ECHO: lambda request, _: seen.append(request) or request.reply(), FAIL: fail})
        scene.receive(*(ask(code, is_one_way=True) for code in (ECHO, FAIL, 4711)))
        assert len(seen) == 1
        assert scene.transport.writes == []

    in_loop(scenario)


def test_a_request_leaves_at_once_while_no_other_waits_for_its_answer() -> None:
    async def scenario() -> None:
        scene = Scene(is_server=False)
        for count in (1, 2):
            answer = scene.connection.request(ask(7), 5)
            assert len(scene.transport.writes) == count
            scene.receive(scene.transport.answers()[-1].reply())
            await answer

    in_loop(scenario)


def test_further_requests_of_one_turn_leave_in_one_write() -> None:
    async def scenario() -> None:
        scene = Scene(is_server=False)
        answers = [scene.connection.request(ask(7), 5) for _ in range(3)]
        assert len(scene.transport.writes) == 1
        await asyncio.sleep(0)
        assert len(scene.transport.writes) == 2
        scene.receive(*(sent.reply() for sent in scene.transport.answers()))
        assert all(answer.done() for answer in answers)

    in_loop(scenario)


def test_requests_with_much_in_them_leave_at_once() -> None:
    async def scenario() -> None:
        scene = Scene(is_server=False)
        scene.connection.request(ask(7, body=bytes(WRITE_BYTES)), 5)
        assert len(scene.transport.writes) == 1

    in_loop(scenario)


def test_a_request_leaves_before_what_is_sent_after_it() -> None:
    async def scenario() -> None:
        scene = Scene(is_server=False)
        scene.connection.request(ask(7), 5)
        scene.connection.send(ask(8))
        await asyncio.sleep(0)
        assert [sent.code for sent in scene.transport.answers()] == [7, 8]

    in_loop(scenario)


def test_a_request_leaves_when_its_connection_is_closed_in_the_same_turn() -> None:
    async def scenario() -> None:
        scene = Scene(is_server=False)
        scene.connection.request(ask(7), 5)
        scene.connection.close("enough")
        assert [sent.code for sent in scene.transport.answers()] == [7]

    in_loop(scenario)


def test_a_pushed_request_with_the_opaque_of_ours_is_not_its_answer() -> None:
    async def scenario() -> None:
        scene = Scene(is_server=False)
        answer = scene.connection.request(ask(7), 5)
        await asyncio.sleep(0)
        (sent,) = scene.transport.answers()
        scene.receive(ask(ECHO, sent.opaque))
        assert not answer.done()
        scene.receive(sent.reply(17))
        assert (await answer).code == 17

    in_loop(scenario)


def test_an_answer_nobody_asked_for_changes_nothing() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.receive(ask(ECHO, 1).reply(), ask(ECHO, 2))
        assert [answer.opaque for answer in scene.transport.answers()] == [2]
        assert scene.connection.is_open

    in_loop(scenario)


def test_a_mistake_in_a_handler_is_told_to_the_peer_and_to_the_keeper() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.receive(ask(FAIL, 1))
        assert scene.transport.answers()[0].remark == "RuntimeError: no luck"
        assert [str(error) for error in scene.keeper.mistakes] == ["no luck"]
        assert scene.connection.is_open

    in_loop(scenario)


def test_an_answer_too_long_for_a_frame_becomes_a_failure() -> None:
    def scenario() -> None:
        scene = Scene(handlers={ECHO: lambda request, _: request.reply(body=bytes(17 << 20))})
        scene.receive(ask(ECHO, 1))
        assert scene.transport.answers()[0].code == 1
        assert isinstance(scene.keeper.mistakes[0], LocalProtocolError)

    in_loop(scenario)


def test_a_bad_frame_ends_the_connection_after_the_good_ones_were_answered() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.connection.data_received(encode_command(ask(ECHO, 1)) + BAD_FRAME)
        scene.receive(ask(ECHO, 2))
        assert [answer.opaque for answer in scene.transport.answers()] == [1]
        assert scene.transport.is_closed
        scene.connection.connection_lost(None)
        ((cause, reason),) = scene.keeper.ends
        assert cause is CloseCause.BAD_FRAME
        assert "2147483651 bytes is over the limit" in reason

    in_loop(scenario)


def test_a_handler_that_closes_the_connection_has_the_last_word() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.receive(ask(CLOSE, 1), ask(ECHO, 2))
        assert [answer.opaque for answer in scene.transport.answers()] == [1]
        assert scene.transport.is_closed
        assert not scene.transport.is_aborted

    in_loop(scenario)


def test_a_server_neither_reads_nor_works_for_a_peer_that_does_not_take_its_answers() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.transport.is_slow = True
        scene.receive(*(ask(BIG, number) for number in range(5)))
        scene.receive(ask(ECHO, 5))  # What had been read before the pause.
        assert scene.transport.is_reading_paused
        opaques: list[int] = []
        while scene.transport.is_reading_paused:
            assert scene.transport.waiting_bytes < 3 * 2000
            scene.transport.take_all()
            opaques = [answer.opaque for answer in scene.transport.answers()]
        assert opaques == list(range(6))

    in_loop(scenario)


def test_a_client_reads_on_while_its_peer_is_slow_or_both_would_wait_for_ever() -> None:
    def scenario() -> None:
        scene = Scene(is_server=False)
        scene.transport.is_slow = True
        scene.receive(*(ask(BIG, number) for number in range(5)))
        assert not scene.transport.is_reading_paused
        assert len(scene.transport.answers()) == 5

    in_loop(scenario)


def test_too_much_waiting_for_a_peer_ends_the_connection() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.transport.is_slow = True
        scene.connection.send(bytes(LIMITS.high_water_bytes + 1))
        scene.transport.waiting_bytes = MAX_WAITING_BYTES + 1
        with pytest.raises(TooBusy, match=r"10\.0\.0\.7:40112 is behind: \d+ bytes wait to be sent"):
            scene.connection.request(ask(7), 1)
        assert scene.connection.is_open
        scene.connection.send(b"more")
        assert scene.transport.is_aborted
        assert not scene.connection.is_open

    in_loop(scenario)


def test_a_connection_given_up_while_it_serves_is_not_written_to() -> None:
    def push(request: Command, connection: Connection) -> Command:
        connection.send(b"one too many")
        return request.reply()

    def scenario() -> None:
        scene = Scene(handlers={ECHO: push})
        scene.transport.is_slow = True
        scene.connection.send(bytes(LIMITS.high_water_bytes + 1))
        scene.transport.waiting_bytes = MAX_WAITING_BYTES + 1
        scene.receive(ask(ECHO, 1), ask(ECHO, 2))
        assert scene.transport.is_aborted
        assert len(scene.transport.writes) == 1

    in_loop(scenario)


def test_what_is_sent_on_a_closed_connection_is_dropped() -> None:
    def scenario() -> None:
        scene = Scene()
        scene.connection.close("enough")
        scene.connection.send(ask(7))
        assert scene.transport.writes == []

    in_loop(scenario)


def test_a_request_without_an_answer_times_out_and_the_connection_lives() -> None:
    async def scenario() -> None:
        scene = Scene()
        late = ask(7)
        slow, quick = scene.connection.request(ask(8), 30), scene.connection.request(late, 0.01)
        with pytest.raises(
            RequestTimeout, match=r"10\.0\.0\.7:40112 did not answer request code 7 within 0\.01 s"
        ):
            await quick
        scene.receive(late.reply())
        assert scene.connection.is_open
        assert not slow.done()
        slow.cancel()

    in_loop(scenario)


def test_requests_fail_at_once_when_the_connection_is_lost() -> None:
    async def scenario() -> None:
        scene = Scene()
        answer = scene.connection.request(ask(7), 30)
        given_up = scene.connection.request(ask(7), 30)
        given_up.cancel()
        scene.connection.connection_lost(ConnectionResetError("reset by peer"))
        with pytest.raises(ConnectionLost, match="reset by peer"):
            await answer
        with pytest.raises(ConnectionLost, match="reset by peer"):
            scene.connection.request(ask(7), 30)
        assert scene.keeper.ends == [(CloseCause.PEER, "reset by peer")]

    in_loop(scenario)


def test_an_answer_for_somebody_who_gave_up_is_dropped() -> None:
    async def scenario() -> None:
        scene = Scene()
        command = ask(7)
        scene.connection.request(command, 30).cancel()
        scene.receive(command.reply())
        assert scene.connection.is_open

    in_loop(scenario)


def test_too_many_requests_at_once_are_refused_unsent() -> None:
    def scenario() -> None:
        scene = Scene()
        for _ in range(LIMITS.max_outstanding):
            scene.connection.request(ask(7), 30)
        written = len(scene.transport.writes)
        with pytest.raises(TooBusy, match="3 requests wait for their answers"):
            scene.connection.request(ask(7), 30)
        assert len(scene.transport.writes) == written

    in_loop(scenario)


def test_a_request_that_cannot_be_written_does_not_wait_for_an_answer() -> None:
    def scenario() -> None:
        scene = Scene()
        for _ in range(2 * LIMITS.max_outstanding):
            with pytest.raises(LocalProtocolError):
                scene.connection.request(ask(7, body=bytes(17 << 20)), 30)

    in_loop(scenario)


def test_a_connection_that_is_refused_is_closed_at_once() -> None:
    def scenario() -> None:
        scene = Scene(refusal="full")
        assert scene.transport.is_aborted
        scene.connection.connection_lost(None)
        assert scene.keeper.ends == [(CloseCause.REFUSED, "full")]

    in_loop(scenario)


@pytest.mark.parametrize(
    ("peername", "peer", "host"),
    [
        (("10.0.0.7", 40112), "10.0.0.7:40112", "0a00000700009cb0"),
        (("::ffff:10.0.0.7", 40112, 0, 0), "10.0.0.7:40112", "0a00000700009cb0"),
        (("::1", 40112, 0, 0), "[::1]:40112", "00" * 15 + "01" + "00009cb0"),
        (None, "?", ""),
    ],
)
def test_a_peer_is_known_by_its_address(peername: tuple[Any, ...], peer: str, host: str) -> None:
    def scenario() -> None:
        connection = Connection({}, LIMITS, FakeKeeper(), holds_back=True)
        FakeTransport(peername).attach(connection)
        assert connection.peer == peer
        assert connection.peer_host.hex() == host

    in_loop(scenario)


def test_what_is_not_what_its_code_says_is_reported_with_its_code() -> None:
    def refuse(request: Command, _connection: Connection) -> None:
        raise {
            ECHO: RemoteProtocolError("no JSON"),
            BIG: ResponseError(13, "no batch"),
            PARK: ResponseError(16, "you may not"),
        }[request.code] from RemoteProtocolError("cut short") if request.code == BIG else None

    def scenario() -> None:
        scene = Scene(handlers={ECHO: refuse, BIG: refuse, PARK: refuse})
        scene.receive(ask(ECHO), ask(BIG), ask(PARK), ask(4711))
        assert [answer.code for answer in scene.transport.answers()] == [1, 13, 16, 3]
        assert [code for code, _reason in scene.keeper.bad_input] == [ECHO, BIG, 4711]
        assert not scene.keeper.mistakes

    in_loop(scenario)


def test_half_a_frame_is_held_until_it_is_whole() -> None:
    def scenario() -> None:
        scene = Scene()
        frame = encode_command(ask(ECHO, body=bytes(50_000)))
        scene.connection.data_received(frame[:100])
        scene.connection.data_received(frame[100:40_000])
        scene.connection.data_received(frame[40_000:])
        # So little as 100 bytes is not worth the counting.
        assert scene.keeper.held == [40_000, 0]

    in_loop(scenario)


def test_answers_that_the_peer_does_not_take_are_held_until_it_does() -> None:
    def scenario() -> None:
        scene = Scene(handlers={BIG: lambda request, _connection: request.reply(body=bytes(20_000))})
        scene.transport.is_slow = True
        scene.receive(ask(BIG))
        waiting_bytes = scene.transport.waiting_bytes
        assert scene.keeper.held[-1] == waiting_bytes > 20_000
        scene.transport.take_all()
        assert scene.keeper.held[-1] == 0

    in_loop(scenario)


def test_a_connection_that_is_given_up_while_it_answers_keeps_no_requests() -> None:
    class Strict(FakeKeeper):
        def note_held(self, connection: Connection, size_bytes: int) -> None:
            connection.give_up(CloseCause.NOT_READING, "too much is held")

    def scenario() -> None:
        scene = Scene()
        handlers: dict[int, Handler] = {BIG: lambda request, _: request.reply(body=bytes(20_000))}
        scene.connection = Connection(handlers, LIMITS, Strict(), holds_back=True)
        scene.transport.attach(scene.connection)
        scene.transport.is_slow = True
        scene.receive(*(ask(BIG, number) for number in range(10)))
        assert scene.transport.is_aborted
        assert scene.connection._backlog is None

    in_loop(scenario)


def test_small_answers_that_pile_up_are_noticed_at_the_next_look() -> None:
    def scenario() -> None:
        scene = Scene(handlers={BIG: lambda request, _connection: request.reply(body=bytes(1500))})
        scene.transport.is_slow = True
        scene.transport.set_write_buffer_limits(100_000)
        for _ in range(4):
            scene.receive(ask(BIG))
        assert scene.keeper.held == []
        scene.connection.look(1.0)
        assert scene.keeper.held == [scene.transport.waiting_bytes]

    in_loop(scenario)
