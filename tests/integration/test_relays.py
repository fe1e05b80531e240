"""Stock clients of a slave whose master is read, relayed to it over real connections."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from tanist.broker.client_ports import ClientPorts
from tanist.broker.settings import BrokerRole
from tanist.broker.slave_consume import relay
from tanist.broker.state import BrokerState
from tanist.client import Message, Producer
from tanist.clock import SystemClock
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.subscription import subscribe
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.client import ConsumerData, ConsumerList, HeartbeatData
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.common import ConsumerGroupRequest
from tanist.protocol.headers.pull import PullMessageRequest, PullSysFlag
from tanist.protocol.headers.send import ConsumerSendBackRequest
from tanist.remoting import Connection, RemotingClient, ServerLimits, bind_port
from tanist.testing import EmbeddedBroker
from tests.support.broker_tables import SETTINGS
from tests.support.conditions import until
from tests.support.read_rights import OTHER_IS_READ, SLAVE_IS_READ, GivenRight
from tests.support.working_broker import working_broker

TOPIC, GROUP = "Orders", "billing"
SLAVE = msgspec.structs.replace(SETTINGS, broker_role=BrokerRole.SLAVE, broker_id=1)
_IN_TIME_S = 10.0


class _StockClient:
    """One connection of a client in Java, and what it was told there."""

    def __init__(self, address: str, client_id: str) -> None:
        self._address = address
        self._client_id = client_id
        self.told: list[int] = []
        self._client = RemotingClient({RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._on_told})

    async def ask(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        request = Command.request(code, header, body=body)
        request.language = Language.JAVA
        return await self._client.request(self._address, request, timeout_s=_IN_TIME_S)

    async def beat(self) -> Command:
        consumer = ConsumerData(
            group_name=GROUP,
            consume_type=ConsumeType.PASSIVELY,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
            subscription_data_set=[subscribe(TOPIC, "*", sub_version=1)],
        )
        heartbeat = HeartbeatData(client_id=self._client_id, consumer_data_set=[consumer])
        return await self.ask(RequestCode.HEART_BEAT, body=encode_body(heartbeat))

    async def pull(self, queue_offset: int) -> Command:
        header = PullMessageRequest(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=0,
            queue_offset=QueueOffset(queue_offset),
            max_message_count=32,
            sys_flag=PullSysFlag.SUSPEND,
            consumer_offset=QueueOffset(0),
            suspend_timeout_ms=15_000,
            sub_version=1,
        )
        return await self.ask(RequestCode.PULL_MESSAGE, header)

    async def members(self) -> list[str]:
        header = ConsumerGroupRequest(consumer_group=GROUP)
        answer = await self.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        return decode_java_json(answer.body, ConsumerList).client_ids

    async def close(self) -> None:
        await self._client.close()

    def _on_told(self, command: Command, _connection: Connection) -> None:
        self.told.append(command.code)


@dataclass
class _Slave:
    """The ports of a slave whose master is read."""

    address: str
    right: GivenRight
    state: BrokerState

    def be_read(self) -> None:
        self.right.give(SLAVE_IS_READ._replace(reader=self.right.address))


@asynccontextmanager
async def _slave_of(reader: str, root: Path) -> AsyncGenerator[_Slave]:
    async with working_broker(root, SLAVE, clock=SystemClock()) as broker:
        bound = bind_port("127.0.0.1", 0)
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        right = GivenRight(OTHER_IS_READ._replace(reader=reader), address=address)
        ports = ClientPorts(broker.state, ServerLimits(), None, None)
        ports.obey(right)
        ports.serve_as_slave()
        async with ports.closing():
            await ports.start(bound, has_fast=False)
            yield _Slave(address, right, broker.state)


def test_a_relayed_client_is_a_member_where_it_is_read_pulls_there_and_is_told_of_others(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker, _slave_of(broker.address, tmp_path) as slave:
            first, second = _StockClient(slave.address, "a"), _StockClient(slave.address, "b")
            try:
                await first.beat()
                pulling = asyncio.ensure_future(first.pull(0))
                await second.beat()
                # Who only beats is relayed nowhere.
                assert await first.members() == ["a"]
                assert await second.members() == ["a", "b"]
                # Of itself, and of the other one.
                await until(lambda: len(first.told) == 2)
                async with Producer(namesrv=broker.namesrv, group="sending") as producer:
                    await producer.send(Message(TOPIC, b"hello"))
                pulled = await pulling
                assert pulled.code == ResponseCode.SUCCESS
                assert b"hello" in bytes(pulled.body)
                await second.close()
                await until(lambda: len(first.told) == 3)
                assert await first.members() == ["a"]
            finally:
                await first.close()
                await second.close()

    asyncio.run(scenario())


def test_what_a_consumer_failed_on_is_relayed_to_the_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker, _slave_of(broker.address, tmp_path) as slave:
            client = _StockClient(slave.address, "a")
            try:
                await client.beat()
                await client.members()
                async with Producer(namesrv=broker.namesrv, group="sending") as producer:
                    await producer.send(Message(TOPIC, b"hello"))
                header = ConsumerSendBackRequest(log_offset=LogOffset(0), group=GROUP, delay_level=1)
                answer = await client.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
                assert answer.code == ResponseCode.SUCCESS
            finally:
                await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_pull_that_waits_at_the_other_broker_is_to_be_sent_again_when_the_relay_ends(
    tmp_path: Path, is_stopped: bool
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            async with _slave_of(broker.address, tmp_path) as slave:
                client = _StockClient(slave.address, "a")
                await client.beat()
                assert await client.members() == ["a"]
                pulling = asyncio.ensure_future(client.pull(0))
                await client.members()
                if not is_stopped:
                    slave.be_read()
                    await pulling
                    # It was noted when it came, and is a member without another heartbeat.
                    assert await client.members() == ["a"]
                    assert slave.state.clients.member_ids(GROUP) == ["a"]
            pulled = await pulling
            assert pulled.code == ResponseCode.PULL_RETRY_IMMEDIATELY
            assert pulled.ext["nextBeginOffset"] == "0"
            await client.close()

    asyncio.run(scenario())


def test_two_brokers_that_take_each_other_for_the_one_that_is_read_relay_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "OPEN_S", 0.1)

    async def scenario() -> None:
        async with (
            _slave_of("127.0.0.1:1", tmp_path / "b") as second,
            _slave_of(second.address, tmp_path / "a") as first,
        ):
            second.right.give(second.right.found._replace(reader=first.address))
            client = _StockClient(first.address, "a")
            try:
                answer = await client.pull(0)
                assert answer.code == ResponseCode.NO_PERMISSION
                assert answer.ext["readerAddress"] == second.address
            finally:
                await client.close()

    asyncio.run(scenario())
