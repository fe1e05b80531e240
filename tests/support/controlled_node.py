"""A replica without a log under real controllers: its duty, its port and a played switch."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tanist.broker.controlled.duty import Controlled
from tanist.broker.controlled.orders import MasterOrder, SlaveOrder
from tanist.clock import SystemClock
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import NotifyRoleChangedRequest
from tanist.remoting import Connection, RemotingServer
from tests.support.broker_tables import SETTINGS
from tests.support.played_switch import PlayedReplica, PlayedSwitch

SWIFT = msgspec.structs.replace(
    SETTINGS,
    controller_heart_beat_timeout_mills=3_000,
    broker_heartbeat_interval=100,
    sync_broker_metadata_period=60_000,
)
"""Who is master is learned from notifications and heartbeats: the next question would be too late."""


class ControlledNode:
    """One replica. What its log holds is set by hand in ``told``."""

    def __init__(self, root: Path, controllers: str, *, session_id: str) -> None:
        self._root = root
        self._controllers = controllers
        self._session_id = session_id
        self.switch = PlayedSwitch()
        self.told = PlayedReplica()
        self.noticed_s: list[float] = []
        """When notifications came, by the loop's time."""
        self._controlled: Controlled | None = None
        self.address = ""

    @property
    def controlled(self) -> Controlled:
        assert self._controlled is not None, "it does not run"
        return self._controlled

    @property
    def is_master(self) -> bool:
        return isinstance(self.switch.held, MasterOrder)

    @property
    def is_slave(self) -> bool:
        return isinstance(self.switch.held, SlaveOrder)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["ControlledNode"]:
        """Be there until the end of the block; then vanish without a word."""
        server = RemotingServer({RequestCode.NOTIFY_BROKER_ROLE_CHANGED: self._on_notice})
        await server.start("127.0.0.1", 0)
        settings = msgspec.structs.replace(
            SWIFT, listen_port=server.port, enable_controller_mode=True, controller_addr=self._controllers
        )
        self.address = settings.address
        replica = self.told.of(self._root, settings, clock=SystemClock(), session_id=self._session_id)
        self._controlled = Controlled(replica, self.switch)
        run = asyncio.get_running_loop().create_task(self._controlled.run())
        try:
            yield self
        finally:
            run.cancel()
            await asyncio.wait([run])
            await server.close(0)

    def _on_notice(self, command: Command, _connection: Connection) -> Command:
        notice = command.header(NotifyRoleChangedRequest)
        self.noticed_s.append(asyncio.get_running_loop().time())
        self.controlled.hint(notice.master_epoch or 0, notice.sync_state_set_epoch or 0)
        return command.reply()
