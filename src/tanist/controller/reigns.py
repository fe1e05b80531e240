"""Keeps every group under one master: watches who is alive, renews leases, elects, and tells of it.

The shell around ``live_table``, ``leases`` and ``election``. Nothing is looked for periodically: there is one
timer for the next replica to fall silent, and one for each group that waits for a lease to end.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from tanist.backoff import Backoff
from tanist.clock import Clock
from tanist.controller.decisions import Answer, Decision, set_body
from tanist.controller.election import (
    BY_CONTROLLER,
    LeaseRunning,
    Situation,
    elect,
    is_presumed,
    needs_election,
    role_change,
)
from tanist.controller.group_record import GroupRecord
from tanist.controller.keeping import GroupKeeper
from tanist.controller.leading import Leading, NotLeading
from tanist.controller.leases import Leases, is_in_office
from tanist.controller.live_table import Live, LiveTable
from tanist.controller.registering import require_registered
from tanist.controller.settings import LiveSettings
from tanist.errors import MQError, ResponseError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.controller import (
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    ReportDeadBrokerRequest,
)

_RETRY_S = 0.2
"""When an election is tried again that the registry did not take. Each time later, if it does not again."""

_log = logging.getLogger(__name__)


class Reigns:
    """The masters of all groups."""

    def __init__(
        self,
        leading: Leading,
        keeper: GroupKeeper,
        settings: LiveSettings,
        *,
        clock: Clock,
        notify: Callable[[str, Command], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """``notify`` sends a one-way request to an address; ``spawn`` owns what goes on in the background."""
        self.live = LiveTable()
        self.election_count = 0
        self._leading = leading
        self._keeper = keeper
        self._settings = settings
        self._clock = clock
        self._notify = notify
        self._spawn = spawn
        self._leases = Leases()
        self._under_review: set[str] = set()
        self._retries: dict[str, Backoff] = {}
        self._confirmed: dict[str, tuple[int, int]] = {}
        """For each group an epoch, and how far its master's log was confirmed when it told last."""
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._tick: asyncio.TimerHandle | None = None
        self._tick_s = 0.0

    # What happens.

    def on_begin(self) -> None:
        """We lead: every master has one lease from now on, and is replaced if it was not heard of by then."""
        self._leases.begin(self._keeper.records, now_s=self._clock.monotonic_s())
        for record in self._keeper.records:
            if record.master_session is not None and self.live.is_dead(record.master_session):
                # We were told when another one led.
                self._leases.void(record.broker_name)

    def review_all(self) -> None:
        """See soon which groups need a master."""
        for record in self._keeper.records:
            self.review(record.broker_name)

    def on_end(self) -> None:
        """We do not lead any more."""
        self._retries.clear()
        self._confirmed.clear()
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def close(self) -> None:
        """Watch nobody any more."""
        self.on_end()
        if self._tick is not None:
            self._tick.cancel()

    def on_heartbeat(self, heartbeat: BrokerHeartbeatRequest, connection: object) -> int | None:
        """Note that a replica is alive; the epoch for which its lease is renewed, if it has one.

        Raises ResponseError if there is no such replica.
        """
        now_s = self._clock.monotonic_s()
        is_leading = self._leading.is_leading
        record = self._keeper.known(heartbeat.broker_name) if is_leading else None
        if is_leading and (record is not None or self._keeper.is_sure(heartbeat.broker_name)):
            require_registered(record, heartbeat)
        live, is_news = self.live.on_heartbeat(heartbeat, connection, now_s=now_s)
        self._arm_tick(live.deadline_s)
        if record is None:
            if is_leading and heartbeat.broker_name not in self._waiting:
                # A change of it may or may not have been made. Its master has no lease until that is known.
                self.review(heartbeat.broker_name)
            return None
        if is_news:
            _log.info("replica alive group=%s id=%d", record.broker_name, live.broker_id)
        if is_news or record.master_id is None:
            self.review(record.broker_name)
        if is_in_office(record, {live.broker_id: live}):
            self._confirmed[record.broker_name] = record.epoch, live.confirmed_to
        if live.timeout_ms > record.lease_ms and is_in_office(record, {live.broker_id: live}):
            self._spawn(self._lengthen(record, live.timeout_ms))
        return self._leases.renew(record, live, now_s=now_s)

    def on_connection_lost(self, connection: object) -> None:
        """Brokers without a session are as gone as their connection."""
        self._on_gone(self.live.on_connection_lost(connection), "connection closed")

    def on_dead(self, report: ReportDeadBrokerRequest) -> bool:
        """A broker's process has ended, so its lease has too; False if nobody knows that session."""
        gone = self.live.on_dead(report.session_id)
        record = self._keeper.known(report.broker_name)
        is_master = (
            record is not None
            and record.master_session == report.session_id
            and record.cluster == report.cluster_name
        )
        if is_master:
            self._leases.void(report.broker_name)
            self.review(report.broker_name)
        self._on_gone(gone, "process ended")
        return is_master or bool(gone)

    def on_registered(self, broker_name: str, broker_id: int, *, is_reign_over: bool) -> None:
        """A replica was started."""
        self.live.on_registered(broker_name, broker_id)
        if is_reign_over:
            self._leases.void(broker_name)
        self.review(broker_name)

    # What is asked for.

    def situation(self, record: GroupRecord | None) -> Situation:
        """What an election of this group has to go by now."""
        epoch, confirmed_to = (0, 0) if record is None else self._confirmed.get(record.broker_name, (0, 0))
        return Situation(
            alive={} if record is None else self.live.members(record.broker_name),
            lease_end_s=0.0 if record is None else self._leases.end_s(record),
            now_s=self._clock.monotonic_s(),
            allows_unclean=self._settings.current.enable_elect_unclean_master,
            confirmed_to=confirmed_to if record is not None and epoch == record.epoch else 0,
        )

    def _lease_rest_s(self, record: GroupRecord | None) -> float:
        situation = self.situation(record)
        return situation.lease_end_s - situation.now_s

    def is_master_there(self, record: GroupRecord) -> bool:
        """Whether the master is alive, or we have not waited for it long enough to say that it is not."""
        situation = self.situation(record)
        return is_in_office(record, situation.alive) or is_presumed(record, situation)

    async def elect(self, request: ElectMasterRequest) -> Answer:
        """Hold an election. A master with a lease that an operator wants replaced is waited for."""
        try:
            return await self._elect(request)
        except LeaseRunning as running:
            if not request.is_designated:
                self._wait(request.broker_name, running.end_s)
                raise
        if not self._leases.close(request.broker_name):
            raise ResponseError(
                ResponseCode.CONTROLLER_ELECT_MASTER_FAILED,
                f"another operator replaces the master of {request.broker_name} already",
            )
        try:
            record = await self._keeper.get(request.broker_name)
            while (rest_s := self._lease_rest_s(record)) > 0:  # noqa: ASYNC110  A timer may be early.
                await asyncio.sleep(rest_s)
            return await self._elect(request)
        finally:
            self._leases.reopen(request.broker_name)

    def review(self, broker_name: str) -> None:
        """See soon whether a group needs a master."""
        if self._leading.has_begun and broker_name not in self._under_review:
            self._under_review.add(broker_name)
            self._spawn(self._review(broker_name))

    # How.

    async def _review(self, broker_name: str) -> None:
        try:
            try:
                record = await self._keeper.get(broker_name)
            finally:
                # What happens from here on is seen by another review.
                self._under_review.discard(broker_name)
            if record is None or not needs_election(record, self.situation(record)):
                return
            request = ElectMasterRequest(
                cluster_name=record.cluster,
                broker_name=broker_name,
                broker_id=BY_CONTROLLER,
                is_designated=False,
            )
            answer = await self._elect(request)
            if answer.code != ResponseCode.SUCCESS:
                _log.warning(
                    "no master group=%s epoch=%d reason=%s", broker_name, record.epoch, answer.remark
                )
        except LeaseRunning as running:
            self._wait(broker_name, running.end_s)
        except NotLeading:
            # We may be sure again in a moment, as after a standstill, and nobody would ask for this then.
            if self._leading.has_begun:
                self._wait(broker_name, self._clock.monotonic_s() + _RETRY_S)
        except Exception as error:
            # Whatever it is, it is of this group, and the others need us.
            trace = None if isinstance(error, MQError) else error
            _log.warning("election failed group=%s error=%s", broker_name, error, exc_info=trace)
            tries = self._retries.setdefault(broker_name, Backoff(first_s=_RETRY_S))
            pause_s = tries.next_s(random.random())  # noqa: S311  Jitter is no secret.
            self._wait(broker_name, self._clock.monotonic_s() + pause_s)
        else:
            self._retries.pop(broker_name, None)

    async def _elect(self, request: ElectMasterRequest) -> Answer:
        old: GroupRecord | None = None

        def decide(record: GroupRecord | None) -> Decision:
            nonlocal old
            old = record
            return elect(record, request, self.situation(record))

        decision = await self._keeper.change(request.broker_name, decide)
        if decision.is_election:
            assert old is not None
            assert decision.record is not None
            self._on_elected(old, decision.record, is_unclean=decision.is_unclean)
        return decision.answer

    def _on_elected(self, old: GroupRecord, record: GroupRecord, *, is_unclean: bool) -> None:
        self.election_count += 1
        alive = self.live.members(record.broker_name)
        _log.info(
            "master elected group=%s master=%s address=%s epoch=%d before=%s",
            *(record.broker_name, record.master_id, record.master_address, record.epoch, old.master_id),
        )
        if is_unclean:
            assert record.master_id is not None
            chosen = alive.get(record.master_id)
            _log.warning(
                "unclean election, messages may be lost"
                " group=%s epoch=%d set=%s master=%d log_end=%s log_epoch=%s",
                *(record.broker_name, record.epoch, sorted(old.sync_state_set), record.master_id),
                *(("unknown", "unknown") if chosen is None else (chosen.log_end, chosen.epoch)),
            )
        self._announce(record)

    def _announce(self, record: GroupRecord) -> None:
        if not self._settings.current.notify_broker_role_changed:
            return
        alive = self.live.members(record.broker_name)
        header, body = role_change(record, alive), set_body(record)
        for broker_id, replica in record.replicas.items():
            if broker_id in alive:
                command = Command.request(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, header, body=body)
                self._notify(replica.address, command)

    def _on_gone(self, gone: list[Live], why: str) -> None:
        for live in gone:
            _log.info("replica gone group=%s id=%d reason=%s", live.broker_name, live.broker_id, why)
            record = self._keeper.known(live.broker_name)
            if live.session is None and record is not None and is_in_office(record, {live.broker_id: live}):
                # What it was given when we began to lead stood for a lease that it never had. It has to be
                # the one that was elected: somebody else under its id says nothing about its lease.
                self._leases.void(live.broker_name)
            self.review(live.broker_name)

    async def _lengthen(self, record: GroupRecord, lease_ms: int) -> None:
        """Write down that a master may be silent for longer than was known, before it may."""

        def decide(found: GroupRecord | None) -> Decision:
            if found is None or (found.epoch, found.lease_ms) != (record.epoch, record.lease_ms):
                return Decision(Answer())
            return Decision(Answer(), msgspec.structs.replace(found, lease_ms=lease_ms))

        try:
            await self._keeper.change(record.broker_name, decide)
        except Exception as error:
            # The next heartbeat has it tried again.
            trace = None if isinstance(error, MQError) else error
            _log.warning("lease not lengthened group=%s error=%s", record.broker_name, error, exc_info=trace)

    def _wait(self, broker_name: str, until_s: float) -> None:
        """Look at a group again at a time."""
        if (timer := self._waiting.pop(broker_name, None)) is not None:
            timer.cancel()
        delay_s = max(0.0, until_s - self._clock.monotonic_s())
        self._waiting[broker_name] = asyncio.get_running_loop().call_later(
            delay_s, self._on_waited, broker_name
        )

    def _on_waited(self, broker_name: str) -> None:
        del self._waiting[broker_name]
        self.review(broker_name)

    def _arm_tick(self, due_s: float) -> None:
        """Have one timer that rings at the next deadline, or earlier: most heartbeats only put it off."""
        if self._tick is not None:
            if self._tick_s <= due_s:
                return
            self._tick.cancel()
        delay_s = max(0.0, due_s - self._clock.monotonic_s())
        self._tick_s = due_s
        self._tick = asyncio.get_running_loop().call_later(delay_s, self._on_tick)

    def _on_tick(self) -> None:
        self._tick = None
        gone = self.live.on_tick(now_s=self._clock.monotonic_s())
        if (due_s := self.live.next_deadline_s) is not None:
            self._arm_tick(due_s)
        self._on_gone(gone, "no heartbeat")
