"""Sync double write between real brokers in one process: what a producer is told, and what is true then."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tanist.broker import Broker, lane
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.ha.settings import HaSettings
from tanist.model.topics import TopicConfig
from tanist.protocol import Command, FrameDecoder, ResponseCode, encode_command
from tanist.protocol.headers.send import SendMessageResponse
from tanist.protocol.message_id import decode_offset_id
from tests.support.conditions import until
from tests.support.messages import SMALL
from tests.support.partners import require
from tests.support.requests import NO_NAME_SERVER, TOPIC, send_request

R = ResponseCode
PLAIN = "UNIQ_KEY\x01AB12\x02TAGS\x01red\x02WAIT\x01true"
TOPICS = (TopicConfig(topic_name=TOPIC, read_queue_count=4, write_queue_count=4),)
STORE = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 20)
PATIENCE_MS = 300


@pytest.fixture(params=["c", "python"])
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends by the lane of C, and each by its connection."""
    if request.param == "python":
        monkeypatch.setattr(lane, "engine", None)
    else:
        require("native")


class _Link:
    """What lies between a master and a slave; it can be held up, so that no ack comes through."""

    def __init__(self, ha_port: int) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self._ha_port = ha_port
        self._ends: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        self.is_open.set()
        self._server.close()
        for end in self._ends:
            end.close()
        await self._server.wait_closed()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._ha_port)
        except OSError:
            writer.close()
            return
        self._ends += [writer, to_writer]
        await asyncio.gather(self._pump(reader, to_writer, self.is_open), self._pump(to_reader, writer))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event | None = None
    ) -> None:
        try:
            while data := await reader.read(1 << 16):
                if gate is not None:
                    await gate.wait()
                writer.write(data)
        except OSError:
            pass
        finally:
            writer.close()


class _Group:
    """A SYNC_MASTER, its slaves, and a producer that asks by hand."""

    def __init__(self, root: Path, stack: AsyncExitStack, **ha: int) -> None:
        self.root = root
        self._stack = stack
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.ha_port: int = free.getsockname()[1]
        self.master_ha = HaSettings(ha_listen_port=self.ha_port, slave_timeout=PATIENCE_MS, **ha)  # pyright: ignore[reportArgumentType]
        self.link = _Link(self.ha_port)
        self.master = Broker(
            self._settings("master", BrokerRole.SYNC_MASTER, 0), STORE, ha=self.master_ha, topics=TOPICS
        )
        self.stack_of_master = AsyncExitStack()

    async def start(self) -> None:
        await self.stack_of_master.enter_async_context(self.master.serving())
        self._stack.push_async_exit(self.stack_of_master)
        self.link_address = await self.link.start()
        self._stack.push_async_callback(self.link.close)
        host, _, port = self.master.address.rpartition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        self._stack.callback(self._writer.close)
        self._decoder = FrameDecoder()

    async def add_slave(self, number: int = 1) -> AsyncExitStack:
        """A slave in step, as far as sends tell. Closing what is returned stops it."""
        name = f"slave-{number}"
        slave = Broker(
            self._settings(name, BrokerRole.SLAVE, number),
            STORE,
            ha=HaSettings(ha_master_address=self.link_address),
        )
        stack = AsyncExitStack()
        await stack.enter_async_context(slave.serving())
        self._stack.push_async_exit(stack)
        await until(lambda: self.log(name).rstrip(b"\0") == self.log("master").rstrip(b"\0"))
        return stack

    def log(self, name: str) -> bytes:
        """The first file of a broker's log, as it lies on the disk."""
        path = self.root / name / "commitlog" / f"{0:020}"
        return path.read_bytes() if path.exists() else b""

    async def send(self, *bodies: bytes) -> list[Command]:
        """Send messages one behind the other; their answers."""
        requests = [send_request(body, properties=PLAIN) for body in bodies]
        for number, request in enumerate(requests):
            request.opaque = number
        self._writer.write(b"".join(map(encode_command, requests)))
        return await self.answers(len(bodies))

    async def answers(self, count: int) -> list[Command]:
        found: list[Command] = []
        async with asyncio.timeout(10):
            while len(found) < count and (data := await self._reader.read(1 << 16)):
                found += self._decoder.feed(data)
        return found

    async def until_told(self, code: ResponseCode, body: bytes = b"next") -> None:
        """Send until the answer has this code."""
        async with asyncio.timeout(10):
            while (await self.send(body))[0].code != code:
                pass

    def _settings(self, name: str, role: BrokerRole, broker_id: int) -> BrokerSettings:
        return BrokerSettings(
            broker_name="broker-a",
            broker_role=role,
            broker_id=broker_id,
            listen_port=0,
            bind_address="127.0.0.1",
            broker_ip1="127.0.0.1",
            namesrv_addr=NO_NAME_SERVER,
            store_path_root_dir=str(self.root / name),
        )


@asynccontextmanager
async def group(root: Path, **ha: int) -> AsyncGenerator[_Group]:
    async with AsyncExitStack() as stack:
        one = _Group(root, stack, **ha)
        await one.start()
        yield one


@pytest.mark.usefixtures("twin")
@pytest.mark.behaviour("S1-105", "S1-108", "S1-111", "S3-6", "S5-11")
def test_who_is_told_success_finds_the_message_on_the_slave(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group(tmp_path) as brokers:
            await brokers.add_slave()
            await brokers.until_told(R.SUCCESS)
            for round_number in range(5):
                answers = await brokers.send(*(b"x" * 1000 + bytes([round_number, n]) for n in range(20)))
                assert [answer.code for answer in answers] == [R.SUCCESS] * 20
                last = answers[-1].header(SendMessageResponse).msg_id
                offset = decode_offset_id(last)[1]
                end = offset + int.from_bytes(brokers.log("master")[offset : offset + 4])
                assert brokers.log("slave-1")[:end] == brokers.log("master")[:end]

    asyncio.run(scenario())


@pytest.mark.usefixtures("twin")
@pytest.mark.behaviour("S1-109", "S1-110", "S1-113", "S1-125")
@pytest.mark.known_bug("RMQ #1390", "RMQ #7790")
def test_what_a_producer_is_told_follows_its_slave(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with group(tmp_path) as brokers:
            assert (await brokers.send(b"alone"))[0].code == R.SLAVE_NOT_AVAILABLE
            slave = await brokers.add_slave()
            await brokers.until_told(R.SUCCESS)
            brokers.link.is_open.clear()
            late = await brokers.send(b"one", b"two")
            assert [answer.code for answer in late] == [R.FLUSH_SLAVE_TIMEOUT] * 2
            brokers.link.is_open.set()
            await brokers.until_told(R.SUCCESS)
            await slave.aclose()
            await brokers.until_told(R.SLAVE_NOT_AVAILABLE, b"alone again")
            # All of them are on the master whatever was told, and its slave gets them when it is back.
            assert all(body in brokers.log("master") for body in (b"one", b"two", b"alone again"))
            await brokers.add_slave()
            await brokers.until_told(R.SUCCESS)
            assert b"alone again" in brokers.log("slave-1")

    asyncio.run(scenario())
    told = [line for line in caplog.messages if "topic=TopicA tags=red client=127.0.0.1:" in line]
    assert {line.partition(" topic")[0] for line in told} == {"slave not available", "flush slave timeout"}


@pytest.mark.behaviour("S1-111", "S1-122")
def test_with_two_slaves_one_that_acks_is_enough_and_both_are_sent_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group(tmp_path) as brokers:
            await brokers.add_slave(1)
            brokers.link_address = f"127.0.0.1:{brokers.ha_port}"
            await brokers.add_slave(2)
            await brokers.until_told(R.SUCCESS)
            brokers.link.is_open.clear()
            assert (await brokers.send(b"for both"))[0].code == R.SUCCESS
            # Acks of the first one are held up; the log reaches it all the same.
            await until(lambda: b"for both" in brokers.log("slave-1"))
            assert b"for both" in brokers.log("slave-2")

    asyncio.run(scenario())


@pytest.mark.usefixtures("twin")
def test_a_master_that_stops_answers_who_waits_for_its_slave(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group(tmp_path) as brokers:
            await brokers.add_slave()
            await brokers.until_told(R.SUCCESS)
            brokers.link.is_open.clear()
            sending = asyncio.create_task(brokers.send(b"last words"))
            await until(lambda: b"last words" in brokers.log("master"))
            await brokers.stack_of_master.aclose()
            assert [answer.code for answer in await sending] == [R.FLUSH_SLAVE_TIMEOUT]

    asyncio.run(scenario())


@pytest.mark.usefixtures("twin")
def test_with_too_few_in_step_a_master_takes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group(tmp_path, min_in_sync_replicas=2) as brokers:
            (answer,) = await brokers.send(b"refused")
            assert answer.code == R.SYSTEM_ERROR
            assert (answer.remark or "").startswith("IN_SYNC_REPLICAS_NOT_ENOUGH")
            assert b"refused" not in brokers.log("master")
            await brokers.add_slave()
            await brokers.until_told(R.SUCCESS)

    asyncio.run(scenario())
