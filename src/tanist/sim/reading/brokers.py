"""Brokers that are played around the real standings: what their duties do, without I/O."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tanist.broker.slave_consume.actions import (
    Claim,
    MasterAction,
    PutRecord,
    ReadAgain,
    SendNote,
    SendOffsets,
    SlaveAction,
    TakeOffsets,
    Tell,
)
from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.notes import NOTE_PERIOD_S, MasterNote, SlaveNote, never_less
from tanist.broker.slave_consume.permitted import NOTHING_ADOPTED, Adopted, Permitted
from tanist.broker.slave_consume.slave_standing import SlaveStanding, SlaveState
from tanist.broker.slave_consume.trigger import CHECK_PERIOD_S
from tanist.model.offsets import QueueOffset
from tanist.model.reading import Assigned, ReadRecord, permission_name
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Clockwork, Do, Process
from tanist.sim.reading.links import LinkEnd
from tanist.sim.reading.registry import Look, PlayedRegistry
from tanist.sim.reading.session import PlayedSession

KEY = "TopicA@readers"
QUEUES = (0, 1, 2)
_PIECE_QUEUES = 2
_CONNECT_S = 0.3

Table: TypeAlias = dict[int, int]
MakeMaster: TypeAlias = Callable[[str, Callable[[], float], Adopted], MasterStanding]
MakeSlave: TypeAlias = Callable[[str, int, Callable[[], float]], SlaveStanding]
Story: TypeAlias = Callable[[str, str], None]


@dataclass(slots=True)
class Surroundings:
    """What all brokers of a group have around them."""

    clockwork: Clockwork
    cables: Cables
    registry: PlayedRegistry
    tell: Story


class PlayedBroker(ABC):
    """One broker, through all its lives; ``table`` is its consumer offsets, which outlive it."""

    def __init__(self, around: Surroundings, own: Assigned, rate: float = 1.0) -> None:
        self.around = around
        self.own = own
        self.process = Process(own.address, rate)
        self.table: Table = dict.fromkeys(QUEUES, 0)
        self._session: PlayedSession | None = None
        self._told: Permitted | None = None

    @property
    def name(self) -> str:
        return self.own.address

    @property
    def now_s(self) -> float:
        return self.around.clockwork.now_s * self.process.rate

    def start(self) -> None:
        self.process.life += 1
        self.process.is_up = True
        self.process.is_frozen = False
        self.process.waiting.clear()
        self._told = None
        around = self.around
        session = PlayedSession(around.clockwork, around.cables, around.registry, self.process, self.own)
        session.on_seen = self._on_seen
        session.on_lost = self._on_lost
        self._session = session
        self._begin(session)
        session.start()

    def kill(self) -> None:
        self.process.is_up = False
        self._told = None

    def on_registry_changed(self) -> None:
        """A watch: it is heard if we have a session, and then everything is read again."""
        session, process = self._session, self.process
        if session is not None and process.is_up:
            self.around.cables.say(("registry", self.name), process, session.look_again)

    @abstractmethod
    def look(self) -> Permitted:
        """What is permitted, as a consumer's question finds it."""

    @abstractmethod
    def glance(self) -> Permitted:
        """The same, without a trace."""

    @abstractmethod
    def _begin(self, session: PlayedSession) -> None: ...

    @abstractmethod
    def _on_seen(self, look: Look) -> None: ...

    @abstractmethod
    def _on_lost(self) -> None: ...

    def on_acked(self, queue: int) -> None:
        """A consumer has acknowledged the next message of a queue."""
        self.table[queue] += 1

    def _tell(self) -> None:
        found = self.look()
        if found != self._told:
            self._told = found
            self.around.tell(self.name, f"{permission_name(found.permission)}: {found.reason}")

    def _after(self, delay_s: float, do: Do) -> None:
        self.around.clockwork.after(delay_s / self.process.rate, do, process=self.process)


class PlayedMaster(PlayedBroker):
    """The master of a group."""

    standing: MasterStanding

    def __init__(
        self, around: Surroundings, own: Assigned, rate: float = 1.0, make: MakeMaster = MasterStanding
    ) -> None:
        super().__init__(around, own, rate)
        self._make = make
        self._saved: tuple[Adopted, Table] = (NOTHING_ADOPTED, dict(self.table))
        self._links: dict[LinkEnd, list[Any]] = {}
        self.save_s = 0.02
        """How long it takes to have the offsets of a hand-back on the disk."""

    def look(self) -> Permitted:
        return self.standing.permitted(self.now_s)

    def glance(self) -> Permitted:
        return copy.copy(self.standing).permitted(self.now_s)

    def on_acked(self, queue: int) -> None:
        super().on_acked(queue)
        self._saved = (self._saved[0], dict(self.table))
        self._feed()

    def restore(self) -> None:
        """An operator's word."""
        self._do(self.standing.on_restored())

    def take_link(self, end: LinkEnd) -> None:
        """A slave is let in."""
        # The slave's address and its last note.
        self._links[end] = [None, 0]
        end.on_heard = lambda note: self._on_note(end, note)
        end.on_closed = lambda: self._links.__delitem__(end)
        end.say(dict(self.table))

    def _begin(self, session: PlayedSession) -> None:
        adopted, table = self._saved
        self.table = dict(table)
        self._links = {}
        self.standing = self._make(self.name, lambda: session.held_until_s, adopted)
        self._tick()
        self._tell()

    def _on_seen(self, look: Look) -> None:
        assigned = self.standing.on_assignment(look.assignment)
        self._do([*assigned, *self.standing.on_record(look.record)])

    def _on_lost(self) -> None:
        self._do(self.standing.on_session_lost())

    def _tick(self) -> None:
        self._do(self.standing.on_tick(self.now_s))
        self._after(0.25, self._tick)

    def _on_note(self, end: LinkEnd, note: SlaveNote) -> None:
        link = self._links[end]
        if link[0] is None:
            self.standing.on_linked(note.address)
        link[:] = [note.address, note.seq]
        self._do(self.standing.on_slave_note(note, self.now_s), end)

    def _do(self, actions: Sequence[MasterAction], end: LinkEnd | None = None) -> None:
        assert self._session is not None
        for action in actions:
            match action:
                case Tell():
                    self._tell()
                case ReadAgain():
                    self._session.look_again()
                case PutRecord(record):
                    self._put(record)
                case SendNote():
                    self._send_note(end)
                case TakeOffsets():
                    self._take(action)

    def _put(self, record: ReadRecord) -> None:
        assert self._session is not None
        self._session.write(
            record,
            lambda: self._do(self.standing.on_record(record)),
            lambda: self._do(self.standing.on_put_lost()),
        )

    def _send_note(self, end: LinkEnd | None) -> None:
        if end is None or end not in self._links:
            return
        adopted = self.standing.adopted
        end.say(
            MasterNote(
                seq=self.standing.next_seq(self.now_s),
                heard=self._links[end][1],
                taken=self.standing.taken,
                adopted_term=adopted.term,
                adopted_round=adopted.round,
            )
        )

    def _take(self, action: TakeOffsets) -> None:
        own = {KEY: {queue: QueueOffset(offset) for queue, offset in self.table.items()}}
        taken = never_less(action.offsets, own, action.gone_back).get(KEY, {})
        self.table.update({queue: int(offset) for queue, offset in taken.items()})
        self._feed()
        if action.round:
            self._after(self.save_s, lambda: self._adopt(action))

    def _adopt(self, action: TakeOffsets) -> None:
        self._saved = (max(self._saved[0], Adopted(action.term, action.round)), dict(self.table))
        offsets = " ".join(str(self.table[queue]) for queue in QUEUES)
        self.around.tell(
            self.name, f"has adopted the offsets {offsets} (term {action.term}, round {action.round})"
        )
        reader = None if self.standing.record is None else self.standing.record.reader
        end = next((end for end, link in self._links.items() if link[0] == reader), None)
        self._do(self.standing.on_adopted(action.term, action.round), end)

    def _feed(self) -> None:
        for end in self._links:
            end.say(dict(self.table))


class PlayedSlave(PlayedBroker):
    """A slave of a group."""

    standing: SlaveStanding

    def __init__(
        self,
        around: Surroundings,
        own: Assigned,
        master: PlayedMaster,
        *,
        rate: float = 1.0,
        make: MakeSlave = SlaveStanding,
        checks: int = 3,
    ) -> None:
        super().__init__(around, own, rate)
        self._master = master
        self._make = make
        self._checks = checks
        self._end: LinkEnd | None = None
        self._held: Table = {}
        """What the master told of offsets while ours are newer."""
        self._seq = 0

    @property
    def may_be_reader(self) -> bool:
        """Whether it takes itself for the reader."""
        return self.process.is_up and self.standing.is_reader

    def look(self) -> Permitted:
        return self.standing.permitted(self.now_s)

    def glance(self) -> Permitted:
        return self.look()

    def _begin(self, session: PlayedSession) -> None:
        self._end = None
        self._held = {}
        self._seq = 0
        self.standing = self._make(self.name, self._checks, lambda: session.held_until_s)
        self._connect()
        self._check()
        self._note()
        self._tell()

    def _on_seen(self, look: Look) -> None:
        assigned = self.standing.on_assignment(look.assignment)
        self.standing.on_master_alive(look.is_master_alive)
        self._do([*assigned, *self.standing.on_record(look.record)])

    def _on_lost(self) -> None:
        self.standing.on_master_alive(None)

    def _connect(self) -> None:
        self._after(_CONNECT_S, self._connect)
        if self._end is not None:
            return
        master, process, around = self._master.process, self.process, self.around
        end = LinkEnd(process, around.clockwork, around.cables, self._on_heard, self._on_closed)
        self._end = end

        def accept() -> None:
            taken = LinkEnd(master, around.clockwork, around.cables, lambda _note: None, lambda: None, end)
            end.other = taken
            self._master.take_link(taken)

        if master.is_up:
            around.cables.say((self.name, master.name), master, accept)

    def _on_heard(self, what: Any) -> None:
        if not self.standing.is_linked:
            self._do(self.standing.on_linked())
        if isinstance(what, MasterNote):
            self._do(self.standing.on_master_note(what, self.now_s))
            promised_s = CHECK_PERIOD_S * (self._checks - 1) + 0.0001
            self._after(promised_s, lambda: None)
        else:
            self._held = what
            self._free_offsets()

    def _on_closed(self) -> None:
        self._end = None
        self._do(self.standing.on_unlinked())

    def _free_offsets(self) -> None:
        if not self.standing.owns_offsets and self._held:
            self.table.update(self._held)
            self._held = {}

    def _check(self) -> None:
        self._do(self.standing.on_check(self.now_s))
        self._after(CHECK_PERIOD_S + 0.001, self._check)

    def _note(self) -> None:
        self._do(self.standing.on_note_due())
        self._after(NOTE_PERIOD_S, self._note)

    def _do(self, actions: Sequence[SlaveAction]) -> None:
        for action in actions:
            match action:
                case Tell():
                    self._tell()
                    self._free_offsets()
                case SendNote():
                    self._send_note()
                case SendOffsets(round_):
                    self._send_offsets(round_)
                case Claim(record):
                    self._claim(record)
                case PutRecord(record):
                    self._put(record)

    def _send_note(self, *, round_: int = 0, offsets: Table | None = None, is_last: bool = True) -> None:
        if self._end is None:
            return
        self._seq += 1
        record = self.standing.record
        table = {queue: QueueOffset(offset) for queue, offset in (offsets or {}).items()}
        note = SlaveNote(
            seq=self._seq,
            heard=self.standing.heard,
            address=self.name,
            checks=self._checks,
            term=0 if record is None else record.term,
            is_reading=self.standing.is_reader,
            round=round_,
            has_offsets=offsets is not None,
            is_last=is_last,
            offsets={KEY: table} if table else {},
        )
        self._end.say(note)

    def _send_offsets(self, round_: int) -> None:
        if round_:
            offsets = " ".join(str(self.table[queue]) for queue in QUEUES)
            self.around.tell(self.name, f"hands back the offsets {offsets} (round {round_})")
        for first in range(0, len(QUEUES), _PIECE_QUEUES):
            piece = {queue: self.table[queue] for queue in QUEUES[first : first + _PIECE_QUEUES]}
            self._send_note(round_=round_, offsets=piece, is_last=first + _PIECE_QUEUES >= len(QUEUES))
        self.standing.on_offered(self._seq)

    def _claim(self, record: ReadRecord) -> None:
        master = self.standing.master
        assert self._session is not None
        assert master is not None
        self.around.tell(self.name, f"claims term {record.term}")

        def failed() -> None:
            assert self._session is not None
            self.around.tell(self.name, "its claim is not written, as far as it knows")
            self._do(self.standing.on_claim_failed())
            self._session.look_again()

        self._session.write(
            record, lambda: self._do(self.standing.on_record(record)), failed, absent=master.address
        )

    def _put(self, record: ReadRecord) -> None:
        assert self._session is not None
        session = self._session
        if self.standing.state is SlaveState.ENDING:
            session.write(record, lambda: self._do(self.standing.on_record(record)), session.look_again)
