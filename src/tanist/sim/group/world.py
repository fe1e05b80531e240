"""The whole group, what can be done to it, and what must be true of it in the end.

    S6  all replicas have the same bytes, of the same epochs
    L1  there is a master that takes messages again
    L2  all replicas follow it and are in step
    L3  nothing is left waiting

``is_healed`` says all four, of a group that nothing is in the way of any more.
"""

from random import Random

from tanist.controller.group_record import GroupRecord, Replica, decode_group, encode_group
from tanist.controller.leading import LEADER_PATH
from tanist.model.message import Message
from tanist.model.offsets import LogOffset
from tanist.protocol import Command, RequestCode
from tanist.protocol.ha_link import Ack, encode_ack
from tanist.protocol.headers.controller import ElectMasterRequest, ReportDeadBrokerRequest
from tanist.protocol.record import encode_record
from tanist.sim.broken import Broken
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Clockwork, Process
from tanist.sim.group.around import SESSION_S, Around, Promise
from tanist.sim.group.controllers import PlayedController
from tanist.sim.group.machines import Machines
from tanist.sim.group.master import MasterDuty
from tanist.sim.group.naming import CLUSTER, CONTROLLER, NAME, RECORD_PATH, ROOT, address_of
from tanist.sim.group.replica import PlayedReplica
from tanist.sim.group.rules import Rules
from tanist.sim.group.slave import SlaveDuty
from tanist.sim.group.wires import connect
from tanist.sim.group.zookeeper import Nodes

_STORE_HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
_SEND_S = (0.02, 0.16)
_ABSURD = 1 << 40
_CONTROLLERS = 2


class GroupWorld:
    """Replicas, their controller, and a producer that tries everybody who takes messages."""

    def __init__(self, count: int, promise: Promise, *, chance: Random, machines: Machines) -> None:
        self.clockwork = Clockwork()
        self.cables = Cables(self.clockwork, chance, far=CONTROLLER)
        self.chance = chance
        self.transcript: list[str] = []
        self.switches = 0
        self.is_producing = True
        ids = range(1, count + 1)
        disks = {broker_id: machines.disk() for broker_id in ids}
        self.rules = Rules(disks, is_durable=promise.is_durable)
        replicas = {each: Replica(address=address_of(each), check_code=f"{each}") for each in ids}
        self.record = GroupRecord(cluster=CLUSTER, broker_name=NAME, replicas=replicas, next_id=ids.stop)
        self.registry = machines.zookeeper(
            self.clockwork, self.cables, chance, rate=self._rate(), timeout_s=SESSION_S
        )
        self.registry.put(RECORD_PATH, encode_group(self.record))
        self.registry.on_change = self._on_change
        self.controllers = [
            PlayedController(
                number,
                clockwork=self.clockwork,
                cables=self.cables,
                chance=chance,
                machines=machines,
                zookeeper=self.registry,
                rate=self._rate(),
                notify=self._notify,
                tell=self.tell,
            )
            for number in range(1, _CONTROLLERS + 1)
        ]
        for controller in self.controllers:
            controller.peers = self.controllers
        around = Around(
            self.clockwork, self.cables, chance, self.controllers, machines, self.rules, promise, self.tell
        )
        self.replicas = {
            broker_id: PlayedReplica(around, broker_id, disks[broker_id], rate=self._rate())
            for broker_id in ids
        }
        for replica in self.replicas.values():
            replica.peers = self.replicas
        self.processes = {
            process.name: process
            for process in (
                *(each.process for each in self.controllers),
                *(each.process for each in self.replicas.values()),
            )
        }
        self._stranger = Process("stranger", is_up=True)
        self._sent = 0

    @property
    def ack_count(self) -> int:
        """How many messages were acknowledged."""
        return sum(replica.ack_count for replica in self.replicas.values())

    def tell(self, who: str, what: str) -> None:
        self.transcript.append(f"{self.clockwork.now_s:7.3f}  {who:10}  {what}")

    def start(self) -> None:
        for controller in self.controllers:
            controller.start()
        for replica in self.replicas.values():
            replica.start()
        self._produce()

    def end(self) -> None:
        """Nothing of it goes on."""
        for controller in self.controllers:
            controller.stop()

    @property
    def leader(self) -> PlayedController:
        """The controller that leads, or one that may."""
        return next((each for each in self.controllers if each.is_leading), self.controllers[0])

    # What can be done to it

    def kill(self, broker_id: int, *, is_power: bool, is_reported: bool = False) -> None:
        """A process ends: killed, or with the power of its machine."""
        replica = self.replicas[broker_id]
        if not replica.process.is_up:
            return
        self.tell(replica.process.name, "loses power" if is_power else "is killed")
        session = replica.session
        replica.stop(is_silent=is_power)
        if is_power:
            replica.disk.lose_power(self.chance)
        if is_reported:
            self._report(replica, session)

    def begin_again(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        if not replica.process.is_up:
            replica.start()

    def kill_controller(self, controller: PlayedController) -> None:
        if controller.process.is_up:
            self.tell(controller.process.name, "is killed")
            controller.stop()

    def stop_controller(self, controller: PlayedController) -> None:
        if controller.process.is_awake:
            self.tell(controller.process.name, "is stopped")
            controller.resign()

    def begin_to_control(self, controller: PlayedController) -> None:
        if not controller.process.is_up:
            self.tell(controller.process.name, "starts")
            controller.start()

    def hand_over(self, broker_id: int) -> None:
        """An operator wants another master."""
        controller = self.leader
        header = ElectMasterRequest(
            cluster_name=CLUSTER, broker_name=NAME, broker_id=broker_id, is_designated=True
        )
        if controller.process.is_awake:
            self.tell("operator", f"wants {broker_id} for master")
            request = Command.request(RequestCode.CONTROLLER_ELECT_MASTER, header)
            controller.hear(request, None, "operator", lambda _answer: None)

    def freeze(self, name: str) -> None:
        if self.processes[name].is_awake:
            self.tell(name, "stands still")
            self.processes[name].is_frozen = True

    def thaw(self, name: str) -> None:
        if self.processes[name].is_frozen:
            self.tell(name, "goes on")
        self.clockwork.thaw(self.processes[name], lambda waiting: waiting)

    def cut(self, *ways: tuple[str, str]) -> None:
        self.tell("cables", "cut: " + ", ".join(f"{one} to {other}" for one, other in ways))
        self.cables.cut |= set(ways)

    def mend(self, *ways: tuple[str, str]) -> None:
        self.cables.mend(lambda way: way in ways)

    def forge(self, broker_id: int) -> None:
        """Who follows as this replica says that it holds what was never sent."""
        duty = self.replicas[broker_id].duty
        if isinstance(duty, SlaveDuty) and duty.is_transferring:
            assert duty.link is not None
            assert duty.end_of_wire is not None
            self.tell(f"replica {broker_id}", "acks what was never sent")
            duty.end_of_wire.send(encode_ack(Ack(duty.link.ack_kind, LogOffset(_ABSURD))))

    def intrude(self, broker_id: int, said: bytes) -> None:
        """A stranger connects to the port for slaves, and says something."""
        replica = self.replicas[broker_id]
        if replica.process.is_awake:
            near = connect(self.cables, self._stranger, replica.process, is_stranger=True)
            near.call(replica.on_call)
            near.send(said)

    def heal(self) -> None:
        """Take everything out of the way."""
        self.tell("cables", "all is mended")
        self.cables.is_slow = self.cables.is_repeating = False
        for replica in self.replicas.values():
            replica.disk.is_full = False
        self.cables.mend(lambda _way: True)
        self.registry.go_on()
        for controller in self.controllers:
            self.begin_to_control(controller)
        for name in self.processes:
            self.thaw(name)
        for broker_id in self.replicas:
            self.begin_again(broker_id)

    def is_healed(self) -> bool:
        return self.complaint() is None

    def complaint(self) -> str | None:
        """What is not yet as it has to be in the end."""
        record, duty = self.record, self._reign()
        if duty is None:
            return f"L1: {record.master_id} is to be master of epoch {record.epoch} and is not"
        if duty.state.members != frozenset(self.replicas) or not duty.is_in_step:
            return f"L2: in step with {record.master_id} are {sorted(duty.state.members)}"
        if duty.waiting:
            return f"L3: {len(duty.waiting)} sends wait"
        log, epochs = duty.replica.disk.log, duty.replica.disk.written_epochs
        for replica in self.replicas.values():
            if replica.disk.log != log or replica.disk.written_epochs != epochs:
                return f"S6: replica {replica.broker_id} has not the log of {record.master_id}"
        return None

    def has_acked_since(self, since_s: float) -> bool:
        """Whether the master that there is has acknowledged a message."""
        duty = self._reign()
        return duty is not None and duty.acked_s > since_s

    # Inside

    def _rate(self) -> float:
        return self.chance.uniform(0.96, 1.04)

    def _reign(self) -> MasterDuty | None:
        """The reign that the controller has committed, if it has begun."""
        record = self.record
        duty = None if record.master_id is None else self.replicas[record.master_id].master_duty
        return duty if duty is not None and duty.epoch == record.epoch else None

    def _on_change(self, session: int | None, before: Nodes, after: Nodes) -> None:
        """The registry has something else: of our group only who leads may have written it."""
        if before[RECORD_PATH] is after[RECORD_PATH]:
            return
        leader = after.get(ROOT + LEADER_PATH)
        if leader is None or leader.owner != session:
            raise Broken("C2: the group's record is changed by a controller that does not lead")
        old, self.record = self.record, decode_group(after[RECORD_PATH].value, path=RECORD_PATH)
        if self.record.epoch != old.epoch:
            self.rules.on_elected(old, self.record)
            self.switches += 1
            self.tell(CONTROLLER, f"elects {self.record.master_id} in epoch {self.record.epoch}")
        self.rules.on_committed(self.record.epoch, self.record.sync_state_set)

    def _notify(self, controller: Process, address: str) -> None:
        for replica in self.replicas.values():
            if address_of(replica.broker_id) == address:
                self.cables.say((controller.name, replica.process.name), replica.process, replica.hint)

    def _report(self, replica: PlayedReplica, session: str) -> None:
        """The supervisor of a process that has ended tells all controllers."""
        header = ReportDeadBrokerRequest(cluster_name=CLUSTER, broker_name=NAME, session_id=session)
        request = Command.request(RequestCode.CONTROLLER_REPORT_DEAD_BROKER, header)
        name = replica.process.name
        for each in self.controllers:
            self.cables.say(
                (name, each.process.name),
                each.process,
                lambda each=each: each.hear(request, None, name, lambda _answer: None),
            )

    def _produce(self) -> None:
        for replica in self.replicas.values():
            duty = replica.master_duty
            if self.is_producing and duty is not None and replica.process.is_awake:
                duty.take(self._record)
        self.clockwork.after(self.chance.uniform(*_SEND_S), self._produce)

    def _record(self, log_offset: int) -> bytes:
        """The next message: no two are alike, and many are of one size."""
        self._sent += 1
        body = self._sent.to_bytes(4) * (1 + self._sent % 2)
        return encode_record(
            Message(topic="t", queue_id=0, body=body),
            queue_offset=0,
            log_offset=log_offset,
            store_timestamp_ms=0,
            store_host=_STORE_HOST,
        )
