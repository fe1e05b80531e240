"""A client, our server, and servers that misbehave."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any

import pytest

from tanist.errors import ConnectFailed, ConnectionLost, RequestTimeout, TooBusy
from tanist.protocol import Command, ResponseCode
from tanist.remoting import ClientLimits, CloseCause, Connection, Handler, RemotingClient, RemotingServer
from tests.support.conditions import until
from tests.support.remoting import (
    ECHO,
    HANDLERS,
    PARK,
    Peer,
    Run,
    fake_server,
    in_time,
    on_both_loops,
    serving,
    silent_address,
)


@contextlib.asynccontextmanager
async def asking(
    handlers: Mapping[int, Handler] | None = None,
    *,
    limits: ClientLimits | None = None,
    on_connect: Callable[[str], None] | None = None,
    on_disconnect: Callable[[str], None] | None = None,
) -> AsyncGenerator[RemotingClient]:
    client = RemotingClient(handlers, limits=limits, on_connect=on_connect, on_disconnect=on_disconnect)
    try:
        yield client
    finally:
        await in_time(client.close())


def address_of(server: RemotingServer) -> str:
    return f"127.0.0.1:{server.port}"


async def ask(client: RemotingClient, address: str, code: int = ECHO, timeout_s: float = 5) -> Command:
    return await in_time(client.request(address, Command.request(code, body=b"x"), timeout_s=timeout_s))


def unused_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@on_both_loops
def test_all_who_ask_one_address_share_one_connection(run: Run) -> None:
    async def scenario() -> None:
        async with serving() as server, asking() as client:
            answers = await asyncio.gather(*(ask(client, address_of(server)) for _ in range(200)))
            assert {bytes(answer.body) for answer in answers} == {b"x"}
            assert server.connection_count == 1

    run(scenario())


@on_both_loops
def test_answers_find_their_requests_whatever_their_order(run: Run) -> None:
    async def backwards(peer: Peer) -> None:
        requests = [await peer.receive() for _ in range(50)]
        for request in reversed(requests):
            peer.send(request.reply(remark=str(request.code)))
        await peer.is_closed()

    async def scenario() -> None:
        async with fake_server(backwards) as address, asking() as client:
            answers = await asyncio.gather(*(ask(client, address, code) for code in range(50)))
            assert [answer.remark for answer in answers] == [str(code) for code in range(50)]

    run(scenario())


@on_both_loops
def test_a_pushed_request_under_the_opaque_of_ours_is_handled_and_ours_goes_on(run: Run) -> None:
    async def push_first(peer: Peer) -> None:
        request = await peer.receive()
        peer.send(Command.request(220, opaque=request.opaque))
        pushed = await peer.receive()
        assert pushed.is_response
        peer.send(request.reply(remark=pushed.remark))
        await peer.is_closed()

    def reset(request: Command, _connection: Connection) -> Command:
        return request.reply(remark="I did")

    async def scenario() -> None:
        async with fake_server(push_first) as address, asking({220: reset}) as client:
            assert (await ask(client, address)).remark == "I did"

    run(scenario())


@on_both_loops
def test_a_dead_peer_fails_its_requests_at_once_and_the_next_request_connects_again(run: Run) -> None:
    connection_count = 0

    async def die_once(peer: Peer) -> None:
        nonlocal connection_count
        connection_count += 1
        request = await peer.receive()
        if connection_count > 1:
            peer.send(request.reply(remark="alive"))
            await peer.is_closed()

    async def scenario() -> None:
        async with fake_server(die_once) as address, asking() as client:
            with pytest.raises(ConnectionLost, match="the connection to 127"):
                await ask(client, address, timeout_s=60)
            assert (await ask(client, address)).remark == "alive"

    run(scenario())


@on_both_loops
def test_a_silent_peer_times_out_and_its_connection_serves_on(run: Run) -> None:
    async def scenario() -> None:
        handlers: dict[int, Handler] = {**HANDLERS, PARK: lambda _request, _connection: None}
        async with serving(handlers) as server, asking() as client:
            await ask(client, address_of(server))  # Connecting takes its time, too.
            with pytest.raises(RequestTimeout, match="did not answer request code 3 within"):
                await ask(client, address_of(server), PARK, timeout_s=0.05)
            assert (await ask(client, address_of(server))).body == b"x"
            assert server.closed_connections.total() == 0

    run(scenario())


@on_both_loops
def test_a_silent_peer_can_be_given_up_for_a_new_connection(run: Run) -> None:
    async def scenario() -> None:
        lost: list[str] = []
        handlers: dict[int, Handler] = {**HANDLERS, PARK: lambda _request, _connection: None}
        async with serving(handlers) as server, asking(on_disconnect=lost.append) as client:
            address = address_of(server)
            client.give_up(address, "there is none yet")
            await ask(client, address)
            waiting = asyncio.ensure_future(ask(client, address, PARK))
            await asyncio.sleep(0)
            client.give_up(address, "it is silent")
            with pytest.raises(ConnectionLost, match="it is silent"):
                await in_time(waiting)
            await until(lambda: lost == [address])
            assert (await ask(client, address)).body == b"x"

    run(scenario())


@on_both_loops
def test_a_peer_of_which_nothing_is_wanted_is_hung_up_on_and_does_not_count_as_lost(run: Run) -> None:
    async def scenario() -> None:
        lost: list[str] = []
        closed: list[Connection] = []
        handlers: dict[int, Handler] = {**HANDLERS, PARK: lambda _request, _connection: None}
        async with (
            serving(handlers, on_close=closed.append) as server,
            asking(on_disconnect=lost.append) as client,
        ):
            address = address_of(server)
            client.hang_up(address, "there is none yet")
            await ask(client, address)
            waiting = asyncio.ensure_future(ask(client, address, PARK))
            await asyncio.sleep(0)
            client.hang_up(address, "somebody waits there")
            assert (await ask(client, address)).body == b"x"
            assert not closed
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            client.hang_up(address, "nobody waits there")
            await until(lambda: len(closed) == 1)
            assert not lost
            assert (await ask(client, address)).body == b"x"

    run(scenario())


@on_both_loops
def test_a_refused_connection_is_reported_with_its_address(run: Run) -> None:
    async def scenario() -> None:
        address = unused_address()
        async with asking() as client:
            outcomes = await asyncio.gather(*(ask(client, address) for _ in range(3)), return_exceptions=True)
            for outcome in outcomes:
                assert isinstance(outcome, ConnectFailed)
                assert outcome.address == address

    run(scenario())


@on_both_loops
@pytest.mark.parametrize("address", ["", "localhost", ":1", "host:", "host:x", "host:0", "host:65536"])
def test_an_address_that_is_none_is_reported(run: Run, address: str) -> None:
    async def scenario() -> None:
        async with asking() as client:
            with pytest.raises(ConnectFailed, match="an address is host:port"):
                await ask(client, address)

    run(scenario())


@on_both_loops
def test_a_connection_that_does_not_come_about_is_given_up(run: Run) -> None:
    async def scenario() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            host, port = full.getsockname()
            fillers = [socket.socket() for _ in range(3)]
            for filler in fillers:  # The queue of the listener is full now: further attempts hang.
                filler.setblocking(False)
                filler.connect_ex((host, port))
            async with asking(limits=ClientLimits(connect_timeout_millis=100)) as client:
                with pytest.raises(ConnectFailed, match=r"no connection within 0\.1 s"):
                    await ask(client, f"{host}:{port}", timeout_s=9)
                with pytest.raises(ConnectFailed, match=r"no connection within 0\.01 s"):
                    await ask(client, f"{host}:{port}", timeout_s=0.01)
            for filler in fillers:
                filler.close()

    run(scenario())


@on_both_loops
def test_a_request_that_is_cancelled_does_not_disturb_those_who_wait_for_the_same_connection(
    run: Run,
) -> None:
    async def scenario() -> None:
        async with serving() as server, asking() as client:
            first = asyncio.create_task(ask(client, address_of(server)))
            second = asyncio.create_task(ask(client, address_of(server)))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).body == b"x"
            assert first.cancelled()

    run(scenario())


@on_both_loops
def test_one_way_requests_arrive_in_order_over_a_connection_that_is_opened_for_them(run: Run) -> None:
    seen: list[Command] = []

    def note(request: Command, _connection: Connection) -> None:
        seen.append(request)

    async def scenario() -> None:
        async with serving({905: note}) as server, asking() as client:
            for number in range(3):
                client.notify(address_of(server), Command.request(905, ext={"n": str(number)}))
            await until(lambda: len(seen) == 3)
            client.notify(address_of(server), Command.request(905, ext={"n": "3"}))
            await until(lambda: len(seen) == 4)
            assert [request.ext["n"] for request in seen] == ["0", "1", "2", "3"]
            assert all(request.is_one_way for request in seen)
            assert server.connection_count == 1

    run(scenario())


@on_both_loops
def test_a_one_way_request_to_nobody_is_dropped_quietly(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        address = unused_address()
        async with asking() as client:
            with caplog.at_level(logging.DEBUG, "tanist.remoting"):
                client.notify(address, Command.request(905))
                await until(lambda: "one-way request dropped" in caplog.text)
            assert not [record for record in caplog.records if record.levelno > logging.DEBUG]

    run(scenario())


@on_both_loops
def test_too_many_requests_at_once_are_refused(run: Run) -> None:
    async def scenario() -> None:
        handlers: dict[int, Handler] = {PARK: lambda _request, _connection: None}
        limits = ClientLimits(client_async_semaphore_value=2)
        async with serving(handlers) as server, asking(limits=limits) as client:
            outcomes = await asyncio.gather(
                *(ask(client, address_of(server), PARK, timeout_s=1) for _ in range(3)),
                return_exceptions=True,
            )
            assert [type(outcome) for outcome in outcomes] == [RequestTimeout, RequestTimeout, TooBusy]

    run(scenario())


@on_both_loops
def test_an_idle_connection_is_closed_and_opened_again_when_needed(run: Run) -> None:
    async def scenario() -> None:
        limits = ClientLimits(client_channel_max_idle_time_seconds=1)
        async with serving() as server, asking(limits=limits) as client:
            await ask(client, address_of(server))
            await until(lambda: server.closed_connections.total() == 1)
            assert (await ask(client, address_of(server))).body == b"x"

    run(scenario())


@on_both_loops
def test_closing_fails_those_who_wait_and_ends_the_connections(run: Run) -> None:
    async def scenario() -> None:
        handlers: dict[int, Handler] = {PARK: lambda _request, _connection: None}
        async with serving(handlers) as server, asking() as client:
            waiting = asyncio.create_task(ask(client, address_of(server), PARK))
            await until(lambda: server.connection_count == 1)
            await client.close()
            with pytest.raises((ConnectionLost, ConnectFailed)):
                await waiting
            with pytest.raises(ConnectFailed, match="the client is closed"):
                await ask(client, address_of(server))
            await until(lambda: server.connection_count == 0)
            assert server.closed_connections == {CloseCause.PEER: 1}

    run(scenario())


@on_both_loops
def test_garbage_from_a_server_ends_the_connection(run: Run) -> None:
    async def babble(peer: Peer) -> None:
        await peer.receive()
        peer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.is_closed()

    async def scenario() -> None:
        async with fake_server(babble) as address, asking() as client:
            with pytest.raises(ConnectionLost, match="over the limit"):
                await ask(client, address)

    run(scenario())


@on_both_loops
def test_connecting_may_be_left_less_time_than_the_answer(run: Run) -> None:
    async def scenario() -> None:
        with silent_address() as address:
            async with asking() as client:
                request = client.request(address, Command.request(ECHO), timeout_s=60, connect_s=0.2)
                with pytest.raises(ConnectFailed, match=r"within 0\.2 s"):
                    await in_time(request)

    run(scenario())


@on_both_loops
def test_a_peer_that_says_go_away_is_left_once_and_answers_what_it_was_asked(run: Run) -> None:
    async def scenario() -> None:
        parked: list[tuple[Command, Connection]] = []
        come: list[str] = []
        gone: list[str] = []

        def park(request: Command, connection: Connection) -> None:
            parked.append((request, connection))

        async with (
            serving({**HANDLERS, PARK: park}) as server,
            asking(on_connect=come.append, on_disconnect=gone.append) as client,
        ):
            address = address_of(server)
            early = [asyncio.ensure_future(ask(client, address, PARK)) for _ in range(3)]
            await until(lambda: len(parked) == 3)
            (first, connection), (second, _), (third, _) = parked
            connection.send(first.reply(ResponseCode.GO_AWAY))
            assert (await early[0]).code == ResponseCode.GO_AWAY
            assert gone == [address]
            await ask(client, address)
            assert server.connection_count == 2
            connection.send(second.reply(ResponseCode.GO_AWAY))
            await early[1]
            await ask(client, address)
            assert server.connection_count == 2
            connection.send(third.reply(body=b"late"))
            assert bytes((await early[2]).body) == b"late"
            assert (come, gone) == ([address] * 2, [address])

    run(scenario())


@on_both_loops
def test_cancelled_requests_take_no_room_of_others(run: Run) -> None:
    async def scenario() -> None:
        parked: list[Command] = []
        limits = ClientLimits(client_async_semaphore_value=2)
        handlers: dict[int, Handler] = {**HANDLERS, PARK: lambda request, _: parked.append(request)}
        async with serving(handlers) as server, asking(limits=limits) as client:
            for count in (2, 4):
                given_up = [asyncio.ensure_future(ask(client, address_of(server), PARK)) for _ in range(2)]
                await until(lambda count=count: len(parked) == count)
                for request in given_up:
                    request.cancel()
                await asyncio.wait(given_up)
            assert (await ask(client, address_of(server))).code == ResponseCode.SUCCESS

    run(scenario())


@on_both_loops
@pytest.mark.parametrize("host", ["a..b", ".a", "a" * 70])
def test_a_name_that_can_not_be_one_is_no_connection(run: Run, host: str) -> None:
    async def scenario() -> None:
        async with asking() as client:
            with pytest.raises(ConnectFailed):
                await ask(client, f"{host}:9876")

    run(scenario())


@on_both_loops
def test_posts_of_one_turn_arrive_in_order(run: Run) -> None:
    async def scenario() -> None:
        seen: list[bytes] = []

        def note(request: Command, _connection: Connection) -> None:
            assert request.is_one_way
            seen.append(bytes(request.body))

        async with serving({PARK: note}) as server, asking() as client:
            for number in range(1000):
                body = b"%d" % number
                await client.post(address_of(server), Command.request(PARK, body=body), timeout_s=5)
            await until(lambda: len(seen) == 1000)
            assert seen == [b"%d" % number for number in range(1000)]

    run(scenario())


@on_both_loops
def test_posts_wait_for_a_peer_that_does_not_read_and_then_give_up(run: Run) -> None:
    async def scenario() -> None:
        may_read = asyncio.Event()
        count = 0

        async def read_late(peer: Peer) -> None:
            nonlocal count
            await may_read.wait()
            while True:
                await peer.receive()
                count += 1

        def post(timeout_s: float) -> Coroutine[Any, Any, None]:
            return client.post(address, Command.request(PARK, body=bytes(1 << 20)), timeout_s=timeout_s)

        async with fake_server(read_late) as address, asking() as client:
            sent = 0
            with contextlib.suppress(TooBusy):
                while sent < 200:
                    await in_time(post(0.2))
                    sent += 1
            assert 0 < sent < 200
            waiting = asyncio.ensure_future(post(10))
            await asyncio.sleep(0)
            may_read.set()
            await in_time(waiting)
            await until(lambda: count == sent + 1)

    run(scenario())
