"""A controller that is played around the real decisions: who lives, whose lease runs, who is elected.

What it keeps of the group outlives it, as a registry does. One that begins anew knows nobody who lives.
"""

from collections.abc import Callable
from contextlib import suppress

from tanist.controller.decisions import Answer, replica_info
from tanist.controller.election import (
    BY_CONTROLLER,
    LeaseRunning,
    Situation,
    is_presumed,
    needs_election,
)
from tanist.controller.group_record import GroupRecord, Replica
from tanist.controller.leases import is_in_office
from tanist.controller.registering import register
from tanist.errors import ResponseError
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    RegisterReplicaRequest,
)
from tanist.sim.clockwork import Clockwork, Process
from tanist.sim.group.machines import Machines
from tanist.sim.group.rules import Rules

NAME, CLUSTER = "g", "c"
CONTROLLER = "controller"
_TICK_S = 0.05


def address_of(broker_id: int) -> str:
    return f"127.0.0.1:{10000 + broker_id}"


class PlayedController:
    """The controller of one group."""

    def __init__(
        self,
        clockwork: Clockwork,
        machines: Machines,
        rules: Rules,
        ids: range,
        *,
        rate: float,
        on_elected: Callable[[GroupRecord], None],
    ) -> None:
        self.process = Process(CONTROLLER, rate)
        self._clockwork = clockwork
        self._machines = machines
        self._rules = rules
        self._on_elected = on_elected
        replicas = {each: Replica(address=address_of(each), check_code=f"{each}") for each in ids}
        self.record = GroupRecord(cluster=CLUSTER, broker_name=NAME, replicas=replicas, next_id=ids.stop)

    @property
    def now_s(self) -> float:
        return self._clockwork.now_s * self.process.rate

    def start(self) -> None:
        """Begin to lead: every master has its lease in full, and nobody was heard yet."""
        self.process.life += 1
        self.process.is_up = True
        self.process.is_frozen = False
        self.process.waiting.clear()
        self.live = self._machines.live_table()
        self.leases = self._machines.leases()
        self.leases.begin([self.record], now_s=self.now_s)
        self._confirmed = (0, 0)
        self._tick()

    # What is asked

    def on_heartbeat(self, heartbeat: BrokerHeartbeatRequest, connection: object) -> int | None:
        """The epoch for which a lease is renewed by this, if any."""
        try:
            live, is_news = self.live.on_heartbeat(heartbeat, connection, now_s=self.now_s)
        except ResponseError:
            return None
        if is_in_office(self.record, {live.broker_id: live}):
            self._confirmed = self.record.epoch, live.confirmed_to
        if is_news or self.record.master_id is None:
            self.review()
        return self.leases.renew(self.record, live, now_s=self.now_s)

    def on_dead(self, session: str) -> None:
        """A process was seen to end."""
        self.live.on_dead(session)
        if self.record.master_session == session:
            self.leases.void(NAME)
        self.review()

    def register(self, request: RegisterReplicaRequest) -> Answer:
        decision = register(
            self.record,
            request,
            held_by=self.live.members(NAME).get(request.broker_id),
            is_master_there=self._is_master_there(),
            ha_address=self._ha_address,
        )
        self.record = decision.record or self.record
        self.live.on_registered(NAME, request.broker_id)
        return decision.answer

    def replica_info(self) -> Answer:
        return replica_info(
            self.record, NAME, is_master_there=self._is_master_there(), ha_address=self._ha_address
        ).answer

    def alter_set(self, request: AlterSyncStateSetRequest, proposed: SyncStateSet) -> Answer:
        decision = self._machines.alter_set(self.record, request, proposed, self.live.members(NAME))
        self.record = decision.record or self.record
        self._rules.on_committed(self.record.epoch, self.record.sync_state_set)
        return decision.answer

    def elect(self, request: ElectMasterRequest) -> Answer:
        """Raises ResponseError, LeaseRunning among them."""
        decision = self._machines.elect(self.record, request, self.situation())
        old, self.record = self.record, decision.record or self.record
        if decision.is_election:
            self._rules.on_elected(old, self.record)
            self._rules.on_committed(self.record.epoch, self.record.sync_state_set)
            self._on_elected(self.record)
        return decision.answer

    def review(self) -> None:
        """See whether the group needs a master."""
        if not needs_election(self.record, self.situation()):
            return
        request = ElectMasterRequest(
            cluster_name=CLUSTER, broker_name=NAME, broker_id=BY_CONTROLLER, is_designated=False
        )
        try:
            self.elect(request)
        except LeaseRunning as running:
            self._clockwork.after(max(0.001, running.end_s - self.now_s), self.review, process=self.process)
        except ResponseError:
            pass

    def hand_over(self, broker_id: int) -> None:
        """An operator wants another master: the lease of the one there is runs out, then it is elected."""
        self.leases.close(NAME)
        request = ElectMasterRequest(
            cluster_name=CLUSTER, broker_name=NAME, broker_id=broker_id, is_designated=True
        )

        def try_it() -> None:
            rest_s = self.situation().lease_end_s - self.now_s
            if rest_s > 0:
                self._clockwork.after(rest_s + 0.001, try_it, process=self.process)
                return
            with suppress(ResponseError):
                self.elect(request)
            self.leases.reopen(NAME)

        try_it()

    def situation(self) -> Situation:
        epoch, confirmed_to = self._confirmed
        return Situation(
            alive=self.live.members(NAME),
            lease_end_s=self.leases.end_s(self.record),
            now_s=self.now_s,
            confirmed_to=confirmed_to if epoch == self.record.epoch else 0,
        )

    # Inside

    @property
    def _ha_address(self) -> str | None:
        master = self.record.master_id
        return None if master is None else address_of(master)

    def _is_master_there(self) -> bool:
        situation = self.situation()
        return is_in_office(self.record, situation.alive) or is_presumed(self.record, situation)

    def _tick(self) -> None:
        if self.live.on_tick(now_s=self.now_s):
            self.review()
        self._clockwork.after(_TICK_S, self._tick, process=self.process)
