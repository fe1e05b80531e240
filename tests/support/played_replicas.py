"""A controller inside the test, and brokers that are played: they say what a test wants said."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from tanist.controller import Controller, ControllerSettings
from tanist.controller.leading import OpenSession
from tanist.errors import RemotingError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.replication import ReplicaGroupView, SyncStateData, SyncStateSet
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatResponse,
    ControllerMetadataResponse,
    NotifyRoleChangedRequest,
    RegisterReplicaRequest,
    ReportDeadBrokerRequest,
)
from tanist.remoting import Connection, RemotingClient, RemotingServer
from tests.support.conditions import turns
from tests.support.reigning import CLUSTER, NAME, asks, heartbeat

LONG_MS = 60_000
"""How long a played broker may be silent, unless a test says otherwise: longer than the test."""
SHORT_MS = 1_000
"""For tests in which somebody is missed."""
_BEAT_S = 0.05
_DEADLINE_S = 10.0


@asynccontextmanager
async def controlling(
    directory: Path, *, open_session: OpenSession | None = None, **settings: Any
) -> AsyncGenerator[Controller]:
    """A controller with its registry below ``directory``, or where ``open_session`` says."""
    given = ControllerSettings(listen_port=0, controller_store_path=str(directory), **settings)
    controller = Controller(given, open_session=open_session)
    async with controller.serving():
        yield controller


class PlayedReplica:
    """A broker of one group. It has a port of its own, on which it hears of new masters."""

    def __init__(
        self, broker_id: int, *, session: str | None = None, name: str = NAME, timeout_ms: int = LONG_MS
    ) -> None:
        self.broker_id = broker_id
        self.timeout_ms = timeout_ms
        self.name = name
        self.session = session
        self.news: list[NotifyRoleChangedRequest] = []
        self.address = ""
        self._client = RemotingClient()
        self._server = RemotingServer({RequestCode.NOTIFY_BROKER_ROLE_CHANGED: self._on_news})

    @asynccontextmanager
    async def playing(self) -> AsyncGenerator["PlayedReplica"]:
        await self._server.start("127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.port}"
        try:
            yield self
        finally:
            await self._client.close()
            await self._server.close(1)

    def _on_news(self, request: Command, _connection: Connection) -> None:
        self.news.append(request.header(NotifyRoleChangedRequest))

    async def ask(
        self, controller: str, code: RequestCode, header: Header | None = None, *, body: bytes = b""
    ) -> Command:
        return await self._client.request(
            controller, Command.request(code, header, body=body), timeout_s=_DEADLINE_S
        )

    async def disconnect(self) -> None:
        """Lose all connections, as a process that ends does."""
        await self._client.close()
        self._client = RemotingClient()

    async def join(self, controller: str) -> None:
        """Apply for the id, register, and send a heartbeat."""
        taking = ApplyBrokerIdRequest(
            cluster_name=CLUSTER,
            broker_name=self.name,
            applied_broker_id=self.broker_id,
            register_check_code=f"{self.address};5",
        )
        assert (await self.ask(controller, RequestCode.CONTROLLER_APPLY_BROKER_ID, taking)).code == 0
        assert (await self.register(controller)).code == 0
        await self.beat(controller)

    async def register(self, controller: str, *, cluster: str = CLUSTER) -> Command:
        header = RegisterReplicaRequest(
            cluster_name=cluster,
            broker_name=self.name,
            broker_id=self.broker_id,
            broker_address=self.address,
        )
        return await self.ask(controller, RequestCode.CONTROLLER_REGISTER_BROKER, header)

    async def beat(self, controller: str, **fields: Any) -> int | None:
        """Send a heartbeat; the epoch whose lease it renewed."""
        answer = await self.heartbeat(controller, **fields)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return answer.header(BrokerHeartbeatResponse).lease_epoch

    async def heartbeat(self, controller: str, **fields: Any) -> Command:
        given = {
            "broker_name": self.name,
            "broker_addr": self.address,
            "heartbeat_timeout_ms": self.timeout_ms,
            "session_id": self.session,
            "ha_address": f"{self.address}1",
            **fields,
        }
        return await self.ask(controller, RequestCode.BROKER_HEARTBEAT, heartbeat(self.broker_id, **given))

    async def elect(self, controller: str, *, is_designated: bool = False) -> Command:
        """Offer itself, or be designated by an operator."""
        header = msgspec.structs.replace(
            asks(self.broker_id, is_designated=is_designated), broker_name=self.name
        )
        return await self.ask(controller, RequestCode.CONTROLLER_ELECT_MASTER, header)

    async def report_dead(self, controller: str) -> Command:
        assert self.session is not None
        header = ReportDeadBrokerRequest(cluster_name=CLUSTER, broker_name=self.name, session_id=self.session)
        return await self.ask(controller, RequestCode.CONTROLLER_REPORT_DEAD_BROKER, header)

    async def set_members(self, controller: str, *members: int) -> Command:
        """As master, say who is in step."""
        view = await self.view(controller)
        header = AlterSyncStateSetRequest(
            broker_name=self.name, master_broker_id=self.broker_id, master_epoch=view.master_epoch
        )
        body = encode_body(SyncStateSet(broker_ids=frozenset(members), epoch=view.sync_state_set_epoch))
        return await self.ask(controller, RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body=body)

    async def view(self, controller: str) -> ReplicaGroupView:
        """What the controller tells operators of this group."""
        answer = await self.ask(
            controller,
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
            body=msgspec.json.encode([self.name]),
        )
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return decode_java_json(answer.body, SyncStateData).groups[self.name]

    async def leader(self, controller: str) -> ControllerMetadataResponse:
        answer = await self.ask(controller, RequestCode.CONTROLLER_GET_METADATA_INFO)
        return answer.header(ControllerMetadataResponse)

    async def figures(self, controller: str) -> dict[str, str]:
        answer = await self.ask(controller, RequestCode.GET_BROKER_RUNTIME_INFO)
        return decode_java_json(answer.body, KVTable).table

    async def wait_for_lease(self, controller: str, *, epoch: int, **fields: Any) -> None:
        """Send heartbeats until one renews the lease of this epoch."""
        async with asyncio.timeout(_DEADLINE_S):
            while True:
                if await self.beat(controller, **fields) == epoch:
                    return
                await asyncio.sleep(0.005)

    async def wait_for_no_master(self, controller: str) -> None:
        async with asyncio.timeout(_DEADLINE_S):
            while True:
                if (await self.view(controller)).master_broker_id is None:
                    return
                await asyncio.sleep(0.005)

    async def wait_for_master(self, controller: str, *, beyond: int = 0) -> ReplicaGroupView:
        """Wait until the group has a master of a later epoch."""
        async with asyncio.timeout(_DEADLINE_S):
            while True:
                view = await self.view(controller)
                if view.master_broker_id is not None and view.master_epoch > beyond:
                    return view
                await asyncio.sleep(0.005)


def in_time(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario; one that hangs says where."""

    async def limited() -> None:
        async with asyncio.timeout(60):
            await scenario
        # A connection that came while its server stopped is closed a little later.
        await turns()

    asyncio.run(limited())


@asynccontextmanager
async def replicas(*played: PlayedReplica) -> AsyncGenerator[None]:
    """Have these play."""
    async with AsyncExitStack() as stack:
        for each in played:
            await stack.enter_async_context(each.playing())
        yield


async def reign(controller: Controller, master: PlayedReplica, *slaves: PlayedReplica) -> None:
    """Have the first of these elected, and the others in step with it."""
    at = controller.address
    everybody = (master, *slaves)
    for each in everybody:
        await each.join(at)
    async with beating(*everybody, at=[at]):
        answer = await master.elect(at)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        if slaves:
            ids = [each.broker_id for each in everybody]
            assert (await master.set_members(at, *ids)).code == ResponseCode.SUCCESS


@asynccontextmanager
async def beating(*played: PlayedReplica, at: Sequence[str]) -> AsyncGenerator[None]:
    """Have these send heartbeats to all these controllers, all the time."""

    async def beat(one: PlayedReplica, address: str) -> None:
        while True:
            with suppress(RemotingError):
                await one.heartbeat(address)
            await asyncio.sleep(_BEAT_S)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(beat(one, address)) for one in played for address in at]
        yield
        for task in running:
            task.cancel()
