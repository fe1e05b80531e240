"""A broker whose role the controller gives: what joins it to its controllers, and the role that it holds."""

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec

from tanist.broker.controlled.duty import Controlled, ControlledReplica
from tanist.broker.controlled.heartbeats import session_id
from tanist.broker.controlled.identity import IdentityFiles
from tanist.broker.controlled.orders import SetOrder
from tanist.broker.controlled.set_reports import SetRefused, SetTaken, SetUnknown
from tanist.broker.duties import Duties
from tanist.broker.ha_port import ha_address
from tanist.broker.lasting import running
from tanist.broker.operating.damage import first_damage
from tanist.broker.operating.ha_status import confirmed_to
from tanist.broker.registration import Registration
from tanist.broker.roles import Roles
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.errors import NoRole, ResponseError
from tanist.ha.sync_state import Propose
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.remoting import RemotingClient
from tanist.store.disk import Disk
from tanist.store.flush import Flusher

_NO_ID = -1
"""What is shown until the controller has given one."""


def without_role(settings: BrokerSettings) -> BrokerSettings:
    """The settings of a broker that waits for its role: like a slave's it makes no topics of its own."""
    return msgspec.structs.replace(settings, broker_role=BrokerRole.SLAVE, broker_id=_NO_ID)


class ControlledRole:
    """The role of one broker in controller mode. It has none before ``running``."""

    def __init__(
        self, duties: Duties, registration: Registration, ha_bound: socket.socket, flusher: Flusher
    ) -> None:
        self._duties = duties
        self._state = state = duties.state
        self._told: SetRefused | None = None
        self._roles = Roles(
            duties,
            registration,
            ha_bound,
            flusher=flusher,
            broker_id=self._broker_id,
            keeper=self,
            on_newer_epoch=lambda epoch: self._controlled.hint(epoch, 0),
        )
        self._controlled = Controlled(self._replica(), self._roles, make_client=self._make_client)
        state.controlled = self._controlled

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Obey the controllers while the block lasts. At its end the role is left cleanly."""
        tasks = self._duties.tasks
        role = tasks.create_task(self._roles.run())
        try:
            async with running(tasks, {"controllers": self._controlled.run}):
                yield
        finally:
            self._roles.stop()
            await role

    def _replica(self) -> ControlledReplica:
        state = self._state
        return ControlledReplica(
            settings=state.settings,
            files=IdentityFiles(Disk(), state.settings),
            session_id=session_id(),
            ha_address=ha_address(state.settings, state.ha),
            log_end=lambda: state.store.log.log_end,
            log_epoch=lambda: 0 if (last := state.store.epochs.last) is None else last.epoch,
            confirmed_to=lambda: confirmed_to(state),
            tables_gap=self._roles.tables_gap,
            damage=lambda: first_damage(state),
            on_lease=self._on_lease,
            on_lease_void=self._on_lease_void,
            on_set=self._on_set,
            clock=state.clock,
            is_learner=state.ha.async_learner,
        )

    def _make_client(self, on_disconnect: Callable[[str], None]) -> RemotingClient:
        return RemotingClient(tls=self._duties.tls, on_disconnect=on_disconnect)

    def _broker_id(self) -> int:
        broker_id = self._controlled.status.broker_id
        # Nobody is given a role before an id.
        assert broker_id is not None
        return broker_id

    # As keeper of the sync state set.

    async def alter_sync_state_set(self, proposal: Propose, *, epoch: int) -> SyncStateSet:
        self._told = None
        match await self._controlled.report_set(proposal, epoch=epoch):
            case SetTaken(members, set_epoch):
                return SyncStateSet(broker_ids=members, epoch=set_epoch)
            case SetRefused(code, reason) as refused:
                self._told = refused
                raise ResponseError(code, reason)
            case SetUnknown(reason):
                raise NoRole(reason)

    async def sync_state_set(self, *, epoch: int) -> SyncStateSet | None:
        """What came with the last refusal, if the controller told it."""
        if self._told is None or self._told.view.epoch != epoch:
            return None
        return SyncStateSet(broker_ids=self._told.view.sync_state_set, epoch=self._told.view.set_epoch)

    # What the controller's side asks and tells.

    def _on_lease(self, epoch: int, sent_s: float, timeout_s: float) -> None:
        if (reign := self._roles.reign) is not None:
            reign.lease.on_granted(epoch, sent_s=sent_s, timeout_s=timeout_s)

    def _on_lease_void(self) -> None:
        if (reign := self._roles.reign) is not None:
            reign.lease.on_void(now_s=self._state.clock.monotonic_s())

    def _on_set(self, order: SetOrder) -> None:
        reign = self._roles.reign
        if reign is not None and reign.sync_state.epoch == order.epoch:
            reign.on_set_told(SyncStateSet(broker_ids=order.sync_state_set, epoch=order.set_epoch))
