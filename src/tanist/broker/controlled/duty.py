"""A broker under a controller: it joins its group, keeps its lease, and does what it is told.

Four things run beside each other and none waits for another: joining and then asking who is master, the
heartbeats to each controller, carrying out orders, and looking which controller leads. A notification is
only a hint: it has the leader asked at once, and the answer decides, so a forged one changes nothing.

RocketMQ's controllers grant no lease. There the leader is asked as often as heartbeats are sent, and its
answer that this broker is master stands for one, from when it was asked until the connection closes, for
then they elect another at once. That is weaker: a leader that was deposed and does not know answers too.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from tanist.broker.controlled.controllers import Controllers
from tanist.broker.controlled.entering import Entering
from tanist.broker.controlled.group_view import GroupView
from tanist.broker.controlled.heartbeats import BeatAnswer, Heartbeats
from tanist.broker.controlled.identity import Identity
from tanist.broker.controlled.joining import Joining, JoinState
from tanist.broker.controlled.obeying import Obeying
from tanist.broker.controlled.orders import RoleSwitch, SetOrder
from tanist.broker.controlled.replica import ControlledReplica
from tanist.broker.controlled.role_orders import Elect, RoleOrders
from tanist.broker.controlled.set_reports import Proposal, SetAnswer, SetReports, SetTaken, SetUnknown
from tanist.broker.controlled.status import ControlledStatus, LeaseGrant
from tanist.errors import MQError, NoRole, ResponseError
from tanist.log import ToldFailures
from tanist.protocol.codes import Language, ResponseCode
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)

_HINT_GAP_S = 0.02
"""Between two questions, however many notifications come."""
_NO_ROLE = "the controller has not given this broker a role yet"
"""Why a broker that has just started takes no writes."""


MakeClient = Callable[[Callable[[str], None]], RemotingClient]
"""Makes a client that tells the address of a peer whose connection is gone."""


class Controlled:
    """One broker's duty to its controllers, for as long as ``run`` runs, which it does once.

    Raises ForeignFile if the file of the broker's id is another broker's.
    """

    def __init__(
        self,
        replica: ControlledReplica,
        switch: RoleSwitch,
        *,
        make_client: MakeClient = lambda on_disconnect: RemotingClient(on_disconnect=on_disconnect),
        chance: Callable[[], float] = random.random,
    ) -> None:
        settings = replica.settings
        self._joining = Joining(replica.files.load())
        self._replica = replica
        self._switch = switch
        self._chance = chance
        self._timeout_s = settings.controller_heart_beat_timeout_mills / 1000
        self._interval_s = settings.broker_heartbeat_interval / 1000
        self._client = make_client(self._on_disconnect)
        self._controllers = Controllers(self._client, settings.controllers, chance=chance)
        self._entering = Entering(
            self._controllers, replica.files, settings.address, replica.clock, self._joining
        )
        self._heartbeats = Heartbeats(
            self._client,
            self._controllers,
            lambda: replica.heartbeat(self._roles.broker_id),
            self._on_beat_answer,
            interval_s=self._interval_s,
            timeout_s=self._timeout_s,
            clock=replica.clock,
        )
        self.status = ControlledStatus()
        self._obeying = Obeying(switch, self.status, self._heartbeats.soon, chance=chance)
        self._roles = RoleOrders(0)
        self._set_reports: SetReports | None = None
        self._hinted = asyncio.Event()
        self._is_beating = asyncio.Event()
        self._is_weak = False
        self._lost_s = float("-inf")
        """When the connection to the leader was lost, on the monotonic clock."""
        self._failures = ToldFailures()

    async def run(self) -> None:
        """Serve under the controllers until cancelled."""
        self._switch.fence(_NO_ROLE)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_role())
                tasks.create_task(self._keep_beating())
                tasks.create_task(self._keep_finding())
                tasks.create_task(self._obeying.run())
        finally:
            await self._client.close()

    def hint(self, epoch: int, set_epoch: int) -> None:
        """Somebody says that the group has changed. If that is news, the controller is asked at once."""
        if epoch > self._roles.epoch or (epoch == self._roles.epoch and set_epoch > self._roles.set_epoch):
            self._hinted.set()

    async def report_set(self, proposal: Proposal, *, epoch: int) -> SetAnswer:
        """Propose a sync state set as master of ``epoch``; what came of it."""
        if self._set_reports is None:
            return SetUnknown(_NO_ROLE)
        answer = await self._set_reports.report(proposal, epoch=epoch)
        if not isinstance(answer, SetTaken):
            if self._failures.is_news("set", answer.reason):
                _log.warning("sync state set not taken epoch=%d reason=%s", epoch, answer.reason)
            # The role may be another's by now.
            self._hinted.set()
            return answer
        self._failures.is_over("set")
        if epoch == self._roles.epoch:
            self._roles.on_set_altered(answer.set_epoch)
        return answer

    # Joining, and then asking who is master.

    async def _keep_role(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            asked_s = loop.time()
            try:
                await self._step()
            except (MQError, OSError) as error:
                next_s = loop.time() + self._on_step_failed(error)
            else:
                next_s = asked_s + self._pause_s()
            self._show()
            if next_s > asked_s:
                await self._wait_for_hint(asked_s, next_s)

    async def _step(self) -> None:
        """Do what the state says. What fails is done again."""
        joining, entering = self._joining, self._entering
        match joining.state:
            case JoinState.INITIAL:
                await entering.find_leader()
            case JoinState.METADATA:
                await entering.ask_for_id()
            case JoinState.APPLYING:
                await entering.apply()
            case JoinState.NAMED:
                assert joining.identity is not None
                self._use_identity(joining.identity)
                view = await entering.register()
                self._is_beating.set()
                self._take(view)
            case JoinState.REGISTERED:
                await self._be_known_alive()
                await self._elect()
            case JoinState.RUNNING:
                await self._ask()

    async def _ask(self) -> None:
        sent_s = self._replica.clock.monotonic_s()
        view, language = await self._entering.replica_info()
        self._is_weak = language is Language.JAVA
        if self._take(view):
            await self._elect()
        self._joining.on_asked()
        is_granted = self._roles.is_master and view.master_id == self._roles.broker_id
        # An answer may be read when the connection that it came on is lost already.
        if self._is_weak and is_granted and sent_s > self._lost_s:
            self._on_lease(view.epoch, sent_s, self._controllers.leader or "", is_weak=True)

    async def _be_known_alive(self) -> None:
        """Who is not known to live is not elected."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._heartbeats.wait_answered()
        except TimeoutError:
            raise NoRole("no controller answers a heartbeat") from None

    async def _elect(self) -> None:
        if self._replica.is_learner:
            # Who else was elected meanwhile.
            view, _ = await self._entering.replica_info()
        else:
            view = await self._entering.elect()
        if self._take(view) or self._joining.state is JoinState.REGISTERED:
            # It said yes and named nobody, or nobody whom we can follow.
            raise NoRole(self.status.refusal or "the controller names no master")

    def _take(self, view: GroupView) -> bool:
        """Do what a view means. True if somebody has to be elected."""
        roles, status = self._roles, self.status
        order = roles.on_view(view, log_epoch=self._replica.log_epoch())
        if roles.refusal is not None and roles.refusal != status.refusal:
            _log.warning("controller is not obeyed reason=%s", roles.refusal)
        status.refusal, status.refused_count = roles.refusal, roles.refused_count
        match order:
            case None:
                pass
            case Elect():
                return True
            case SetOrder():
                self._replica.on_set(order)
            case _:
                self._obeying.give(order)
        if roles.refusal is None:
            self._joining.on_role()
        return False

    def _use_identity(self, identity: Identity) -> None:
        if self._set_reports is None:
            self._roles.broker_id = self.status.broker_id = identity.broker_id
            self._set_reports = SetReports(self._controllers, identity, self._replica.clock.now_ms)

    def _on_step_failed(self, error: Exception) -> float:
        joining = self._joining
        if isinstance(error, ResponseError):
            if error.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST:
                joining.on_forgotten()
            if (
                joining.state is JoinState.APPLYING
                and error.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID
            ):
                return joining.on_id_taken(str(error), chance=self._chance())
        # Texts may tell times, which are others at each try.
        kind = f"{type(error).__name__} {getattr(error, 'code', '')}"
        if self._failures.is_news(joining.state, kind) or joining.reason is None:
            _log.warning("controller step failed state=%s reason=%s", joining.state.name, error)
        return joining.on_failed(str(error), chance=self._chance())

    def _pause_s(self) -> float:
        if self._joining.state is not JoinState.RUNNING:
            return 0.0
        if self._is_weak and self._roles.is_master:
            return self._interval_s
        return self._replica.settings.sync_broker_metadata_period / 1000

    async def _wait_for_hint(self, asked_s: float, next_s: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(next_s):
                await self._hinted.wait()
                await asyncio.sleep(max(0.0, asked_s + _HINT_GAP_S - loop.time()))
        except TimeoutError:
            pass
        self._hinted.clear()

    def _show(self) -> None:
        status, joining = self.status, self._joining
        if status.state is not joining.state:
            _log.info(
                "controlled %s broker_id=%s controller=%s epoch=%d",
                *(joining.state.name.lower(), status.broker_id, self._controllers.leader, self._roles.epoch),
            )
        status.state, status.joining_failure = joining.state, joining.reason
        status.controller = self._controllers.leader

    # Heartbeats and leases.

    async def _keep_beating(self) -> None:
        await self._is_beating.wait()
        await self._heartbeats.run()

    def _on_beat_answer(self, answer: BeatAnswer) -> None:
        roles = self._roles
        if answer.lease_epoch is not None:
            self._on_lease(answer.lease_epoch, answer.sent_s, answer.address, is_weak=False)
            self.hint(answer.lease_epoch, 0)
        elif roles.is_master and not self._is_weak and answer.address == self._controllers.leader:
            # It leads and does not take us for the master.
            self._hinted.set()

    def _on_lease(self, epoch: int, sent_s: float, controller: str, *, is_weak: bool) -> None:
        self.status.lease = LeaseGrant(epoch, controller, sent_s, is_weak)
        self._replica.on_lease(epoch, sent_s, self._timeout_s)

    def _on_disconnect(self, address: str) -> None:
        if address == self._controllers.leader:
            # Another one may lead now. One of RocketMQ's elects another master at once.
            self._controllers.forget(address)
            self.status.controller = None
            self._lost_s = self._replica.clock.monotonic_s()
            self._hinted.set()
        lease = self.status.lease
        if lease is not None and lease.is_weak and lease.controller == address:
            _log.warning("lease is void, the connection to the controller is gone address=%s", address)
            self.status.lease = None
            self._replica.on_lease_void()
        self._heartbeats.soon(address)

    async def _keep_finding(self) -> None:
        """Look now and then who leads: a leader that was deposed may not know and still answer."""
        while True:
            await asyncio.sleep(self._replica.settings.sync_controller_metadata_period / 1000)
            try:
                await self._controllers.find_leader()
            except MQError as error:
                _log.debug("no controller leads reason=%s", error)
