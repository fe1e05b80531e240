"""A master and its slave, an operator, and the members of two groups of which one is moved."""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from random import Random

from tanist.errors import RemotingError
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.reset import QueueTarget, QueueTargets, ResetState
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reset import ApplyResetRequest
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Clockwork, Process
from tanist.sim.reset.around import QUEUES, Around
from tanist.sim.reset.broker import PlayedBroker
from tanist.sim.reset.links import Place, connect
from tanist.sim.reset.machines import Machines
from tanist.sim.reset.member import NAME_SERVER, Kind, PlayedMember
from tanist.sim.reset.rules import Rules, Spot

MOVED, OTHER = "moved", "other"
TOPIC, BESIDE = "Orders", "Beside"
_OPERATOR = "operator"
_BACKLOG = (5, 25)
_SEND_S = (0.3, 2.5)
_ELECT_S = 2.0
_LOOK_S = 0.5
_ORDER_TRIES = 20
_ORDER_TIMEOUT_S = 3.0
_UNSAFE = (ResponseCode.SLAVE_NOT_AVAILABLE, ResponseCode.FLUSH_SLAVE_TIMEOUT)
"""An order that is answered so is to be given again."""


class ResetWorld:
    """Nothing runs before it is started."""

    def __init__(
        self, *, is_broadcasting: bool, is_orderly: bool, chance: Random, machines: Machines
    ) -> None:
        self.clockwork = Clockwork()
        self.chance = chance
        self.transcript: list[str] = []
        self.cables = Cables(self.clockwork, chance, far=NAME_SERVER)
        self.rules = Rules(self.clockwork)
        self.around = Around(self.clockwork, self.cables, chance, machines, self.tell, self.rules)
        keys = (f"{TOPIC}@{OTHER}", *(f"{topic}@{MOVED}" for topic in (TOPIC, BESIDE) if not is_broadcasting))
        begun = ConsumerOffsetTable(
            offset_table={key: dict.fromkeys(range(QUEUES), QueueOffset(0)) for key in keys}
        )
        self.brokers = {name: PlayedBroker(self.around, name, begun) for name in ("a", "b")}
        self.master = self.brokers["a"]
        self.is_sending = True
        self.switches = 0
        self.kind = Kind(MOVED, (TOPIC, BESIDE), is_broadcasting=is_broadcasting, is_orderly=is_orderly)
        other = Kind(OTHER, (TOPIC,), is_broadcasting=False, is_orderly=False)
        self.members = [
            *(PlayedMember(self.around, self.kind, f"m{number}", self.brokers) for number in (1, 2, 3)),
            PlayedMember(self.around, other, "other1", self.brokers),
        ]
        self._operator = Place(Process(_OPERATOR))
        self._numbers = count(1)
        self._order_count = 0
        self._master_gone_s: float | None = None

    def tell(self, who: str, what: str) -> None:
        self.transcript.append(f"{self.clockwork.now_s:7.3f}  {who:8}  {what}")

    @property
    def slave(self) -> PlayedBroker:
        return next(broker for broker in self.brokers.values() if broker is not self.master)

    def start(self) -> None:
        self._operator.begin(self.clockwork)
        for topic in (TOPIC, BESIDE):
            for queue_id in range(QUEUES):
                self.around.ends[topic, queue_id] = self.chance.randint(*_BACKLOG)
        self.master.start(is_master=True)
        self.slave.start(is_master=False)
        self.master.feed_all(self.slave)
        self._tell_route()
        for member in (*self.members[:2], self.members[-1]):
            member.start()
        self._send()
        self._look()

    # What can be done to it

    def order(self, topic: str, targets: Mapping[int, int]) -> None:
        """An operator orders the group to go elsewhere, and says so until he has an answer."""
        self._order_count += 1
        order_id = f"order-{self._order_count}"
        self.tell(_OPERATOR, f"{order_id}: {topic} to {dict(targets)}")
        loop = self._operator.loop
        assert loop is not None
        loop.call_soon(lambda: loop.create_task(self._give(order_id, topic, targets)))

    def kill(self, broker: PlayedBroker) -> None:
        if broker.place.process.is_up:
            self.tell(broker.name, "is killed")
            broker.place.die()

    def begin_again(self, broker: PlayedBroker) -> None:
        if broker.place.process.is_up:
            return
        self.tell(broker.name, "starts")
        broker.start(is_master=broker is self.master)
        self._follow()
        self._tell_route()

    def switch(self) -> None:
        """The slave is master from now on, and the master its slave."""
        if not self.slave.place.process.is_awake or not self.slave.is_in_step:
            return
        old, self.master = self.master, self.slave
        self.switches += 1
        # The master may be gone before it has told its slave of an order, and acknowledged it.
        self.rules.on_switch(lambda order_id: self.master.state.resets.find(order_id) is not None)
        self.around.reign += 1
        self.tell(self.master.name, "is master")
        self.master.become(is_master=True)
        if old.place.process.is_up:
            old.become(is_master=False)
        self._follow()
        self._tell_route()

    def freeze(self, place: Place) -> None:
        if place.process.is_awake:
            self.tell(place.name, "stands still")
            place.process.is_frozen = True

    def thaw(self, place: Place) -> None:
        if place.process.is_frozen:
            self.tell(place.name, "goes on")
        self.clockwork.thaw(place.process, lambda waiting: waiting)

    def cut(self, *ways: tuple[str, str]) -> None:
        self.tell("cables", "cut: " + ", ".join(f"{one} to {other}" for one, other in ways))
        self.cables.cut |= set(ways)

    def mend(self, *ways: tuple[str, str]) -> None:
        self.cables.mend(lambda way: way in ways)

    def heal(self) -> None:
        """Take everything out of the way; nothing is sent any more."""
        self.tell("cables", "all is mended")
        self.is_sending = False
        self.around.answer_loss = 0.0
        self.cables.is_slow = False
        self.cables.mend(lambda _way: True)
        for broker in self.brokers.values():
            broker.disk.is_full = False
            self.thaw(broker.place)
            self.begin_again(broker)
        for member in self.members:
            self.thaw(member.place)
            member.work_s = (0.01, 0.1)
        if not any(member.is_there for member in self.members[:-1]):
            self.members[0].start()
        if not self.members[-1].is_there:
            self.members[-1].start()

    def end(self) -> None:
        """Leave nothing behind."""
        for each in (*self.brokers.values(), *self.members):
            each.place.die()
        self._operator.die()

    # How it is

    def is_at_rest(self) -> bool:
        return self.complaint() is None

    def complaint(self) -> str | None:
        """What is not yet as it has to be in the end."""
        return next(self._complaints(), None)

    def _complaints(self) -> Iterator[str]:
        for member in self.members:
            if member.is_there and member.rebalancer is None:
                yield f"O1: {member.name} is not there"
        for kind in (self.kind, self.members[-1].kind):
            for topic in kind.topics:
                for queue_id in range(QUEUES):
                    yield from self._complaints_of(kind, Spot(kind.group, topic, queue_id))
        yield from self._open_receipts()

    def _complaints_of(self, kind: Kind, spot: Spot) -> Iterator[str]:
        end = self.around.end_of(spot.topic, spot.queue_id)
        there = [member for member in self.members if member.kind is kind and member.is_there]
        given = self.rules.given.get(spot, [])
        last = given[-1] if given else None
        if last is not None and last.order_id in self.rules.lost:
            return
        for member in there if kind.is_broadcasting else (None,):
            name = None if member is None else member.name
            missing = self.rules.missing(spot, end, since=last, member=name)
            if missing is not None:
                after = "" if last is None else f" after {last}"
                yield f"O1: message {missing} of {spot} was not taken by {name or 'anybody'}{after}"
        stands = self.master.state.offsets.find(*spot)
        if not kind.is_broadcasting and stands != end:
            yield f"O1: {spot} is stuck at {stands} of {end}"

    def _open_receipts(self) -> Iterator[str]:
        """Members that are there, and that an order still waits for."""
        names = {member.name for member in self.members if member.is_there}
        for order in self.master.state.resets.orders():
            is_last = any(
                given[-1].order_id == order.order_id
                for spot, given in self.rules.given.items()
                if spot.topic == order.record.topic
            )
            if not is_last or order.watch is None or order.record.state is not ResetState.APPLIED:
                continue
            for receipt in order.watch.receipts:
                if receipt.client_id in names and receipt.is_open:
                    yield f"O1: {receipt.client_id} is {receipt.state} of {order.order_id}: {receipt.reason}"

    # Inside

    async def _give(self, order_id: str, topic: str, targets: Mapping[int, int]) -> None:
        wanted = [QueueTarget(queue_id=queue_id, target=QueueOffset(to)) for queue_id, to in targets.items()]
        header = ApplyResetRequest(
            order_id=order_id, topic=topic, group=MOVED, caller=_OPERATOR, is_forced=True
        )
        for _ in range(_ORDER_TRIES):
            place = self.brokers[self.around.addresses[0]].place
            if place.process.is_up:
                end = connect(self.cables, self._operator, place, next(self._numbers))
                body = encode_body(QueueTargets(targets=wanted))
                request = Command.request(RequestCode.APPLY_RESET, header, body=body)
                try:
                    answer = await end.request(request, _ORDER_TIMEOUT_S)
                    self.tell(_OPERATOR, f"{order_id}: answer {answer.code} {answer.remark or ''}")
                    if answer.code == ResponseCode.SUCCESS:
                        self.rules.on_acknowledged(order_id)
                    if answer.code not in _UNSAFE:
                        return
                except RemotingError:
                    pass
                finally:
                    end.close("the operator has asked")
            await asyncio.sleep(0.5)

    def _follow(self) -> None:
        """The slave follows the master, if both are there."""
        if self.master.place.process.is_up and self.slave.place.process.is_up:
            self.master.feed_all(self.slave)

    def _tell_route(self) -> None:
        self.around.addresses = {0: self.master.name}
        if self.slave.place.process.is_up:
            self.around.addresses[1] = self.slave.name

    def _send(self) -> None:
        if self.is_sending and self.master.place.process.is_awake:
            topic, queue_id = self.chance.choice((TOPIC, TOPIC, BESIDE)), self.chance.randrange(QUEUES)
            self.around.ends[topic, queue_id] += 1
            for broker in self.brokers.values():
                broker.on_grown(topic, queue_id)
        self.clockwork.after(self.chance.uniform(*_SEND_S), self._send)

    def _look(self) -> None:
        """As a controller does: a master that is gone for a while is replaced."""
        if self.master.place.process.is_awake:
            self._master_gone_s = None
        elif self._master_gone_s is None:
            self._master_gone_s = self.clockwork.now_s
        elif self.clockwork.now_s - self._master_gone_s > _ELECT_S:
            self.switch()
        self.clockwork.after(_LOOK_S, self._look)
