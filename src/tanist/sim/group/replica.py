"""One replica through all its lives: its disk, its duty, and what it and its controller tell each other."""

from collections.abc import Callable
from typing import TypeVar

from tanist.broker.controlled.group_view import GroupView, elected_view, registered_view, replica_info_view
from tanist.broker.controlled.orders import MasterOrder, RoleOrder, SetOrder, SlaveOrder
from tanist.broker.controlled.role_orders import Elect
from tanist.controller.decisions import Answer
from tanist.errors import ResponseError
from tanist.ha.sync_state import Propose
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.ha_hello import NO_INCARNATION
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    RegisterReplicaRequest,
)
from tanist.sim.clockwork import Do, Process
from tanist.sim.group.around import TIMEOUT_MS, Around
from tanist.sim.group.controller import CLUSTER, CONTROLLER, NAME, address_of
from tanist.sim.group.disk import PlayedDisk
from tanist.sim.group.master import MasterDuty
from tanist.sim.group.slave import SlaveDuty
from tanist.sim.group.wires import WireEnd, connect

_BEAT_S = 0.25
_ASK_S = 0.5
_ANSWER_S = 0.6
"""So long an answer is waited for."""

T = TypeVar("T")


class PlayedReplica:
    """One broker under a controller."""

    def __init__(self, around: Around, broker_id: int, disk: PlayedDisk, *, rate: float) -> None:
        self.around = around
        self.broker_id = broker_id
        self.disk = disk
        self.process = Process(f"replica {broker_id}", rate)
        self.peers: dict[int, PlayedReplica] = {}
        self.duty: MasterDuty | SlaveDuty | None = None
        self.confirmed_to = 0
        self.ack_count = 0
        self._left = b""
        """The log when the process ended."""
        self.on_next_cut: Do = lambda: None
        """Told once, when the log is cut."""
        self._wires: list[WireEnd] = []
        self._is_registered = False

    @property
    def now_s(self) -> float:
        return self.around.clockwork.now_s * self.process.rate

    @property
    def session(self) -> str:
        return f"{self.broker_id}-{self.process.life}"

    @property
    def held_to(self) -> int:
        """Up to where our own log is as safe as was promised."""
        return self.disk.flushed_to if self.around.promise.is_durable else self.disk.log_end

    @property
    def master_duty(self) -> MasterDuty | None:
        return self.duty if isinstance(self.duty, MasterDuty) else None

    def tell(self, what: str) -> None:
        self.around.tell(self.process.name, what)

    def after(self, delay_s: float, do: Do) -> None:
        self.around.clockwork.after(delay_s / self.process.rate, do, process=self.process)

    # Its lives

    def start(self) -> None:
        process = self.process
        process.life += 1
        process.is_up, process.is_frozen = True, False
        process.waiting.clear()
        self.disk.recover()
        self.around.rules.on_opened(self.broker_id, self._left)
        self.confirmed_to = self.disk.saved_confirmed_to
        self.roles = self.around.machines.role_orders(self.broker_id)
        self._is_registered = self._is_known_alive = False
        self.tell(f"starts, its log ends at {self.disk.log_end}")
        self._ask_again()

    def stop(self, *, is_silent: bool) -> None:
        """The process ends; its kernel closes its connections, unless that is gone too."""
        if self.duty is not None:
            self.duty.is_over = True
        self.duty = None
        self._left = bytes(self.disk.log)
        wires, self._wires = self._wires, []
        for end in wires:
            if is_silent:
                end.is_open = False
            else:
                end.close()
        self.process.is_up = False

    def reset(self) -> None:
        """All connections break, and both ends see it."""
        wires, self._wires = self._wires, []
        for end in wires:
            end.close()
            end.on_lost()

    # Its duty

    def hint(self) -> None:
        """Something has changed: ask the controller soon."""
        self.after(0.02, self._ask)

    def call(self, broker_id: int) -> WireEnd:
        """Connect to the port of another replica."""
        other = self.peers[broker_id]
        near = connect(self.around.cables, self.process, other.process)
        self._keep(near)
        if other.process.is_up:
            near.call(other.on_call)
        else:
            self.after(0.05, near.lose)
        return near

    def on_call(self, end: WireEnd) -> None:
        """Somebody connects to our port."""
        self._keep(end)
        if isinstance(self.duty, MasterDuty):
            self.duty.on_call(end)
        else:
            end.close()

    def cut(self, log_offset: int) -> None:
        """Begin to cut the log."""
        self.tell(f"cuts its log from {self.disk.log_end} to {log_offset}")
        self.around.rules.on_cut(self.broker_id, log_offset)
        self.disk.begin_cut(log_offset)
        self.confirmed_to = min(self.confirmed_to, log_offset)
        told, self.on_next_cut = self.on_next_cut, lambda: None
        told()

    def confirm(self, confirmed_to: int) -> None:
        """Let consumers see the log up to here."""
        if confirmed_to > self.confirmed_to:
            self.confirmed_to = confirmed_to
            self.around.rules.on_shown(self.broker_id, confirmed_to)

    def _keep(self, end: WireEnd) -> None:
        self._wires = [wire for wire in self._wires if wire.is_open]
        self._wires.append(end)

    def _obey(self, order: RoleOrder) -> None:
        if self.duty is not None:
            self.duty.end()
            self.duty = None
        match order:
            case MasterOrder():
                self._reign(order)
            case SlaveOrder():
                self.tell(f"follows replica {order.master_id} in epoch {order.epoch}")
                self.duty = SlaveDuty(self, order)
                self.duty.begin()

    def _reign(self, order: MasterOrder) -> None:
        """Make the log one that a master can go on with: whole, as safe as promised, and in its epoch."""
        disk = self.disk
        if disk.note is not None:
            disk.finish_cut()
        if order.epoch <= disk.log_epoch:
            return
        if (whole_to := disk.whole_to(disk.log_end)) < disk.log_end:
            self.cut(whole_to)
            disk.finish_cut()
        self.tell(f"is master of epoch {order.epoch} from {disk.log_end} on")
        self.around.rules.on_reign(self.broker_id, order.epoch)
        confirmed_to = self.confirmed_to
        if order.sync_state_set == frozenset({self.broker_id}):
            # Nobody else can be elected, so all that is here stays.
            if self.around.promise.is_durable:
                disk.flush(disk.log_end)
            confirmed_to = disk.log_end
        if disk.incarnation == NO_INCARNATION:
            disk.incarnation = b"i" * len(NO_INCARNATION)
        disk.begin_epoch(order.epoch, disk.log_end)
        self.around.rules.on_confirmed(self.broker_id, order.epoch, confirmed_to, order.sync_state_set)
        self.confirm(confirmed_to)
        self.duty = MasterDuty(self, order)
        self.duty.begin()

    # What it asks its controller

    def _ask_again(self) -> None:
        self._ask()
        self.disk.saved_confirmed_to = self.disk.whole_to(min(self.confirmed_to, self.held_to))
        self.after(_ASK_S, self._ask_again)

    def _ask(self) -> None:
        controller = self.around.controller
        if self._is_registered:
            self._request(controller.replica_info, lambda answer: self._take(replica_info_view(answer)))
            return
        request = RegisterReplicaRequest(
            cluster_name=CLUSTER,
            broker_name=NAME,
            broker_id=self.broker_id,
            broker_address=address_of(self.broker_id),
        )

        def registered(answer: Command) -> None:
            if not self._is_registered:
                self._is_registered = True
                self._beat()
                self._take(registered_view(answer))

        self._request(lambda: controller.register(request), registered)

    def _elect(self) -> None:
        request = ElectMasterRequest(
            cluster_name=CLUSTER, broker_name=NAME, broker_id=self.broker_id, is_designated=False
        )
        self._request(
            lambda: self.around.controller.elect(request), lambda answer: self._take(elected_view(answer))
        )

    def _take(self, view: GroupView) -> None:
        order = self.roles.on_view(view, log_epoch=self.disk.log_epoch)
        match order:
            case None:
                pass
            case Elect():
                if self._is_known_alive:
                    self._elect()
            case SetOrder():
                if (duty := self.master_duty) is not None and duty.epoch == order.epoch:
                    duty.on_set(order)
            case _:
                self._obey(order)

    def _beat(self) -> None:
        heartbeat = BrokerHeartbeatRequest(
            cluster_name=CLUSTER,
            broker_addr=address_of(self.broker_id),
            broker_name=NAME,
            broker_id=self.broker_id,
            epoch=self.disk.log_epoch,
            log_end=LogOffset(self.disk.log_end),
            confirmed_to=LogOffset(self.confirmed_to),
            heartbeat_timeout_ms=TIMEOUT_MS,
            session_id=self.session,
            ha_address=address_of(self.broker_id),
        )
        sent_s, session = self.now_s, self.session

        def answered(lease_epoch: int | None) -> None:
            self._is_known_alive = True
            duty = self.master_duty
            if lease_epoch is not None and duty is not None:
                duty.lease.on_granted(lease_epoch, sent_s=sent_s, timeout_s=TIMEOUT_MS / 1000)
            if (lease_epoch is None) == (duty is not None):
                self.hint()

        self._exchange(lambda: self.around.controller.on_heartbeat(heartbeat, session), answered)
        self.after(_BEAT_S, self._beat)

    def propose(self, duty: MasterDuty, proposal: Propose) -> None:
        """Ask the controller to change who is in step."""
        request = AlterSyncStateSetRequest(
            broker_name=NAME, master_broker_id=self.broker_id, master_epoch=duty.epoch
        )
        controller, body = (
            self.around.controller,
            SyncStateSet(broker_ids=proposal.members, epoch=proposal.set_epoch),
        )

        def ask() -> Answer | int:
            try:
                return controller.alter_set(request, body)
            except ResponseError as error:
                return error.code

        def answered(answer: Answer | int) -> None:
            if isinstance(answer, int):
                self._ask_set(duty, proposal, answer)
                return
            told = decode_java_json(answer.body, SyncStateSet)
            self.tell(f"has {sorted(told.broker_ids)} in step")
            if duty.epoch == self.roles.epoch:
                self.roles.on_set_altered(told.epoch)
            duty.on_set_taken(told.broker_ids, told.epoch)

        self._exchange(ask, answered, duty.on_set_unanswered)

    def _ask_set(self, duty: MasterDuty, proposal: Propose, code: int) -> None:
        """Which set is in force, when a proposal was refused."""

        def answered(answer: Answer) -> None:
            view = replica_info_view(_command(answer))
            is_ours = view.master_id == self.broker_id and view.epoch == duty.epoch
            duty.on_set_refused(code, (view.sync_state_set, view.set_epoch) if is_ours else None, proposal)

        self._exchange(
            self.around.controller.replica_info, answered, lambda: duty.on_set_refused(code, None, proposal)
        )

    def _request(self, ask: Callable[[], Answer], take: Callable[[Command], None]) -> None:
        def answer() -> Answer | None:
            try:
                return ask()
            except ResponseError:
                return None

        self._exchange(answer, lambda found: None if found is None else take(_command(found)))

    def _exchange(
        self, ask: Callable[[], T], take: Callable[[T], None], on_silence: Do = lambda: None
    ) -> None:
        """Ask the controller. What it did may be done although no answer comes, or late."""
        cables, controller, life = self.around.cables, self.around.controller.process, self.process.life
        is_open = True

        def heard(found: T) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                take(found)

        def arrived() -> None:
            found = ask()
            cables.say((CONTROLLER, self.process.name), self.process, lambda: heard(found), life=life)

        def give_up() -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                on_silence()

        cables.say((self.process.name, CONTROLLER), controller, arrived)
        self.after(_ANSWER_S, give_up)


def _command(answer: Answer) -> Command:
    request = Command.request(RequestCode.CONTROLLER_GET_REPLICA_INFO)
    return request.reply(answer.code, header=answer.header, remark=answer.remark, body=answer.body)
