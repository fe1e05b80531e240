"""Who calls a dead master is piped, by its parent process, to the broker that is read in its place."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tanist.coord import Create, Put
from tanist.model.host import FAST_PORT_DISTANCE
from tanist.model.reading import (
    Assigned,
    Assignment,
    GroupRole,
    ReadRecord,
    alive_path,
    assignment_path,
    encode_record,
    read_record_path,
)
from tanist.protocol import Command, RequestCode
from tanist.protocol.codes import Language
from tanist.protocol.frame import encode_command
from tanist.supervisor import SupervisorSettings, standing_in
from tanist.supervisor.pipe import CHUNK_BYTES, pipe
from tests.support.kept_registries import KeptSite, kept_site
from tests.support.rocketmq.cluster import free_broker_port

GROUP = "a"
HOST = "127.0.0.1"
WAIT_S = 20.0
MOST_KEPT_BYTES = 4 << 20
"""More than the buffers of two socket pairs and two chunks."""
PULL = encode_command(Command(RequestCode.PULL_MESSAGE, language=Language.JAVA))
SEND = encode_command(Command(RequestCode.SEND_MESSAGE_V2, language=Language.JAVA, body=b"x" * 100))


class PlayedBroker:
    """Answers on its two ports with a mark of the port, and with what it heard."""

    def __init__(self) -> None:
        self.port = free_broker_port()
        self.address = f"{HOST}:{self.port}"
        self.calls = 0

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        main = await asyncio.start_server(self._main, HOST, self.port)
        fast = await asyncio.start_server(self._fast, HOST, self.port - FAST_PORT_DISTANCE)
        async with main, fast:
            yield

    async def _main(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._answer(b"main:", reader, writer)

    async def _fast(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._answer(b"fast:", reader, writer)

    async def _answer(self, mark: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        try:
            writer.write(mark)
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # Whoever was led here was cut.
        finally:
            writer.close()


@dataclass
class Site:
    """A master that is dead, with its slave and another."""

    registry: KeptSite
    slave: PlayedBroker
    other: PlayedBroker
    settings: SupervisorSettings
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def begin(self) -> None:
        """The group as it is when its master has died: the slave lives and is not read yet."""
        brokers = (
            Assigned(address=self.settings.address, role=GroupRole.MASTER, broker_id=0),
            Assigned(address=self.slave.address, role=GroupRole.SLAVE, broker_id=1),
        )
        await self.registry.registry.commit(
            Create(assignment_path(GROUP), encode_record(Assignment(group=GROUP, brokers=brokers))),
            Create(read_record_path(GROUP), encode_record(ReadRecord(group=GROUP))),
        )

    async def slave_lives(self) -> None:
        path = alive_path(GROUP, self.slave.address)
        await self.registry.registry.commit(Create(path, b"{}", is_ephemeral=True))

    async def read_from(self, reader: str | None) -> None:
        path = read_record_path(GROUP)
        found = await self.registry.registry.read(path)
        assert found is not None
        record = encode_record(ReadRecord(group=GROUP, term=found.version + 1, reader=reader))
        await self.registry.registry.commit(Put(path, record, found.version))
        if reader is not None and reader != self.slave.address:
            await self.registry.registry.commit(Create(alive_path(GROUP, reader), b"{}", is_ephemeral=True))

    async def stand_in(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await standing_in.stand_in(self.settings, self.registry.kept, asked=self.asked)

    @asynccontextmanager
    async def standing_in(self) -> AsyncGenerator[asyncio.Task[None]]:
        """The stand-in, which is asked to stop at the end unless it has ended by itself."""
        await self.slave_lives()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.stand_in())
            yield task
            self.asked.set()

    async def call(self, distance: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the dead master, as soon as somebody listens there."""
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    return await asyncio.open_connection(HOST, self.settings.listen_port - distance)
                except ConnectionRefusedError:
                    await asyncio.sleep(0)


def run(
    directory: Path, scenario: Callable[[Site], Awaitable[None]], *, broker_stand_in_mills: int = 35_000
) -> None:
    async def play() -> None:
        slave, other = PlayedBroker(), PlayedBroker()
        settings = SupervisorSettings(
            broker_name=GROUP,
            listen_port=free_broker_port(),
            broker_stand_in_mills=broker_stand_in_mills,
        )
        async with kept_site(directory) as kept, slave.serving(), other.serving():
            site = Site(kept, slave, other, settings)
            await site.begin()
            await scenario(site)

    asyncio.run(play())


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    """What was said until the connection was cut, which may be rough."""
    try:
        async with asyncio.timeout(WAIT_S):
            return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(("distance", "mark"), [(0, b"main:"), (FAST_PORT_DISTANCE, b"fast:")])
def test_a_caller_is_held_until_a_broker_is_read_and_led_to_the_same_port_of_it(
    tmp_path: Path, distance: int, mark: bytes
) -> None:
    async def scenario(site: Site) -> None:
        async with site.standing_in():
            reader, writer = await site.call(distance)
            writer.write(PULL)
            assert site.slave.calls == 0
            await site.read_from(site.slave.address)
            assert await reader.readexactly(len(mark + PULL)) == mark + PULL
            writer.write(b"more")
            assert await reader.readexactly(4) == b"more"
            writer.close()

    run(tmp_path, scenario)


def test_many_bytes_go_through_as_they_are(tmp_path: Path) -> None:
    data = PULL + bytes(range(256)) * 4096

    async def scenario(site: Site) -> None:
        await site.read_from(site.slave.address)
        async with site.standing_in():
            reader, writer = await site.call()
            writer.write(data)
            assert await reader.readexactly(len(b"main:" + data)) == b"main:" + data
            writer.close()

    run(tmp_path, scenario)


def test_no_more_is_read_of_a_caller_than_the_other_end_takes() -> None:
    async def play() -> None:
        with ExitStack() as stack:
            ends = [end for _ in range(2) for end in socket.socketpair()]
            client, caller, callee, broker = [stack.enter_context(end) for end in ends]
            for end in ends:
                end.setblocking(False)
            async with asyncio.TaskGroup() as tasks:
                piping = tasks.create_task(pipe(caller, callee, b""))
                sent = await fill(client)
                assert await drain(broker, sent) == bytes(sent)
                client.close()
                await piping

    async def fill(end: socket.socket) -> int:
        """Send until nobody has taken anything for many turns; how much that was."""
        sent = refused = 0
        while refused < 100:
            try:
                sent += end.send(bytes(CHUNK_BYTES))
                refused = 0
                assert sent < MOST_KEPT_BYTES
            except BlockingIOError:
                refused += 1
            await asyncio.sleep(0)
        return sent

    async def drain(end: socket.socket, count: int) -> bytes:
        received = b""
        while len(received) < count:
            received += await asyncio.get_running_loop().sock_recv(end, CHUNK_BYTES)
        return received

    asyncio.run(play())


def test_callers_are_cut_when_another_broker_is_read_and_led_to_it_when_they_call_again(
    tmp_path: Path,
) -> None:
    async def scenario(site: Site) -> None:
        await site.read_from(site.slave.address)
        async with site.standing_in():
            reader, writer = await site.call()
            writer.write(PULL)
            await reader.readexactly(len(b"main:" + PULL))
            await site.read_from(site.other.address)
            assert await read_to_end(reader) == b""
            writer.close()

            reader, writer = await site.call()
            writer.write(PULL)
            await reader.readexactly(len(b"main:" + PULL))
            assert (site.slave.calls, site.other.calls) == (1, 1)
            writer.close()

    run(tmp_path, scenario)


def test_it_ends_and_cuts_everybody_when_nobody_is_read_any_more(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        await site.read_from(site.slave.address)
        async with site.standing_in() as task:
            reader, writer = await site.call()
            writer.write(PULL)
            await reader.readexactly(len(b"main:" + PULL))
            await site.read_from(None)
            await task
            assert await read_to_end(reader) == b""
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(HOST, site.settings.listen_port)

    run(tmp_path, scenario)


def test_it_ends_when_its_time_is_over_and_cuts_who_is_held(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        async with site.standing_in() as task:
            reader, writer = await site.call()
            writer.write(PULL)
            assert await read_to_end(reader) == b""
            writer.close()
            await task

    run(tmp_path, scenario, broker_stand_in_mills=1000)


def test_it_ends_at_once_when_it_is_asked_to(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        await site.read_from(site.slave.address)
        async with site.standing_in() as task:
            callers = [await site.call() for _ in range(3)]
            for _, writer in callers[1:]:
                writer.write(PULL)
            await callers[1][0].readexactly(len(b"main:" + PULL))
            site.asked.set()
            await task
            for reader, writer in callers:
                await read_to_end(reader)
                writer.close()

    run(tmp_path, scenario)


def test_who_sends_messages_is_turned_away_at_once(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        async with site.standing_in():
            reader, writer = await site.call()
            writer.write(SEND)
            assert await read_to_end(reader) == b""
            writer.close()
        assert site.slave.calls == 0

    run(tmp_path, scenario)


def test_a_caller_is_closed_if_the_reader_can_not_be_reached(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        await site.read_from(f"{HOST}:{free_broker_port()}")
        async with site.standing_in():
            reader, writer = await site.call()
            writer.write(PULL)
            assert await read_to_end(reader) == b""
            writer.close()

    run(tmp_path, scenario)


def test_callers_beyond_the_most_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_in, "_MOST_CALLERS", 1)

    async def scenario(site: Site) -> None:
        async with site.standing_in():
            _, first = await site.call()
            first.write(PULL)
            reader, second = await site.call()
            assert await read_to_end(reader) == b""
            first.close()
            second.close()

    run(tmp_path, scenario)


def test_there_is_no_stand_in_without_a_slave_that_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run(tmp_path, Site.stand_in)
    assert "no slave lives that may be read" in caplog.text
    assert "stand-in began" not in caplog.text


def test_there_is_no_stand_in_without_a_registry(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        await site.slave_lives()
        site.registry.held[-1].is_away = True
        await site.stand_in()

    caplog.set_level(logging.INFO)
    run(tmp_path, scenario)
    assert "it is away" in caplog.text
    assert "stand-in began" not in caplog.text


def test_there_is_no_stand_in_if_somebody_has_the_port(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        await site.slave_lives()
        with socket.create_server((HOST, site.settings.listen_port - FAST_PORT_DISTANCE)):
            await site.stand_in()

    caplog.set_level(logging.INFO)
    run(tmp_path, scenario)
    assert "Address already in use" in caplog.text
    assert "stand-in began" not in caplog.text
