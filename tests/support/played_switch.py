"""A role switch and a replica played by a test: they keep what they are told."""

import asyncio
from pathlib import Path

import msgspec

from tanist.broker.controlled.identity import IdentityFiles
from tanist.broker.controlled.orders import MasterOrder, RoleOrder, SetOrder, SlaveOrder
from tanist.broker.controlled.replica import ControlledReplica
from tanist.broker.settings import BrokerSettings
from tanist.clock import Clock
from tanist.errors import NotWritable
from tanist.store.disk import Disk
from tests.support.virtual_time import VirtualClock


class PlayedSwitch:
    """Takes every role at once, or when it may, or not."""

    def __init__(self) -> None:
        self.orders: list[RoleOrder] = []
        """Those that were begun."""
        self.held: RoleOrder | None = None
        self.fences: list[str] = []
        self.failures: list[str] = []
        """Why the next orders fail."""
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.most_open = self._open = 0

    async def become_master(self, order: MasterOrder) -> None:
        await self._take(order)

    async def become_slave(self, order: SlaveOrder) -> None:
        await self._take(order)

    def fence(self, reason: str) -> None:
        self.fences.append(reason)
        self.held = None

    @property
    def is_master(self) -> bool:
        return isinstance(self.held, MasterOrder)

    async def _take(self, order: RoleOrder) -> None:
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        try:
            self.orders.append(order)
            await self.may_end.wait()
            if self.failures:
                raise NotWritable(self.failures.pop(0))
            self.held = order
        finally:
            self._open -= 1


class PlayedReplica:
    """What a controller is told of a replica, set by hand, and what it said."""

    def __init__(self) -> None:
        self.log_end = self.confirmed_to = 0
        self.log_epoch = 0
        self.tables_gap: str | None = None
        self.damage: str | None = None
        self.leases: list[tuple[int, float, float]] = []
        self.void_count = 0
        self.sets: list[SetOrder] = []
        self.is_learner = False

    def of(
        self, root: Path, settings: BrokerSettings, *, clock: Clock | None = None, session_id: str = "s1"
    ) -> ControlledReplica:
        settings = msgspec.structs.replace(settings, store_path_root_dir=str(root))
        return ControlledReplica(
            settings=settings,
            files=IdentityFiles(Disk(), settings),
            session_id=session_id,
            ha_address="127.0.0.1:10912",
            log_end=lambda: self.log_end,
            log_epoch=lambda: self.log_epoch,
            confirmed_to=lambda: self.confirmed_to,
            tables_gap=lambda: self.tables_gap,
            damage=lambda: self.damage,
            on_lease=lambda epoch, sent_s, timeout_s: self.leases.append((epoch, sent_s, timeout_s)),
            on_lease_void=self._on_void,
            on_set=self.sets.append,
            clock=clock or VirtualClock(),
            is_learner=self.is_learner,
        )

    def _on_void(self) -> None:
        self.void_count += 1
