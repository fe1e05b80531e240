"""A broker with a fixed role, in a group of which a coordinator says who is read.

The role is the one that is assigned to its address; what its settings say counts as long as nothing is.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec

from tanist.broker.controlled.heartbeats import session_id
from tanist.broker.duties import Duties
from tanist.broker.following import Following
from tanist.broker.lasting import running
from tanist.broker.master_place import MasterPlace
from tanist.broker.registration import Registration
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.broker.slave_consume.duty import DutyFiles, DutyParts
from tanist.broker.slave_consume.ledger import LedgerFile
from tanist.broker.slave_consume.master_duty import MasterDuty
from tanist.broker.slave_consume.saved import SavedStandingFile
from tanist.broker.slave_consume.slave_duty import SlaveDuty
from tanist.clock import Clock
from tanist.coord import RegistryUnavailable
from tanist.coord.open import open_registry
from tanist.model.reading import BadReadingRecord, GroupRole, assignment_path, decode_assignment
from tanist.remoting import TlsSettings
from tanist.store.disk import Disk

_log = logging.getLogger(__name__)


async def as_assigned(settings: BrokerSettings, clock: Clock, tls: TlsSettings | None) -> BrokerSettings:
    """The settings with the role that the coordinator has for this broker, if it has one and is there."""
    timeout_s = settings.coordinator_timeout_millis / 1000
    try:
        async with (
            asyncio.timeout(timeout_s),
            open_registry(settings.coordinator, timeout_s=timeout_s, clock=clock, tls=tls) as registry,
        ):
            found = await registry.read(assignment_path(settings.broker_name))
        own = None if found is None else decode_assignment(found.value).find(settings.address)
    except (RegistryUnavailable, BadReadingRecord, TimeoutError) as error:
        _log.warning("role is that of the settings: the coordinator does not tell it reason=%s", error)
        return settings
    if own is None or (own.role is GroupRole.SLAVE) == settings.is_slave:
        return settings
    role = BrokerRole.SLAVE if own.role is GroupRole.SLAVE else BrokerRole.SYNC_MASTER
    _log.warning("role is the assigned one role=%s settings=%s", role.value, settings.broker_role.value)
    return msgspec.structs.replace(settings, broker_role=role, broker_id=own.broker_id)


class CoordinatedRole:
    """One broker's. ``held`` is its role, for as long as the block lasts."""

    def __init__(self, duties: Duties, registration: Registration, ha_bound: socket.socket | None) -> None:
        self._duties = duties
        self._registration = registration
        self._ha_bound = ha_bound
        state = duties.state
        settings = state.settings
        timeout_s = settings.coordinator_timeout_millis / 1000
        open_session = partial(
            open_registry, settings.coordinator, timeout_s=timeout_s, clock=state.clock, tls=duties.tls
        )
        root, disk = Path(settings.store_path_root_dir), Disk()
        files = DutyFiles(LedgerFile(disk, root), SavedStandingFile(disk, root))
        make = SlaveDuty if settings.is_slave else MasterDuty
        self._duty = make(DutyParts(state, duties.ports.gate, open_session, session_id(), files))
        duties.ports.obey(self._duty.right)
        state.slave_consume = self._duty
        self._duty.right.listeners.append(registration.on_permitted)
        state.config.on_change(self._duty.publish_permission)

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Do what the role asks for, and be read when that is said."""
        duty = self._duty
        # Before the ports serve: what is asked of the right is answered from the start.
        async with running(self._duties.tasks, {"slave consumption": duty.run}):
            if isinstance(duty, MasterDuty):
                assert self._ha_bound is not None
                async with self._duties.master(self._ha_bound, notes=duty):
                    yield
            else:
                async with self._duties.slave(notes=duty, owns_offsets=duty.owns_offsets) as following:
                    duty.on_offsets_free = following.on_appended
                    duty.on_offsets_taken = following.settle_offsets
                    duty.on_master = partial(_follow, following)
                    self._registration.on_master(following.use_master)
                    following.follower.on_lost.append(self._registration.master_lost)
                    yield


def _follow(following: Following, place: MasterPlace) -> None:
    following.use_master(place)
    following.follower.hasten()
