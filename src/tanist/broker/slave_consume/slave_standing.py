"""A slave's part in slave consumption. Pure.

    FOLLOWING --the conditions held in N looks--> CLAIMING --written--> READING
    READING --the master is back, and has taken our offsets--> HANDING_BACK
    HANDING_BACK --the master has adopted the final offsets--> ENDING --written--> FOLLOWING
    HANDING_BACK --the link is lost, or no answer comes--> READING

What the registry says decides: a slave reads if, and as long as, the group's record names it. In HANDING_BACK
and ENDING it does not let itself be read any more, though the record still names it.

A slave that hears its master promises by that not to be read for as long as its checks take. It keeps the
promise whenever, and by whatever claim of its own, the record comes to name it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf

import msgspec

from tanist.broker.slave_consume.actions import Claim, PutRecord, SendNote, SendOffsets, SlaveAction, Tell
from tanist.broker.slave_consume.notes import MasterNote
from tanist.broker.slave_consume.permitted import Permitted, permitted
from tanist.broker.slave_consume.trigger import Condition, Trigger
from tanist.model.reading import FULL, NONE, Assigned, Assignment, EndedBy, ReadRecord, permission_name
from tanist.model.topics import READ

SILENCE_S = 2.0
"""After so long without an answer to our notes a link counts as down: a machine that dies closes nothing."""
HAND_BACK_TIMEOUT_S = 5.0
"""So long nobody is read while a master that is linked to us does not adopt what it was sent."""


class SlaveState(Enum):
    FOLLOWING = "following"
    CLAIMING = "claiming"
    READING = "reading"
    HANDING_BACK = "handing back"
    ENDING = "ending"


@dataclass(slots=True)
class SlaveStanding:
    """One slave's."""

    address: str
    checks: int
    held_until_s: Callable[[], float]
    """Up to when our session with the registry can not have been ended by others."""
    damage: Callable[[], str | None] = lambda: None
    """A place of our log or queues that is not as it was written; None if none is known."""
    state: SlaveState = field(default=SlaveState.FOLLOWING, init=False)
    assignment: Assignment | None = field(default=None, init=False)
    record: ReadRecord | None = field(default=None, init=False)
    trigger: Trigger = field(init=False)
    is_linked: bool = field(default=False, init=False)
    heard: int = field(default=0, init=False)
    _is_master_alive: bool | None = field(default=None, init=False)
    """Whether the registry has it; None if that is not known."""
    _has_exchanged: bool = field(default=False, init=False)
    _round: int = field(default=0, init=False)
    _adopted: tuple[int, int] = field(default=(0, 0), init=False)
    """Term and round that the master adopted last, as far as it told."""
    _offered: int = field(default=0, init=False)
    """Our last note that brought all offsets; 0 for none on this link."""
    _is_offering: bool = field(default=False, init=False)
    _is_offer_heard: bool = field(default=False, init=False)
    _heard_s: float = field(default=-inf, init=False)
    _promised_until_s: float = field(default=-inf, init=False)
    _handing_since_s: float = field(default=-inf, init=False)

    def __post_init__(self) -> None:
        self.trigger = Trigger(self.checks)

    @property
    def own(self) -> Assigned | None:
        return None if self.assignment is None else self.assignment.find(self.address)

    @property
    def master(self) -> Assigned | None:
        return None if self.assignment is None else self.assignment.master

    @property
    def is_reader(self) -> bool:
        """Whether the record names us."""
        return self.record is not None and self.record.reader == self.address

    @property
    def owns_offsets(self) -> bool:
        """Whether what our master tells of offsets has to wait: consumers have told us newer ones.

        They may have before our last start, until we know the record.
        """
        return self.record is None or self.state is not SlaveState.FOLLOWING

    def permitted(self, now_s: float) -> Permitted:
        """What this broker may do at this moment."""
        master = None if self.master is None else self.master.address
        if self.state in (SlaveState.HANDING_BACK, SlaveState.ENDING):
            term = 0 if self.record is None else self.record.term
            return Permitted(NONE, "it hands its consumers back to the master", master, term)
        if self.record is not None and self.is_reader and now_s < self._promised_until_s:
            return Permitted(NONE, "the master counts on it for a moment more", master, self.record.term)
        return permitted(self.own, self.record, master=master)

    # What the registry says.

    def on_assignment(self, assignment: Assignment) -> list[SlaveAction]:
        self.assignment = assignment
        return [Tell()]

    def on_record(self, record: ReadRecord) -> list[SlaveAction]:
        """The record as it is now."""
        self.record = record
        if not self.is_reader:
            self.state = SlaveState.FOLLOWING
            self._end_offer()
        elif self.state in (SlaveState.FOLLOWING, SlaveState.CLAIMING):
            self.state = SlaveState.READING
        return [Tell()]

    def on_master_alive(self, is_alive: bool | None) -> None:
        self._is_master_alive = is_alive

    # What the link says.

    def on_linked(self) -> list[SlaveAction]:
        self._begin_link(is_linked=True)
        # What the master hears from us now, it counts on for as long as all checks take.
        self.trigger.begin_anew()
        return [Tell(), *self.on_note_due()]

    def on_unlinked(self) -> list[SlaveAction]:
        self._begin_link(is_linked=False)
        return [Tell()]

    def on_offered(self, seq: int) -> None:
        """All offsets have been sent; this was the note with the last of them."""
        self._offered = seq

    def on_master_note(self, note: MasterNote, now_s: float) -> list[SlaveAction]:
        """The master said something on the link that is up now."""
        self.heard = note.seq
        self._heard_s = now_s
        if not self.is_reader:
            self._promised_until_s = now_s + self.trigger.least_s
        self._adopted = (note.adopted_term, note.adopted_round)
        if self.state is SlaveState.READING and self._offered:
            self._is_offer_heard = note.heard >= self._offered
            self._has_exchanged |= note.taken >= self._offered
        if self.state is SlaveState.HANDING_BACK:
            assert self.record is not None
            if self._adopted == (self.record.term, self._round):
                self.state = SlaveState.ENDING
                return [Tell(), PutRecord(self._ended_record())]
        return self._go_on(now_s)

    # Time

    def on_note_due(self) -> list[SlaveAction]:
        """Half a second has passed.

        We say nothing while we do not know whether we are the reader: what we say, the master counts on.
        """
        is_sure = self.record is not None and self.state is not SlaveState.CLAIMING
        return [SendNote()] if self.is_linked and is_sure else []

    def on_check(self, now_s: float) -> list[SlaveAction]:
        """A second has passed."""
        if self.state is SlaveState.FOLLOWING:
            if self.trigger.on_check(self._conditions(now_s), now_s):
                self.state = SlaveState.CLAIMING
                return [Claim(self._claimed_record())]
            return []
        self.trigger.begin_anew()
        if self.state is SlaveState.ENDING:
            # What was written may have been lost on its way.
            return [PutRecord(self._ended_record())] if self.is_reader and self._is_connected(now_s) else []
        if self.state is SlaveState.HANDING_BACK and now_s - self._handing_since_s >= HAND_BACK_TIMEOUT_S:
            self.state = SlaveState.READING
            self._end_offer()
        if self._is_offer_heard:
            # The master may not have known yet that we are read; and what is offered grows old.
            self._is_offering = False
        return [Tell(), *self._go_on(now_s)]

    def on_claim_failed(self) -> list[SlaveAction]:
        """The claim was not written: something was not as it was read, or the registry does not answer."""
        self.trigger.begin_anew()
        if self.state is SlaveState.CLAIMING:
            self.state = SlaveState.READING if self.is_reader else SlaveState.FOLLOWING
        return [Tell()]

    # Inside

    def _go_on(self, now_s: float) -> list[SlaveAction]:
        """Take the next step of a hand-back, if the master is back and could be read."""
        if self.state is not SlaveState.READING or not self.is_linked or not self.heard:
            return []
        if self._has_exchanged and self._is_master_alive and self._is_connected(now_s):
            self.state = SlaveState.HANDING_BACK
            self._handing_since_s = now_s
            self._round = self._next_round()
            # First nobody reads here any more, and then the offsets are final.
            return [Tell(), SendOffsets(self._round)]
        if not self._is_offering:
            self._is_offering = True
            self._is_offer_heard = False
            return [SendOffsets(0)]
        return []

    def _next_round(self) -> int:
        """One that the master has not adopted yet, also if it was this slave before its last start."""
        assert self.record is not None
        term, adopted_round = self._adopted
        return max(self._round, adopted_round if term == self.record.term else 0) + 1

    def _begin_link(self, *, is_linked: bool) -> None:
        self.is_linked = is_linked
        self.heard = 0
        self._end_offer()
        if self.state is SlaveState.HANDING_BACK:
            # The master may have adopted what it got. It is not read before the record is ours no more.
            self.state = SlaveState.READING

    def _end_offer(self) -> None:
        self._has_exchanged = self._is_offering = self._is_offer_heard = False
        self._offered = 0

    def _is_connected(self, now_s: float) -> bool:
        return now_s < self.held_until_s()

    def _conditions(self, now_s: float) -> tuple[Condition, ...]:
        own, master, record = self.own, self.master, self.record
        is_connected = self._is_connected(now_s)
        is_absent = is_connected and self._is_master_alive is False
        has_full = master is not None and master.permission & FULL == FULL
        may_read = own is not None and bool(own.permission & READ)
        is_second = record is not None and record.second == self.address
        damage = self.damage()
        return (
            Condition("registry reached", is_connected, "yes" if is_connected else "no"),
            Condition(
                "master absent from the registry",
                is_absent,
                {None: "not known", True: "it is there", False: "it is not there"}[self._is_master_alive],
            ),
            self._link_condition(now_s),
            Condition(
                "master may be read and written",
                has_full,
                "no master is assigned" if master is None else permission_name(master.permission),
            ),
            Condition(
                "this slave may be read",
                may_read,
                "it is not assigned" if own is None else permission_name(own.permission),
            ),
            Condition(
                "this slave is the second",
                is_second,
                "no record" if record is None else f"the record names {record.second or 'nobody'}",
            ),
            Condition("this slave's log is sound", damage is None, damage or "no damage is known"),
        )

    def _link_condition(self, now_s: float) -> Condition:
        name, silent_s = "link to the master down", now_s - self._heard_s
        if not self.is_linked:
            return Condition(name, True, "down")
        if self.heard and silent_s >= SILENCE_S:
            return Condition(name, True, f"nothing came for {silent_s:.0f} s")
        return Condition(name, False, "up")

    def _claimed_record(self) -> ReadRecord:
        assert self.record is not None
        return msgspec.structs.replace(
            self.record,
            term=self.record.term + 1,
            reader=self.address,
            ended_by=None,
            round=0,
            reason="; ".join(f"{each.name}: {each.found}" for each in self.trigger.conditions),
            brokers=() if self.assignment is None else self.assignment.brokers,
        )

    def _ended_record(self) -> ReadRecord:
        assert self.record is not None
        return msgspec.structs.replace(
            self.record,
            reader=None,
            ended_by=EndedBy.HAND_BACK,
            round=self._round,
            reason=f"the master has adopted the offsets of hand-back {self._round}",
        )
