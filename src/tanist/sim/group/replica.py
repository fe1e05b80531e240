"""One replica through all its lives: its disk, its duty, and what it and its controller tell each other."""

from collections.abc import Callable

from tanist.broker.controlled.group_view import GroupView, elected_view, registered_view, replica_info_view
from tanist.broker.controlled.orders import MasterOrder, RoleOrder, SetOrder, SlaveOrder
from tanist.broker.controlled.role_orders import Elect
from tanist.ha.sync_state import Propose
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.ha_hello import NO_INCARNATION
from tanist.protocol.headers.common import BrokerNameRequest
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    ElectMasterRequest,
    RegisterReplicaRequest,
)
from tanist.sim.clockwork import Do, Process
from tanist.sim.group.around import TIMEOUT_MS, Around
from tanist.sim.group.controllers import PlayedController
from tanist.sim.group.disk import PlayedDisk
from tanist.sim.group.master import MasterDuty
from tanist.sim.group.naming import CLUSTER, NAME, address_of
from tanist.sim.group.slave import SlaveDuty
from tanist.sim.group.wires import WireEnd, connect

_BEAT_S = 0.25
_ASK_S = 0.5
_ANSWER_S = 0.6
"""So long an answer is waited for."""

_AGAIN_S = 0.3
_LATE_S = (0.05, 1.5)
_PAUSE_S = 0.1
_MOST_TRIES = 4
_TAKEN = frozenset({int(ResponseCode.SUCCESS), int(ResponseCode.CONTROLLER_MASTER_STILL_EXIST)})


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
        self._order: RoleOrder | None = None
        self._led = 0
        """Which of the controllers is asked first, for it led last."""

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
        self._order = None
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
        self._order = order
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
        if disk.is_full:
            # An order that fails is tried again, until there is a newer one.
            self.after(_AGAIN_S, lambda: self._reign(order) if self._order is order else None)
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
        if self._is_registered:
            self._request(_INFO, lambda answer: self._take(replica_info_view(answer)))
            return
        header = RegisterReplicaRequest(
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

        self._request(Command.request(RequestCode.CONTROLLER_REGISTER_BROKER, header), registered)

    def _elect(self) -> None:
        header = ElectMasterRequest(
            cluster_name=CLUSTER, broker_name=NAME, broker_id=self.broker_id, is_designated=False
        )
        self._request(
            Command.request(RequestCode.CONTROLLER_ELECT_MASTER, header),
            lambda answer: self._take(elected_view(answer)),
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
        request = Command.request(RequestCode.BROKER_HEARTBEAT, heartbeat)
        for number, controller in enumerate(self.around.controllers):
            self._beat_to(number, controller, request)
        self.after(_BEAT_S, self._beat)

    def _beat_to(self, number: int, controller: PlayedController, request: Command) -> None:
        sent_s = self.now_s

        def answered(answer: Command) -> None:
            if answer.code != ResponseCode.SUCCESS:
                return
            self._is_known_alive = True
            lease_epoch = answer.header(BrokerHeartbeatResponse).lease_epoch
            duty = self.master_duty
            if lease_epoch is not None and duty is not None:
                duty.lease.on_granted(lease_epoch, sent_s=sent_s, timeout_s=TIMEOUT_MS / 1000)
            is_news = duty is None if lease_epoch is not None else number == self._led and duty is not None
            if is_news:
                self.hint()

        self._say(controller, request, answered)

    def propose(self, duty: MasterDuty, proposal: Propose) -> None:
        """Ask the controller to change who is in step."""
        header = AlterSyncStateSetRequest(
            broker_name=NAME, master_broker_id=self.broker_id, master_epoch=duty.epoch
        )
        body = encode_body(SyncStateSet(broker_ids=proposal.members, epoch=proposal.set_epoch))
        request = Command.request(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body=body)

        def answered(answer: Command) -> None:
            if answer.code != ResponseCode.SUCCESS:
                self._ask_set(duty, proposal, answer.code)
                return
            told = decode_java_json(answer.body, SyncStateSet)
            self.tell(f"has {sorted(told.broker_ids)} in step")
            if duty.epoch == self.roles.epoch:
                self.roles.on_set_altered(told.epoch)
            duty.on_set_taken(told.broker_ids, told.epoch)

        self._exchange(request, answered, duty.on_set_unanswered)

    def _ask_set(self, duty: MasterDuty, proposal: Propose, code: int) -> None:
        """Which set is in force, when a proposal was refused."""

        def answered(answer: Command) -> None:
            if answer.code != ResponseCode.SUCCESS:
                unanswered()
                return
            view = replica_info_view(answer)
            is_ours = view.master_id == self.broker_id and view.epoch == duty.epoch
            duty.on_set_refused(code, (view.sync_state_set, view.set_epoch) if is_ours else None, proposal)

        def unanswered() -> None:
            duty.on_set_refused(code, None, proposal)

        self._exchange(_INFO, answered, unanswered)

    def _request(self, request: Command, take: Callable[[Command], None]) -> None:
        self._exchange(request, lambda answer: take(answer) if answer.code in _TAKEN else None)

    def _exchange(
        self,
        request: Command,
        take: Callable[[Command], None],
        on_silence: Do = lambda: None,
        tries: int = _MOST_TRIES,
    ) -> None:
        """Ask the controller that leads. What it did may be done although no answer comes, or late."""
        number = self._led % len(self.around.controllers)
        is_open = True

        def heard(answer: Command) -> None:
            nonlocal is_open
            if not is_open:
                return
            is_open = False
            if answer.code != ResponseCode.CONTROLLER_NOT_LEADER:
                take(answer)
                return
            self._look_elsewhere(number)
            if tries > 1:
                self.after(_PAUSE_S, lambda: self._exchange(request, take, on_silence, tries - 1))
            else:
                on_silence()

        def give_up() -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                self._look_elsewhere(number)
                on_silence()

        self._say(self.around.controllers[number], request, heard)
        self.after(_ANSWER_S, give_up)

    def _look_elsewhere(self, number: int) -> None:
        if self._led == number:
            self._led = (number + 1) % len(self.around.controllers)

    def _say(self, controller: PlayedController, request: Command, heard: Callable[[Command], None]) -> None:
        """Ask one controller, and hear its answer in this life."""
        cables, us, life = self.around.cables, self.process, self.process.life

        def answered(answer: Command) -> None:
            cables.say((controller.process.name, us.name), us, lambda: heard(answer), life=life)

        def arrived() -> None:
            controller.hear(request, self.session, us.name, answered)

        way = (us.name, controller.process.name)
        cables.say(way, controller.process, arrived)
        if cables.is_repeating and request.code != RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
            # That one is sent once only, as what it proposed may be true no more (controllers.ask, is_once).
            late_s = self.around.chance.uniform(*_LATE_S)
            self.after(late_s, lambda: cables.say(way, controller.process, arrived))


_INFO = Command.request(RequestCode.CONTROLLER_GET_REPLICA_INFO, BrokerNameRequest(broker_name=NAME))
