"""A broker in this process that takes its roles from a test instead of a controller."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

from tanist.broker import broker as broker_module
from tanist.broker.broker import Broker
from tanist.broker.controlled.orders import MasterOrder, SlaveOrder
from tanist.broker.duties import Duties
from tanist.broker.master_place import MasterPlace
from tanist.broker.registration import Registration
from tanist.broker.roles import Roles
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.config import parse_settings
from tanist.errors import NoRole
from tanist.ha.settings import HaSettings
from tanist.ha.sync_state import Propose
from tanist.protocol import Command
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.remoting import RemotingClient
from tanist.store import StoreSettings
from tanist.store.flush import Flusher

TIMEOUT_S = 10.0
LEASE_S = 60.0


class RoleBroker:
    """One broker with what a test needs to order its roles about."""

    def __init__(
        self,
        duties: Duties,
        registration: Registration,
        ha_bound: socket.socket,
        flusher: Flusher,
        own_id: int,
    ) -> None:
        self._tasks = duties.tasks
        self._own_id = own_id
        self.state: BrokerState = duties.state
        self.registration = registration
        self.ha_address = "{}:{}".format(*ha_bound.getsockname()[:2])
        self.roles = Roles(
            duties,
            registration,
            ha_bound,
            flusher=flusher,
            broker_id=lambda: own_id,
            keeper=self,
            on_newer_epoch=lambda _epoch: None,
        )
        self.client = RemotingClient()
        self.is_joining_taken = False
        """Whether a set that is proposed is taken; else nobody answers."""

    @property
    def address(self) -> str:
        return self.state.settings.address

    @property
    def place(self) -> MasterPlace:
        return MasterPlace(self.address, self.ha_address)

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """In place of ``ControlledRole.held``."""
        role = self._tasks.create_task(self.roles.run())
        try:
            yield
        finally:
            await self.client.close()
            self.roles.stop()
            await role

    async def ask(self, request: Command) -> Command:
        return await self.client.request(self.address, request, timeout_s=TIMEOUT_S)

    async def reign(self, epoch: int, *others: int, has_lease: bool = True) -> None:
        """Be master of an epoch, of a set with these others."""
        await self.roles.become_master(MasterOrder(epoch, frozenset({self._own_id, *others}), epoch))
        if has_lease:
            self.grant(epoch)

    def grant(self, epoch: int) -> None:
        assert self.roles.reign is not None
        now_s = self.state.clock.monotonic_s()
        self.roles.reign.lease.on_granted(epoch, sent_s=now_s, timeout_s=LEASE_S)

    async def follow(self, epoch: int, master: "RoleBroker | None" = None) -> None:
        """Be slave of a master, or of one that nobody finds."""
        place = None if master is None else master.place
        address = None if place is None else place.address
        await self.roles.become_slave(SlaveOrder(epoch, 99, place, address))

    # As keeper of the sync state set.

    async def alter_sync_state_set(self, proposal: Propose, *, epoch: int) -> SyncStateSet:
        if not self.is_joining_taken:
            raise NoRole(f"nobody keeps the set of epoch {epoch} here")
        return SyncStateSet(broker_ids=proposal.members, epoch=proposal.set_epoch + 1)

    async def sync_state_set(self, *, epoch: int) -> SyncStateSet | None:
        return None


@asynccontextmanager
async def role_broker(
    root: Path,
    *,
    own_id: int = 1,
    settings: Mapping[str, str] | None = None,
    made: list[RoleBroker] | None = None,
) -> AsyncGenerator[RoleBroker]:
    """A broker that serves from ``root`` while the block lasts, and has no role at first.

    ``made`` gets one for each time that its store is opened.
    """
    given = {
        "enableControllerMode": "true",
        "controllerAddr": "127.0.0.1:1",
        "brokerName": "group",
        "brokerIP1": "127.0.0.1",
        "bindAddress": "127.0.0.1",
        "listenPort": "0",
        "storePathRootDir": str(root),
        "mappedFileSizeCommitLog": str(1 << 20),
        "mappedFileSizeConsumeQueue": "6000",
        "maxMessageSize": "65536",
        **(settings or {}),
    }
    parsed, store, ha, _ = parse_settings(given, BrokerSettings, StoreSettings, HaSettings, source="a test")
    rounds: list[RoleBroker] = [] if made is None else made

    def make(
        duties: Duties, registration: Registration, ha_bound: socket.socket, flusher: Flusher
    ) -> RoleBroker:
        rounds.append(RoleBroker(duties, registration, ha_bound, flusher, own_id))
        return rounds[-1]

    with patch.object(broker_module, "ControlledRole", make):
        async with asyncio.timeout(60), Broker(parsed, store, ha=ha).serving():
            yield rounds[0]
