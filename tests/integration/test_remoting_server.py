"""A server and raw peers over loopback sockets."""

import asyncio
import contextlib
import gc
import logging
import resource
import socket
from typing import cast

import psutil
import pytest

from tanist.protocol import Command, HeaderEncoding, encode_command
from tanist.protocol.frame import encode_head
from tanist.remoting import CloseCause, Connection, RemotingServer, ServerLimits, bind_port
from tanist.remoting import connections as connections_module
from tanist.remoting.replies import Pieces
from tests.support.conditions import until
from tests.support.remoting import (
    ECHO,
    FAIL,
    HANDLERS,
    PARK,
    Peer,
    Run,
    in_time,
    on_both_loops,
    peer_of,
    serving,
)

BIG = 9
BIG_BYTES = 1 << 20


def big(request: Command, _connection: Connection) -> Command:
    return request.reply(body=bytes(BIG_BYTES))


@on_both_loops
def test_pipelined_requests_are_answered_in_their_order(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as peer:
            peer.send(*(Command.request(ECHO, opaque=n, body=b"%d" % n) for n in range(500)))
            answers = [await peer.receive() for _ in range(500)]
            assert [(answer.opaque, bytes(answer.body)) for answer in answers] == [
                (n, b"%d" % n) for n in range(500)
            ]

    run(scenario())


@on_both_loops
def test_a_port_that_is_bound_is_nobody_elses_and_serves_from_the_start_on(run: Run) -> None:
    async def scenario() -> None:
        with bind_port("127.0.0.1", 0) as bound:
            port = bound.getsockname()[1]
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
            with pytest.raises(ConnectionRefusedError):
                await Peer.connect(port)
            server = RemotingServer(HANDLERS)
            await server.start_on(bound)
            assert server.port == port
            async with peer_of(server) as peer:
                peer.send(Command.request(ECHO, body=b"hello"))
                assert (await peer.receive()).body == b"hello"
            await in_time(server.close(grace_s=1))
            with pytest.raises(ConnectionRefusedError):
                await Peer.connect(port)

    run(scenario())


@on_both_loops
def test_frames_that_arrive_in_pieces_are_put_together(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as peer:
            frame = encode_command(Command.request(ECHO, opaque=7, body=b"x" * 100_000))
            for start in range(0, len(frame), 30_000):
                peer.write(frame[start : start + 30_000])
                await asyncio.sleep(0.001)
            assert len((await peer.receive()).body) == 100_000

    run(scenario())


@on_both_loops
def test_a_parked_request_is_overtaken_and_answered_later(run: Run) -> None:
    parked: list[tuple[Command, Connection]] = []

    def park(request: Command, connection: Connection) -> None:
        parked.append((request, connection))

    async def scenario() -> None:
        async with serving({**HANDLERS, PARK: park}) as server, peer_of(server) as peer:
            peer.send(Command.request(PARK, opaque=1), Command.request(ECHO, opaque=2))
            assert (await peer.receive()).opaque == 2
            request, connection = parked[0]
            connection.send(request.reply(19))
            answer = await peer.receive()
            assert (answer.opaque, answer.code) == (1, 19)

    run(scenario())


@on_both_loops
def test_a_server_asks_its_peer_on_the_same_connection_under_the_same_opaque(run: Run) -> None:
    connections: list[Connection] = []

    async def scenario() -> None:
        async with serving(on_open=connections.append) as server, peer_of(server) as peer:
            peer.send(Command.request(ECHO, opaque=1))
            await peer.receive()
            answer = connections[0].request(Command.request(220), 5)
            pushed = await peer.receive()
            assert (pushed.code, pushed.opaque, pushed.is_response) == (220, 1, False)
            peer.send(Command.request(ECHO, opaque=1), pushed.reply(remark="reset"))
            assert (await in_time(answer)).remark == "reset"
            assert (await peer.receive()).is_response

    run(scenario())


@on_both_loops
def test_one_way_requests_get_no_frame_not_even_on_error(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as peer:
            peer.send(*(Command.request(code, opaque=1, is_one_way=True) for code in (ECHO, FAIL, 4711)))
            peer.send(Command.request(ECHO, opaque=2))
            assert (await peer.receive()).opaque == 2

    run(scenario())


@on_both_loops
def test_an_answer_comes_in_the_encoding_of_its_request(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as peer:
            for encoding in HeaderEncoding:
                peer.send(Command.request(4711, opaque=1, encoding=encoding))
                answer = await peer.receive()
                assert (answer.code, answer.encoding) == (3, encoding)

    run(scenario())


@on_both_loops
def test_opening_and_closing_are_told_once_with_the_peers_address(run: Run) -> None:
    told: list[tuple[str, Connection]] = []

    async def scenario() -> None:
        async with serving(
            on_open=lambda connection: told.append(("open", connection)),
            on_close=lambda connection: told.append(("close", connection)),
        ) as server:
            async with peer_of(server) as peer:
                await until(lambda: len(told) == 1)
                assert told[0][1].peer == peer.address
                assert told[0][1].peer_host[:4] == bytes([127, 0, 0, 1])
            await until(lambda: server.connection_count == 0)
            assert [what for what, _ in told] == ["open", "close"]
            assert told[0][1] is told[1][1]
            assert server.closed_connections == {CloseCause.PEER: 1}

    run(scenario())


@on_both_loops
def test_answers_leave_without_delay(run: Run) -> None:
    sockets: list[socket.socket] = []

    def look(request: Command, connection: Connection) -> Command:
        transport = cast("asyncio.Transport", connection._wire)
        sockets.append(transport.get_extra_info("socket"))
        assert sockets[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        return request.reply()

    async def scenario() -> None:
        async with serving({ECHO: look}) as server, peer_of(server) as peer:
            peer.send(Command.request(ECHO))
            assert (await peer.receive()).code == 0

    run(scenario())


@on_both_loops
def test_one_connection_too_many_is_refused_with_a_line(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(limits=ServerLimits(server_max_connections=2)) as server:
            async with peer_of(server) as first, peer_of(server):
                await until(lambda: server.connection_count == 2)
                async with peer_of(server) as third:
                    assert await third.is_closed()
                assert server.closed_connections[CloseCause.REFUSED] == 1
                assert "cause=REFUSED reason=there are 2 connections already" in caplog.text
                first.send(Command.request(ECHO))
                assert (await first.receive()).code == 0
            await until(lambda: server.connection_count == 0)
            async with peer_of(server) as again:
                again.send(Command.request(ECHO))
                assert (await again.receive()).code == 0

    run(scenario())


@on_both_loops
def test_connections_leave_some_files_to_the_rest_of_the_process(
    run: Run, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections_module, "first_kept_file", lambda: 3)

    async def scenario() -> None:
        async with serving() as server:
            async with peer_of(server) as refused:
                assert await refused.is_closed()
            assert server.closed_connections == {CloseCause.REFUSED: 1}
            assert "reason=3 files are open already; raise the limit of open files" in caplog.text

    run(scenario())


@on_both_loops
def test_the_kernel_keeps_as_much_for_a_peer_as_the_settings_say(run: Run) -> None:
    sizes: list[int] = []

    def tell_size(request: Command, connection: Connection) -> Command:
        assert connection._socket is not None
        sizes.append(connection._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
        return request.reply()

    async def scenario() -> None:
        limits = ServerLimits(server_socket_snd_buf_size=8192, server_socket_rcv_buf_size=8192)
        async with serving({ECHO: tell_size}, limits=limits) as server, peer_of(server) as peer:
            peer.send(Command.request(ECHO))
            await peer.receive()
        assert sizes == [2 * 8192]  # Linux doubles it, for what it needs around the bytes.

    run(scenario())


@on_both_loops
def test_an_idle_connection_is_closed_and_a_busy_one_is_kept(run: Run) -> None:
    async def scenario() -> None:
        limits = ServerLimits(server_channel_max_idle_time_seconds=1)
        async with serving(limits=limits) as server, peer_of(server) as idle, peer_of(server) as busy:
            await until(lambda: server.connection_count == 2)
            while server.connection_count == 2:
                busy.send(Command.request(ECHO))
                await busy.receive()
                await asyncio.sleep(0.05)
            assert await idle.is_closed()
            assert server.closed_connections == {CloseCause.IDLE: 1}
            busy.send(Command.request(ECHO))
            await busy.receive()

    run(scenario())


@on_both_loops
def test_a_peer_that_does_not_read_costs_a_bounded_buffer_and_then_its_connection(run: Run) -> None:
    calls: list[Connection] = []

    def count(request: Command, connection: Connection) -> Command:
        calls.append(connection)
        return big(request, connection)

    async def scenario() -> None:
        limits = ServerLimits(server_write_timeout_millis=400)
        async with serving({**HANDLERS, BIG: count}, limits=limits) as server, peer_of(server) as other:
            with socket.create_connection(("127.0.0.1", server.port)) as greedy:
                greedy.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(greedy, encode_command(Command.request(BIG)) * 1000)
                await until(lambda: server.closed_connections[CloseCause.NOT_READING] == 1)
                # The kernel's buffers take a few, then one is over the mark and one is on its way.
                assert len(calls) < 12
                assert not calls[0].is_open
            other.send(Command.request(ECHO))
            assert (await other.receive()).code == 0

    run(scenario())


@on_both_loops
def test_a_slow_reader_gets_everything_in_the_end(run: Run) -> None:
    async def scenario() -> None:
        async with serving({**HANDLERS, BIG: big}) as server, peer_of(server) as peer:
            peer.send(*(Command.request(BIG, opaque=n) for n in range(40)), Command.request(ECHO, opaque=40))
            for number in range(40):
                answer = await peer.receive()
                assert (answer.opaque, len(answer.body)) == (number, BIG_BYTES)
            assert (await peer.receive()).opaque == 40

    run(scenario())


@on_both_loops
def test_answers_in_pieces_arrive_whole_and_in_order_also_at_a_slow_reader(run: Run) -> None:
    """More pieces than one call of the system takes, of which it takes the first part at once."""
    body = bytes(range(256)) * 4096

    def cut(request: Command, _connection: Connection) -> Pieces:
        pieces = [memoryview(body)[at : at + 600] for at in range(0, len(body), 600)]
        return [encode_head(request.reply(), len(body)), *pieces]

    async def scenario() -> None:
        async with serving({**HANDLERS, BIG: cut}) as server, peer_of(server) as peer:
            peer.send(*(Command.request(BIG, opaque=n) for n in range(20)), Command.request(ECHO, opaque=20))
            for number in range(20):
                answer = await peer.receive()
                assert (answer.opaque, answer.body) == (number, body)
            assert (await peer.receive()).opaque == 20

    run(scenario())


@on_both_loops
def test_answers_given_before_the_stop_arrive_and_then_the_connection_ends(run: Run) -> None:
    given: list[Connection] = []

    def give(request: Command, connection: Connection) -> Command:
        given.append(connection)
        return big(request, connection)

    async def scenario() -> None:
        server = RemotingServer({BIG: give})
        await server.start("127.0.0.1", 0)
        async with peer_of(server) as peer:
            peer.send(Command.request(BIG))
            await until(lambda: len(given) == 1)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(in_time(server.close(grace_s=5)))
                assert len((await peer.receive()).body) == BIG_BYTES
                assert await peer.is_closed()

    run(scenario())


@pytest.mark.parametrize("turns", range(5))
def test_a_peer_that_is_accepted_as_the_server_stops_is_closed_with_the_others(turns: int) -> None:
    async def scenario() -> None:
        server = RemotingServer(HANDLERS)
        await server.start("127.0.0.1", 0)
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as peer:
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.close(1.0)
            # What was left open would be warned of, and keep its peer waiting.
            with contextlib.suppress(ConnectionResetError):
                assert peer.recv(1) == b""

    asyncio.run(scenario())
    gc.collect()


@on_both_loops
def test_a_stop_does_not_wait_longer_than_its_grace_for_a_peer_that_does_not_read(run: Run) -> None:
    given: list[Connection] = []

    def give(request: Command, connection: Connection) -> Command:
        given.append(connection)
        return request.reply(body=bytes(15 << 20))

    async def scenario() -> None:
        server = RemotingServer({BIG: give})
        await server.start("127.0.0.1", 0)
        port = server.port
        with socket.create_connection(("127.0.0.1", port)) as greedy:
            greedy.sendall(encode_command(Command.request(BIG)))
            await until(lambda: len(given) == 1)
            loop = asyncio.get_running_loop()
            started_s = loop.time()
            await in_time(server.close(grace_s=0.2))
            assert 0.2 <= loop.time() - started_s < 2
            assert server.closed_connections[CloseCause.OURS] == 1
        with pytest.raises(ConnectionRefusedError):
            await Peer.connect(port)

    run(scenario())


@on_both_loops
def test_a_thousand_idle_connections_cost_little_memory(run: Run) -> None:
    count = 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * count)), hard))

    async def scenario() -> None:
        peers: list[socket.socket] = []
        async with serving() as server:
            before_bytes = psutil.Process().memory_info().rss
            try:
                for number in range(count):
                    peers.append(socket.create_connection(("127.0.0.1", server.port)))
                    if number % 100 == 99:  # So that the backlog of the listener does not overflow.
                        await until(lambda number=number: server.connection_count == number + 1)
                grown_bytes = psutil.Process().memory_info().rss - before_bytes
                assert grown_bytes / count < 20_000
            finally:
                for peer in peers:
                    peer.close()
            await until(lambda: server.connection_count == 0)

    run(scenario())


@on_both_loops
def test_failures_of_handlers_are_logged_with_code_and_peer(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving() as server, peer_of(server) as peer:
            peer.send(*(Command.request(FAIL, opaque=n, body=b"secret") for n in range(100)))
            answers = [await peer.receive() for _ in range(100)]
            assert {(answer.code, answer.remark) for answer in answers} == {(1, "RuntimeError: cannot do 2")}
            lines = [record for record in caplog.records if record.levelno == logging.ERROR]
            assert 1 <= len(lines) <= 40
            assert f"handler failed peer={peer.address} code=2" in lines[0].getMessage()
            assert "secret" not in caplog.text

    run(scenario())
