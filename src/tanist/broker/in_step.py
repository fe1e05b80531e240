"""Keeps the sync state set of one reign: what its slaves ack goes in, what consumers may see comes out.

``ha/sync_state`` decides; here are the clock, the task that asks the controller, and who is told.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tanist.broker.controlled.set_reports import SetAnswer, SetRefused, SetTaken, SetUnknown
from tanist.broker.state import BrokerState
from tanist.ha.replicas import Replica
from tanist.ha.sync_state import Propose, SyncState

_log = logging.getLogger(__name__)

_TICK_S = 0.5
"""How often it is looked who lags. A set that is refused or lost is proposed again with one of these."""

Report = Callable[[Propose, int], Awaitable[SetAnswer]]
"""Proposes a set to the controller, as the master of an epoch."""


class InStep:
    """The sync state set of one reign. It is told of the slaves, and runs ``run`` beside."""

    def __init__(self, state: BrokerState, sync_state: SyncState, report: Report) -> None:
        self._state = state
        self.sync_state = sync_state
        self._report = report
        self._told_to = sync_state.confirmed_to
        self._proposals: asyncio.Queue[Propose] = asyncio.Queue()
        state.writer.confirm_to(sync_state.confirmed_to)

    # What the acceptor and the writer tell.

    def on_appended(self) -> None:
        """The log has grown."""
        self.sync_state.on_held(self._log_end)
        self._pass_on(None)

    def on_joined(self, replica: Replica) -> None:
        self._pass_on(
            self.sync_state.on_joined(
                replica.broker_id,
                acked_to=replica.acked_to,
                log_end=self._log_end,
                now_s=self._now_s,
                held_from=replica.held_from,
                is_learner=replica.is_learner,
            )
        )

    def on_acked(self, replica: Replica) -> None:
        self._pass_on(
            self.sync_state.on_ack(
                replica.broker_id, replica.acked_to, log_end=self._log_end, now_s=self._now_s
            )
        )

    def on_left(self, replica: Replica) -> None:
        self._pass_on(self.sync_state.on_left(replica.broker_id, now_s=self._now_s))

    # What the controller tells.

    def on_set_told(self, members: frozenset[int], set_epoch: int) -> None:
        """The controller has this set."""
        self._pass_on(self.sync_state.on_set_told(members, set_epoch, now_s=self._now_s))

    async def run(self) -> None:
        """Propose what has to be proposed, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_TICK_S):
                    proposal = await self._proposals.get()
            except TimeoutError:
                self._pass_on(self.sync_state.on_tick(log_end=self._log_end, now_s=self._now_s))
                continue
            self._on_answer(proposal, await self._report(proposal, self.sync_state.epoch))

    def _on_answer(self, proposal: Propose, answer: SetAnswer) -> None:
        now_s = self._now_s
        match answer:
            case SetTaken(members, set_epoch):
                _log.info("sync state set members=%s set_epoch=%d", sorted(members), set_epoch)
                self._pass_on(self.sync_state.on_answer(members, set_epoch, now_s=now_s))
            case SetRefused(code, reason, view):
                _log.warning(
                    "sync state set is refused members=%s reason=%s", sorted(proposal.members), reason
                )
                self.sync_state.on_refused(code, now_s=now_s)
                if view.epoch == self.sync_state.epoch:
                    self.on_set_told(view.sync_state_set, view.set_epoch)
            case SetUnknown(reason):
                _log.warning(
                    "sync state set is not known members=%s reason=%s", sorted(proposal.members), reason
                )
                self.sync_state.on_unanswered(now_s=now_s)
        self._pass_on(None)

    # Inside

    def _pass_on(self, proposal: Propose | None) -> None:
        if proposal is not None:
            self._proposals.put_nowait(proposal)
        confirmed_to = self.sync_state.confirmed_to
        if confirmed_to != self._told_to:
            self._told_to = confirmed_to
            self._state.writer.confirm_to(confirmed_to)
            self._state.replication.double_write.on_acked()

    @property
    def _log_end(self) -> int:
        return self._state.store.log.log_end

    @property
    def _now_s(self) -> float:
        return self._state.clock.monotonic_s()
