"""One reign of a master under a controller: what its links and its disk tell becomes what consumers see, what
producers are told, and what the controller is asked. The decisions are in ``tanist.ha``.

    a slave joins, acks, leaves --.                              .--> answers of sends (DoubleWrite)
    the log grows, is flushed ----+--> SyncState.confirmed_to ---+--> dispatch, and so consumers
    the controller answers -------'          |                   '--> what slaves are told
                                             `--> Propose --> the controller

The lease is read off a clock that goes on while the process is stopped.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from tanist.clock import Clock
from tanist.errors import MQError, ResponseError
from tanist.ha.ack_right import AckRight
from tanist.ha.lease import Lease
from tanist.ha.replicas import Replica, ReplicaTable
from tanist.ha.settings import HaSettings
from tanist.ha.sync_state import Propose, SyncState
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.store import FlushMode, MessageStore
from tanist.store.flush import Flusher, FlushOutcome

_log = logging.getLogger(__name__)

_TICK_S = 1.0
_TICKS = 4
"""At least so many looks in the time after which a slave that is behind leaves the set."""


class SetKeeper(Protocol):
    """Who keeps the sync state set: the controllers. Each call has a deadline of its own."""

    async def alter_sync_state_set(self, proposal: Propose, *, epoch: int) -> SyncStateSet:
        """Change the set. Raises ResponseError if it is refused, another MQError if that is not known."""
        ...

    async def sync_state_set(self, *, epoch: int) -> SyncStateSet | None:
        """The set of this epoch as it is; None if there is another master by now. Raises MQError."""
        ...


class Reign:
    """Holds together what counts for one epoch. ``end`` it before the next begins."""

    def __init__(
        self,
        sync_state: SyncState,
        lease: Lease,
        *,
        store: MessageStore,
        flusher: Flusher,
        replicas: ReplicaTable,
        clock: Clock,
        max_behind_s: float,
    ) -> None:
        self.sync_state = sync_state
        self.lease = lease
        self.right = AckRight(lease, sync_state)
        self.on_confirmed: list[Callable[[], None]] = []
        """Called when more may be confirmed, or who counts has changed."""
        self._store = store
        self._flusher = flusher
        self._replicas = replicas
        self._clock = clock
        self._tick_s = min(_TICK_S, max_behind_s / _TICKS)
        self._waits_for_disk = store.settings.flush_disk_type is FlushMode.SYNC_FLUSH
        self._is_flushing = False
        self._is_over = False
        self._known: dict[int | None, Replica] = {}
        self._proposal: Propose | None = None
        self._wake = asyncio.Event()

    @classmethod
    def begin(
        cls,
        own_id: int,
        *,
        epoch: int,
        members: Iterable[int],
        set_epoch: int,
        store: MessageStore,
        flusher: Flusher,
        replicas: ReplicaTable,
        settings: HaSettings,
        clock: Clock,
    ) -> "Reign":
        """A reign that begins at the log's end, after ``store.begin_epoch``."""
        now_s = clock.monotonic_s()
        max_behind_s = settings.ha_max_time_slave_not_catchup / 1000
        sync_state = SyncState(
            own_id,
            epoch=epoch,
            epoch_start=store.log.log_end,
            members=members,
            set_epoch=set_epoch,
            confirmed_to=max(store.dispatcher.dispatched_to, store.dispatcher.confirmed_log_end or 0),
            max_behind_s=max_behind_s,
            now_s=now_s,
        )
        return cls(
            sync_state,
            Lease(epoch, now_s=now_s),
            store=store,
            flusher=flusher,
            replicas=replicas,
            clock=clock,
            max_behind_s=max_behind_s,
        )

    def confirmed_to(self) -> int:
        """Up to where all that may be elected hold the log."""
        return self.sync_state.confirmed_to

    # What the answers of sends ask.

    def refusal(self) -> str | None:
        """Why nothing may be written now, or None."""
        if self._is_over:
            return "the broker is no master any more; send to the new one"
        return self.right.refusal(self._clock.monotonic_s())

    def may_acknowledge(self, end: int) -> bool:
        """Whether a send that ends here may be answered with success now."""
        return not self._is_over and self.right.may_acknowledge(end, self._clock.monotonic_s())

    def hold(self) -> None:
        """See how far our own log reaches, and let consumers see what is confirmed with it."""
        if self._is_over:
            return
        log = self._store.log
        if not self._waits_for_disk:
            self.sync_state.on_held(log.log_end)
        else:
            self.sync_state.on_held(log.flushed_to)
            if log.flushed_to < log.log_end and not self._is_flushing:
                self._is_flushing = True
                self._flusher.when_flushed(log.log_end, self._on_flushed)
        self._store.dispatcher.confirmed_to = self.sync_state.confirmed_to

    # What happens.

    def on_replicas(self) -> None:
        """A slave has acked more, has come, or is gone."""
        if self._is_over:
            return
        now_s = self._clock.monotonic_s()
        log_end = self._store.log.log_end
        state, before = self.sync_state, self._known
        self._known = {replica.broker_id: replica for replica in self._replicas}
        for broker_id in before.keys() - self._known.keys():
            self._take(state.on_left(broker_id, now_s=now_s))
        for broker_id, replica in self._known.items():
            if before.get(broker_id) is replica:
                self._take(state.on_ack(broker_id, replica.acked_to, log_end=log_end, now_s=now_s))
                continue
            self._take(
                state.on_joined(
                    broker_id,
                    acked_to=replica.acked_to,
                    log_end=log_end,
                    now_s=now_s,
                    held_from=replica.held_from,
                    # Whose word does not count for a send does not count here.
                    is_learner=replica.is_learner or not replica.counts,
                )
            )
        self._settle()

    def on_set_told(self, told: SyncStateSet) -> None:
        """The controller tells the set of this epoch."""
        if not self._is_over:
            now_s = self._clock.monotonic_s()
            self._take(self.sync_state.on_set_told(told.broker_ids, told.epoch, now_s=now_s))
            self._settle()

    def end(self) -> None:
        """The epoch is over: nothing is acknowledged or confirmed by this reign any more."""
        self._is_over = True

    async def run(self, keeper: SetKeeper) -> None:
        """Ask the controller for what is proposed, and look after who is behind, until cancelled."""
        while True:
            if (proposal := self._proposal) is not None:
                self._proposal = None
                await self._ask(keeper, proposal)
                continue
            self._wake.clear()
            try:
                async with asyncio.timeout(self._tick_s):
                    await self._wake.wait()
            except TimeoutError:
                self._on_tick()

    # Inside

    async def _ask(self, keeper: SetKeeper, proposal: Propose) -> None:
        state = self.sync_state
        _log.info(
            "sync state set is proposed epoch=%d members=%s confirmed=%s set_epoch=%d",
            *(state.epoch, sorted(proposal.members), sorted(state.members), proposal.set_epoch),
        )
        try:
            told = await keeper.alter_sync_state_set(proposal, epoch=state.epoch)
        except ResponseError as error:
            _log.warning("sync state set is refused code=%s reason=%s", error.code, error)
            # Before it is withdrawn: it is refused too if an earlier try, whose answer was lost, was taken.
            is_told = await self._ask_current(keeper)
            now_s = self._clock.monotonic_s()
            if not is_told:
                # There is another master: one of those that were proposed, it may be.
                state.on_unanswered(now_s=now_s)
            elif state.set_epoch == proposal.set_epoch:
                state.on_refused(error.code, now_s=now_s)
            else:
                self._take(state.on_answer(state.members, state.set_epoch, now_s=now_s))
            self._settle()
        except MQError as error:
            _log.warning("sync state set is not answered reason=%s", error)
            state.on_unanswered(now_s=self._clock.monotonic_s())
            await self._ask_current(keeper)
        else:
            now_s = self._clock.monotonic_s()
            self._take(state.on_answer(told.broker_ids, told.epoch, now_s=now_s))
            _log.info(
                "sync state set is confirmed members=%s set_epoch=%d", sorted(state.members), told.epoch
            )
            self._settle()

    async def _ask_current(self, keeper: SetKeeper) -> bool:
        """Learn which set is in force; whether the controller told it."""
        try:
            current = await keeper.sync_state_set(epoch=self.sync_state.epoch)
        except MQError as error:
            _log.debug("sync state set is not told reason=%s", error)
            return False
        if current is None:
            return False
        self.on_set_told(current)
        return True

    def _on_tick(self) -> None:
        now_s = self._clock.monotonic_s()
        self._take(self.sync_state.on_tick(log_end=self._store.log.log_end, now_s=now_s))
        self._settle()

    def _on_flushed(self, outcome: FlushOutcome) -> None:
        self._is_flushing = False
        if outcome is FlushOutcome.FLUSHED and not self._is_over:
            self._settle()

    def _take(self, proposal: Propose | None) -> None:
        if proposal is not None:
            self._proposal = proposal
            self._wake.set()

    def _settle(self) -> None:
        self.hold()
        for listener in self.on_confirmed:
            listener()
