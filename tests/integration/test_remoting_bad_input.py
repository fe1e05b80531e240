"""What strangers may send: each costs its own connection at most, one line, and bounded memory."""

import asyncio
import logging
import random

import psutil
import pytest

from tanist.chaos.hostile import BAD_FRAMES
from tanist.protocol import Command, HeaderEncoding, encode_command
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.remoting import CloseCause, Connection, ServerLimits
from tests.support.conditions import until
from tests.support.remoting import ECHO, HANDLERS, Peer, Run, on_both_loops, peer_of, serving

ROUTE = 105


async def assert_still_serves(peer: Peer) -> None:
    peer.send(Command.request(ECHO, body=b"still here"))
    assert (await peer.receive()).body == b"still here"


@on_both_loops
@pytest.mark.parametrize("data", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_a_bad_frame_costs_its_connection_and_one_line(
    run: Run, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as other, peer_of(server) as stranger:
            await assert_still_serves(other)
            stranger.write(data)
            assert await stranger.is_closed()
            await until(lambda: server.connection_count == 1)
            assert server.closed_connections == {CloseCause.BAD_FRAME: 1}
            (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
            assert line.startswith(f"connection closed peer={stranger.address} cause=BAD_FRAME reason=")
            await assert_still_serves(other)

    run(scenario())


@on_both_loops
def test_good_requests_before_a_bad_frame_are_answered(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as stranger:
            stranger.write(
                encode_command(Command.request(ECHO, opaque=5)) + BAD_FRAMES["eight bytes of ones"]
            )
            assert (await stranger.receive()).opaque == 5
            assert await stranger.is_closed()

    run(scenario())


@on_both_loops
def test_a_request_code_nobody_handles_is_refused_by_name(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as peer:
            for code in (0, -1, 4711, 2**31 - 1):
                peer.send(Command.request(code, opaque=3))
                answer = await peer.receive()
                assert (answer.code, answer.remark) == (3, f"request code {code} is not supported")

    run(scenario())


@on_both_loops
@pytest.mark.parametrize("encoding", HeaderEncoding)
def test_a_header_that_is_not_what_the_code_asks_for_is_code_1_naming_the_field(
    run: Run, encoding: HeaderEncoding
) -> None:
    def route(request: Command, _connection: Connection) -> Command:
        return request.reply(remark=request.header(GetRouteRequest).topic)

    async def scenario() -> None:
        async with serving({ROUTE: route}) as server, peer_of(server) as peer:
            peer.send(Command.request(ROUTE, ext={"topc": "T"}, encoding=encoding))
            answer = await peer.receive()
            assert answer.code == 1
            assert answer.remark == "GetRouteRequest: mandatory field topic is missing"
            peer.send(Command.request(ROUTE, ext={"topic": "T"}, encoding=encoding))
            assert (await peer.receive()).remark == "T"

    run(scenario())


@on_both_loops
@pytest.mark.parametrize(
    "begin", [b"\0", bytes.fromhex("0000008100"), encode_command(Command.request(ECHO))[:-1]]
)
def test_half_a_frame_then_silence_is_given_up(
    run: Run, begin: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        limits = ServerLimits(server_frame_timeout_millis=200)
        async with serving(limits=limits) as server, peer_of(server) as other, peer_of(server) as stranger:
            stranger.write(encode_command(Command.request(ECHO)) + begin)
            await stranger.receive()
            assert await stranger.is_closed()
            assert server.closed_connections == {CloseCause.HALF_FRAME: 1}
            assert (
                f"peer={stranger.address} cause=HALF_FRAME reason=a frame is not whole after 0.2 s"
                in caplog.text
            )
            await assert_still_serves(other)

    run(scenario())


@on_both_loops
def test_a_frame_that_trickles_in_for_too_long_is_given_up(run: Run) -> None:
    async def scenario() -> None:
        limits = ServerLimits(server_frame_timeout_millis=200)
        async with serving(limits=limits) as server, peer_of(server) as stranger:
            stranger.write(bytes.fromhex("00ffff0000000000"))
            while not server.closed_connections:
                stranger.write(b"\0")
                await asyncio.sleep(0.01)
            assert server.closed_connections == {CloseCause.HALF_FRAME: 1}

    run(scenario())


@on_both_loops
def test_a_long_frame_that_is_announced_and_never_sent_takes_no_memory(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server:
            before_bytes = psutil.Process().memory_info().rss
            peers = [await Peer.connect(server.port) for _ in range(50)]
            for peer in peers:
                peer.write(bytes.fromhex("00fffff800000000"))
            await until(lambda: server.connection_count == 50)
            assert psutil.Process().memory_info().rss - before_bytes < 20 << 20
            for peer in peers:
                await peer.close()

    run(scenario())


@on_both_loops
def test_a_flood_of_bad_peers_is_counted_in_full_and_logged_in_part(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as other:
            for _ in range(100):
                async with peer_of(server) as stranger:
                    stranger.write(BAD_FRAMES["eight bytes of ones"])
                    assert await stranger.is_closed()
            assert server.closed_connections[CloseCause.BAD_FRAME] == 100
            lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
            assert 1 <= len(lines) <= 60
            await assert_still_serves(other)

    run(scenario())


@on_both_loops
def test_random_streams_end_in_an_answer_or_a_closed_connection(run: Run) -> None:
    async def scenario() -> None:
        rng = random.Random(11)
        good = encode_command(Command.request(ECHO, opaque=1, ext={"topic": "T"}, body=b"body"))
        limits = ServerLimits(server_frame_timeout_millis=200)
        async with serving(HANDLERS, limits=limits) as server, peer_of(server) as other:
            for _ in range(100):
                data = bytearray(good * 3)
                for _ in range(rng.randrange(1, 6)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                async with peer_of(server) as stranger:
                    stranger.write(bytes(data))
            await until(lambda: server.connection_count == 1)
            await assert_still_serves(other)

    run(scenario())
