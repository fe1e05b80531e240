"""Carries out the controller's orders: one at a time, and of those that wait only the newest.

A switch may take long, and nobody waits for it here: heartbeats and questions go on. An order that fails
leaves the replica fenced and is tried again, until there is a newer one.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from tanist.backoff import Backoff
from tanist.broker.controlled.orders import MasterOrder, RoleOrder, RoleSwitch
from tanist.broker.controlled.status import ControlledStatus, HeldRole
from tanist.errors import MQError

_log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 2.0


class Obeying:
    """The orders of one replica. ``on_held`` is called when one is carried out."""

    def __init__(
        self,
        switch: RoleSwitch,
        status: ControlledStatus,
        on_held: Callable[[], None],
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._switch = switch
        self._status = status
        self._on_held = on_held
        self._chance = chance
        self._order: RoleOrder | None = None
        self._is_ordered = asyncio.Event()
        self._backoff = Backoff(most_s=_LONGEST_PAUSE_S)

    def give(self, order: RoleOrder) -> None:
        """Carry this out next. Who is not master any more takes no writes from now on."""
        self._order = order
        self._status.epoch, self._status.role = order.epoch, HeldRole.SWITCHING
        if not isinstance(order, MasterOrder):
            self._switch.fence(f"broker {order.master_id} is master of epoch {order.epoch}")
        self._is_ordered.set()

    async def run(self) -> None:
        """Carry out what is ordered, until cancelled."""
        while True:
            await self._is_ordered.wait()
            self._is_ordered.clear()
            order = self._order
            assert order is not None
            try:
                await self._carry_out(order)
            except (MQError, OSError) as error:
                await self._pause_after(order, error)
                continue
            self._backoff.reset()
            self._status.switch_failure = None
            if order is self._order:
                self._status.role = HeldRole.MASTER if isinstance(order, MasterOrder) else HeldRole.SLAVE
                self._on_held()

    async def _carry_out(self, order: RoleOrder) -> None:
        if isinstance(order, MasterOrder):
            members = ",".join(map(str, sorted(order.sync_state_set)))
            _log.info("role ordered role=master epoch=%d sync_state_set=%s", order.epoch, members)
            await self._switch.become_master(order)
        else:
            _log.info(
                "role ordered role=slave epoch=%d master=%d address=%s",
                *(order.epoch, order.master_id, order.master_address),
            )
            await self._switch.become_slave(order)
        _log.info("role held epoch=%d", order.epoch)

    async def _pause_after(self, order: RoleOrder, error: Exception) -> None:
        """Wait before the order is tried again, or until there is a newer one."""
        reason = f"the role of epoch {order.epoch} can not be taken: {error}"
        if reason != self._status.switch_failure:
            _log.error("role not taken epoch=%d reason=%s", order.epoch, error)
        self._status.switch_failure = reason
        self._switch.fence(reason)
        try:
            async with asyncio.timeout(self._backoff.next_s(self._chance())):
                await self._is_ordered.wait()
        except TimeoutError:
            self._is_ordered.set()
