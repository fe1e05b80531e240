"""The whole group on a virtual clock, and what must hold after every single event.

    R1  at most one broker is readable
    R2  a slave is readable only while the record in the registry names it
    R3  a master that is read after a hand-back has at least the offsets that were acknowledged at the slave
    R5  no more comes again than was on its way when another broker came to be read: at a slave what it had
        not heard of from its master, at a master nothing that was acknowledged there, or handed back to it

``healed`` says R4: when nothing is in the way any more the master has its permission again.
"""

from collections.abc import Callable, Iterable, Mapping
from random import Random

import msgspec

from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.slave_standing import SlaveStanding
from tanist.model.reading import FULL, Assigned, EndedBy, GroupRole, ReadRecord, permission_name
from tanist.model.topics import READ
from tanist.sim.broken import Broken
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Clockwork, Do
from tanist.sim.reading.brokers import (
    QUEUES,
    MakeMaster,
    MakeSlave,
    PlayedBroker,
    PlayedMaster,
    PlayedSlave,
    Surroundings,
)
from tanist.sim.reading.registry import PlayedRegistry

REGISTRY = "registry"


class SimWorld:
    """A master, its slaves, a registry and consumers. Nothing runs before it is started."""

    def __init__(
        self,
        slaves: Iterable[str] = ("slave",),
        *,
        checks: int = 3,
        chance: Random | None = None,
        make_master: MakeMaster = MasterStanding,
        make_slave: MakeSlave = SlaveStanding,
        make_registry: Callable[[Clockwork], PlayedRegistry] = PlayedRegistry,
    ) -> None:
        self.clockwork = Clockwork()
        self.cables = Cables(self.clockwork, chance)
        self.registry = make_registry(self.clockwork)
        self.transcript: list[str] = []
        self._chance = chance
        around = Surroundings(self.clockwork, self.cables, self.registry, self.tell)
        self.master = PlayedMaster(
            around,
            Assigned(address="master", role=GroupRole.MASTER, broker_id=0),
            self._rate(),
            make_master,
        )
        self.slaves = [
            PlayedSlave(
                around,
                Assigned(address=name, role=GroupRole.SLAVE, broker_id=broker_id),
                self.master,
                rate=self._rate(),
                make=make_slave,
                checks=checks,
            )
            for broker_id, name in enumerate(slaves, 1)
        ]
        self.brokers: dict[str, PlayedBroker] = {
            broker.name: broker for broker in (self.master, *self.slaves)
        }
        self.registry.on_change += [broker.on_registry_changed for broker in self.brokers.values()]
        self.registry.on_record = self._on_record
        self.clockwork.after_each = self.check
        self._acked: dict[int, int] = {}
        """What was acknowledged at slaves in this slave consumption."""
        self._acked_at_master: dict[int, int] = dict.fromkeys(QUEUES, 0)
        self._in_flight: dict[int, int] = dict.fromkeys(QUEUES, 0)
        """How many messages of a queue may yet come again because who is read now never heard of them."""
        self._seen: dict[int, int] = dict.fromkeys(QUEUES, 0)
        self._turn = 0
        self.again_count = 0
        """How many messages were consumed that had been consumed before."""
        self.switches = 0

    def permission(self, name: str) -> str:
        broker = self.brokers[name]
        return permission_name(broker.glance().permission) if broker.process.is_awake else "gone"

    def tell(self, who: str, what: str) -> None:
        self.transcript.append(f"{self.clockwork.now_s:7.2f}  {who:8}  {what}")

    def check(self) -> None:
        """Whether all rules hold at this moment."""
        record = self.registry.record
        readers = [slave.name for slave in self.slaves if slave.may_be_reader and self._is_readable(slave)]
        is_over = record.reader is None and record.ended_by is EndedBy.HAND_BACK
        if not readers and not (is_over and self._acked):
            return
        is_master_read = self._is_readable(self.master)
        if len(readers) + is_master_read > 1:
            raise Broken(f"R1: {readers} and the master are readable at {self.clockwork.now_s:.3f}")
        if readers and readers != [record.reader]:
            raise Broken(f"R2: {readers[0]} is readable, and the record names {record.reader}")
        if is_master_read:
            lost = {queue: acked for queue, acked in self._acked.items() if self.master.table[queue] < acked}
            if lost:
                raise Broken(f"R3: the master is at {self.master.table}, and {lost} were acknowledged")

    # What can be done to it

    def start(self, name: str) -> None:
        if name == REGISTRY:
            self.registry.start()
        else:
            self.brokers[name].start()

    def kill(self, name: str) -> None:
        if name == REGISTRY:
            self.registry.process.is_up = False
        else:
            self.brokers[name].kill()

    def freeze(self, name: str) -> None:
        self.brokers[name].process.is_frozen = True

    def thaw(self, name: str) -> None:
        def arrange(waiting: list[tuple[bool, Do]]) -> list[tuple[bool, Do]]:
            if self._chance is None or self._chance.random() < 0.5:
                return waiting
            return sorted(waiting, key=lambda each: each[0])

        self.clockwork.thaw(self.brokers[name].process, arrange)

    def cut(self, one: str, other: str, *, is_one_way: bool = False) -> None:
        self.cables.cut |= {(one, other)} if is_one_way else {(one, other), (other, one)}

    def mend(self, one: str, other: str) -> None:
        self.cables.mend(lambda way: set(way) == {one, other})

    def consume(self, count: int = 1) -> int:
        """Have consumers consume messages wherever they may; how many they could."""
        for done in range(count):
            reader = next(
                (
                    broker
                    for broker in self.brokers.values()
                    if broker.process.is_awake and broker.look().permission & READ
                ),
                None,
            )
            if reader is None:
                return done
            self._turn += 1
            queue = QUEUES[self._turn % len(QUEUES)]
            if reader is not self.master and not self._acked:
                # Its master was read until a moment ago, and perhaps it never heard of the last messages.
                self._may_come_again(reader.table)
            reader.on_acked(queue)
            offset = reader.table[queue]
            acked = self._acked_at_master if reader is self.master else self._acked
            acked[queue] = max(offset, acked.get(queue, 0))
            if offset <= self._seen[queue]:
                self._on_again(reader.name, queue, offset)
            self._seen[queue] = max(offset, self._seen[queue])
        return count

    def assign(self, name: str, permission: int) -> None:
        """An administrator gives a broker another permission."""
        found = self.registry.assignment.find(name) or self.brokers[name].own
        self.registry.assign(msgspec.structs.replace(found, permission=permission))

    def end(self) -> bool:
        """An operator ends slave consumption, if its reader is not alive; whether he did."""
        record = self.registry.record
        if record.reader is None or record.reader in self.registry.presence:
            return False
        ended = msgspec.structs.replace(
            record, reader=None, ended_by=EndedBy.OPERATOR, reason="an operator ended it"
        )
        self.registry.write(ended)
        return True

    def heal(self) -> None:
        """Take everything out of the way."""
        self.cables.is_slow = False
        self.cables.mend(lambda _way: True)
        if not self.registry.process.is_up:
            self.registry.start()
        for name, broker in self.brokers.items():
            self.thaw(name)
            if not broker.process.is_up:
                broker.start()
            self.assign(name, FULL)

    def is_healed(self) -> bool:
        """Whether the master has all its permission, and nobody keeps it from anything."""
        record = self.registry.record
        return self.permission("master") == "FULL" and record.reader is None

    # Inside

    @staticmethod
    def _is_readable(broker: PlayedBroker) -> bool:
        """Whether a consumer could read from it at this moment."""
        return broker.process.is_awake and bool(broker.glance().permission & READ)

    def _rate(self) -> float:
        return 1.0 if self._chance is None else self._chance.uniform(0.985, 1.015)

    def _on_again(self, reader: str, queue: int, offset: int) -> None:
        self.again_count += 1
        self._in_flight[queue] -= 1
        if self._in_flight[queue] < 0:
            raise Broken(f"R5: {reader} gives out {offset} of queue {queue} again, which it had to know of")

    def _may_come_again(self, known: Mapping[int, int]) -> None:
        """Another broker is read from now on, which knows what was acknowledged up to here."""
        self._in_flight = {queue: max(0, seen - known.get(queue, 0)) for queue, seen in self._seen.items()}

    def _on_record(self, before: ReadRecord, record: ReadRecord) -> None:
        if before.reader is not None and record.reader is None:
            # What was acknowledged at the master it knows, and at a hand-back what was at the slave too.
            handed = self._acked if record.ended_by is EndedBy.HAND_BACK else {}
            at_master = self._acked_at_master
            self._may_come_again({queue: max(at_master[queue], handed.get(queue, 0)) for queue in QUEUES})
        if record.reader is not None and record.term != before.term:
            self._acked = {}
            self.switches += 1
            self.tell(REGISTRY, f"term {record.term}: {record.reader} is read")
        elif before.reader is not None and record.reader is None:
            self.tell(REGISTRY, f"term {record.term} is ended: {record.reason}")
        elif record.second != before.second:
            self.tell(REGISTRY, f"{record.second} may replace the master")
