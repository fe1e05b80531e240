"""Changes what a running broker is, as the controller orders: fenced, master or slave.

    fenced --become_slave--> slave <--become_slave / become_master--> master
       ^_______________________fence, or a role that can not be taken____|

Store, tables and client connections stay. What belongs to a role is entered and left as a whole, by one task,
one role after the other. A replica that becomes master first makes the log its own: what it holds is whole,
can be read, and its reign is written down before it takes a message.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

import msgspec

from tanist.broker.controlled.orders import MasterOrder, RoleOrder, SlaveOrder
from tanist.broker.duties import Duties, Mastership
from tanist.broker.following import Following
from tanist.broker.ha_port import refuse_slaves
from tanist.broker.lasting import running
from tanist.broker.master_place import MasterPlace
from tanist.broker.queue_look import queue_bounds
from tanist.broker.registration import Registration
from tanist.broker.reign import Reign, SetKeeper
from tanist.broker.settings import MASTER_ID, BrokerRole
from tanist.errors import MQError, NoRole, StaleEpoch
from tanist.ha.replicas import ReplicaTable
from tanist.store import FlushMode
from tanist.store.flush import Flusher

_log = logging.getLogger(__name__)

NO_ROLE_YET = "this broker has no role yet: it waits for the controller; see haStatus"


@dataclass(slots=True)
class _Asked:
    """An order, and who waits until it is carried out."""

    order: RoleOrder
    is_held: asyncio.Future[None]
    fence_count: int
    """Of ``Roles`` when this was asked: whoever is fenced since then is not to take this role any more."""


class Roles:
    """A ``RoleSwitch``. The broker runs ``run`` as long as it serves, and ends it with ``stop``."""

    def __init__(
        self,
        duties: Duties,
        registration: Registration,
        ha_bound: socket.socket,
        *,
        flusher: Flusher,
        broker_id: Callable[[], int],
        keeper: SetKeeper,
        on_newer_epoch: Callable[[int], None],
    ) -> None:
        """``broker_id`` is the id that the controller gave, once there is a role."""
        self._duties = duties
        self._state = duties.state
        self._registration = registration
        self._ha_bound = ha_bound
        self._flusher = flusher
        self._broker_id = broker_id
        self._keeper = keeper
        self._on_newer_epoch = on_newer_epoch
        self._asked: _Asked | None = None
        self._changed = asyncio.Event()
        self._is_stopping = False
        self._fence_count = 0
        self._mastership: Mastership | None = None
        self._following: Following | None = None
        duties.ports.serve_fenced(NO_ROLE_YET)

    # What the controller's side calls.

    async def become_master(self, order: MasterOrder) -> None:
        """Take messages as master of a new epoch. Returns when that has begun."""
        if self._mastership is not None:
            self._lose(f"epoch {order.epoch} begins")
        await self._ask(order)

    async def become_slave(self, order: SlaveOrder) -> None:
        """Follow the master of an epoch. Returns when that has begun."""
        if self._mastership is not None:
            self._lose(f"replica {order.master_id} is master of epoch {order.epoch}")
        await self._ask(order)

    def fence(self, reason: str) -> None:
        """Show and take no message from now on, and say why, until there is a role again."""
        self._lose(reason)

    @property
    def reign(self) -> Reign | None:
        """What it may acknowledge and show, while this broker is master."""
        mastership = self._mastership
        return None if mastership is None or mastership.is_lost else mastership.reign

    def tables_gap(self) -> str | None:
        """What this broker would lack as master; None if nothing."""
        return None if self._following is None else self._following.tables_gap()

    def stop(self) -> None:
        """Leave the role, cleanly, and have ``run`` return."""
        self._is_stopping = True
        self._changed.set()

    # The task

    async def run(self) -> None:
        """Hold one role after the other, until ``stop``."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._is_stopping:
                return
            asked, self._asked = self._asked, None
            if asked is not None:
                await self._hold(asked)

    async def _hold(self, asked: _Asked) -> None:
        """Take a role, hold it until something else is ordered, and leave it."""
        async with AsyncExitStack() as stack:
            try:
                match asked.order:
                    case MasterOrder() as order:
                        await self._take_over(order, asked, stack)
                    case SlaveOrder() as order:
                        await self._follow(order, stack)
            except (MQError, OSError) as error:
                self._lose(f"it could not be taken: {error}")
                # What name servers know of it is over, and what it was to be did not come.
                self._registration.withdraw()
                _log.error("role is not taken order=%s reason=%s", asked.order, error)
                if not asked.is_held.done():
                    asked.is_held.set_exception(error)
                return
            if not asked.is_held.done():
                asked.is_held.set_result(None)
            await self._changed.wait()

    async def _ask(self, order: RoleOrder) -> None:
        if self._asked is not None and not self._asked.is_held.done():
            self._asked.is_held.cancel()
        is_held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked = _Asked(order, is_held, self._fence_count)
        self._changed.set()
        await is_held

    def _lose(self, reason: str) -> None:
        """Nobody is told any more that a message is safe, from this very moment."""
        self._fence_count += 1
        if self._mastership is not None:
            self._mastership.is_lost = True
        self._duties.ports.serve_fenced(f"this broker has no role now: {reason}")
        self._state.writer.end_reign()

    # Roles

    async def _take_over(self, order: MasterOrder, asked: _Asked, stack: AsyncExitStack) -> None:
        self._check_wanted(asked)
        await self._own_log(order)
        self._use_role(BrokerRole.SYNC_MASTER, MASTER_ID, order.epoch)
        self._use_epoch(order.epoch)
        # When all that is a master's has ended.
        stack.push_async_callback(self._end_mastership)
        mastership = await stack.enter_async_context(
            self._duties.master(
                stack.enter_context(self._ha_bound.dup()),
                lambda replicas: self._begin_reign(order, replicas),
                self._on_newer_epoch,
            )
        )
        self._mastership, reign = mastership, mastership.reign
        assert reign is not None
        # Nothing that clients sent was looked at since it serves them.
        self._check_wanted(asked)
        await stack.enter_async_context(
            running(self._duties.tasks, {"sync state set": partial(reign.run, self._keeper)})
        )
        self._announce()
        _log.info(
            "became master epoch=%d log_end=%d set=%s",
            *(order.epoch, self._state.store.log.log_end, sorted(order.sync_state_set)),
        )

    def _check_wanted(self, asked: _Asked) -> None:
        if asked.fence_count != self._fence_count:
            raise NoRole(f"epoch {asked.order.epoch} was over before it began here")

    def _use_epoch(self, epoch: int) -> None:
        """Have the tables be those of this reign, and of this log."""
        state = self._state
        state.topics.use_epoch(epoch)
        lowered = state.offsets.lower_to(
            lambda topic, queue_id: queue_bounds(state.store, topic, queue_id)[1]
        )
        if lowered:
            _log.warning("offsets were ahead of the log and went back count=%d", lowered)

    def _begin_reign(self, order: MasterOrder, replicas: ReplicaTable) -> Reign:
        state = self._state
        return Reign.begin(
            self._broker_id(),
            epoch=order.epoch,
            members=order.sync_state_set,
            set_epoch=order.set_epoch,
            store=state.store,
            flusher=self._flusher,
            replicas=replicas,
            settings=state.ha,
            clock=state.clock,
        )

    async def _end_mastership(self) -> None:
        self._mastership = None
        self._state.writer.end_reign()
        refuse_slaves(self._ha_bound)
        # Whoever delivers next reads the queues again; what waits here is another's.
        try:
            await asyncio.to_thread(self._state.delays.rest())
        except (MQError, OSError) as error:
            # The next start finds in the log what was delivered.
            _log.warning("delay offsets are not saved reason=%s", error)

    async def _own_log(self, order: MasterOrder) -> None:
        """Make the log one that a master can go on with: whole, indexed as far as confirmed, in its epoch."""
        store, epoch, last = self._state.store, order.epoch, self._state.store.epochs.last
        if last is not None and epoch < last.epoch:
            # Before anything is changed: what such an order says of the set is over too.
            raise StaleEpoch(f"epoch {epoch} is over: the log has epoch {last.epoch}")
        if store.whole_to < store.log.log_end:
            # The last master sent a part of a record, and nobody will send its rest.
            store.truncate_to(store.whole_to)
        if order.sync_state_set == frozenset((self._broker_id(),)):
            # Nobody else can be elected, so all that is here stays, once it is as safe as a send has to be.
            if store.settings.flush_disk_type is FlushMode.SYNC_FLUSH:
                store.flush()
            store.dispatcher.confirmed_to = store.log.log_end
        has_more = True
        while has_more:
            has_more = store.dispatch_some()
            # Others are served between two parts.
            await asyncio.sleep(0)
        store.count_queue_offsets()
        last = store.epochs.last
        if last is not None and epoch == last.epoch:
            # A controller that gives no leases keeps a master that was away for a moment in its epoch.
            _log.warning("the reign goes on after a restart epoch=%d", epoch)
            return
        store.begin_epoch(epoch)

    async def _follow(self, order: SlaveOrder, stack: AsyncExitStack) -> None:
        self._use_role(BrokerRole.SLAVE, self._broker_id(), order.epoch)
        self._state.replication.master_address = order.master_address
        following = self._following = await stack.enter_async_context(self._duties.slave())
        stack.callback(self._stop_following)
        if order.master is not None:
            following.use_master(order.master)
        else:
            self._registration.on_master(
                lambda place: self._use_told_master(order, place, following.use_master)
            )
        self._announce()
        _log.info(
            "became slave epoch=%d master=%s address=%s", order.epoch, order.master_id, order.master_address
        )

    def _stop_following(self) -> None:
        self._following = None
        self._registration.on_master(None)

    @staticmethod
    def _use_told_master(
        order: SlaveOrder, place: MasterPlace, use_master: Callable[[MasterPlace], None]
    ) -> None:
        """What a name server tells of another broker is from before this order."""
        if order.master_address in (None, place.address):
            use_master(place)

    def _use_role(self, role: BrokerRole, broker_id: int, epoch: int) -> None:
        state = self._state
        state.epoch = epoch
        state.config.broker = msgspec.structs.replace(
            state.config.broker, broker_role=role, broker_id=broker_id
        )
        state.use_config()

    def _announce(self) -> None:
        self._registration.is_on = True
        self._registration.role_changed()
