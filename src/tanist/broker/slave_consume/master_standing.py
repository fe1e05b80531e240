"""A master's part in slave consumption. Pure.

It is safe to be read while nobody can have replaced it: while its session with the registry is held, or while
the second, the one slave that could replace it, was linked to it so lately that it does not let itself be
read yet. Without both it gives up everything, by itself, and takes it back only on the word of that slave or
of an operator. What is permitted is computed for the moment that is asked about: a process may have stood
still.

A record that was sent to the registry without an answer may still be written, at any later time: whoever it
names second counts as second too until the record is seen to be another one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import msgspec

from tanist.broker.slave_consume.actions import (
    MasterAction,
    PutRecord,
    ReadAgain,
    SendNote,
    TakeOffsets,
    Tell,
)
from tanist.broker.slave_consume.notes import SlaveNote
from tanist.broker.slave_consume.permitted import NOTHING_ADOPTED, Adopted, Permitted, permitted
from tanist.broker.slave_consume.trigger import CHECK_PERIOD_S
from tanist.model.offsets import QueueOffset
from tanist.model.reading import Assigned, Assignment, EndedBy, ReadRecord

_CLOCK_SHARE = 0.95
"""How much of the slave's time we count on: its clock may run faster than ours."""
_KEPT_SENDS = 64

LONELY = "no slave is connected and the registry can not be reached: a slave may be read by now"


@dataclass(slots=True)
class MasterStanding:
    """One master's."""

    address: str
    held_until_s: Callable[[], float]
    """Up to when our session with the registry can not have been ended by others."""
    adopted: Adopted = NOTHING_ADOPTED
    assignment: Assignment | None = field(default=None, init=False)
    record: ReadRecord | None = field(default=None, init=False)
    given_up: str | None = field(default=None, init=False)
    """Why it has given up, until it is restored."""
    seq: int = field(default=0, init=False)
    taken: int = field(default=0, init=False)
    """The slave's last note whose offsets, with the pieces before it, we have taken over."""
    _sent_s: dict[int, float] = field(default_factory=dict[int, float], init=False)
    _leases_s: dict[str, float] = field(default_factory=dict[str, float], init=False)
    """Up to when each slave has said, by hearing us, that it will not be read."""
    _safe_until_s: float = field(default=-inf, init=False)
    _is_present: bool = field(default=False, init=False)
    """Whether the record was read in the session that we have, with our presence in it."""
    _naming: str | None = field(default=None, init=False)
    """Who may have been named second, though the record, as we know it, does not say so yet."""
    _is_putting: bool = field(default=False, init=False)
    _is_restoring: bool = field(default=False, init=False)
    """Whether the next look at the record is to end what we gave up."""
    _pieces: dict[str, dict[int, QueueOffset]] = field(
        default_factory=dict[str, dict[int, QueueOffset]], init=False
    )
    _gone_back: dict[str, list[int]] = field(default_factory=dict[str, list[int]], init=False)
    _permitted: Permitted = field(init=False)

    def __post_init__(self) -> None:
        self._permitted = permitted(None, None)

    @property
    def own(self) -> Assigned | None:
        return None if self.assignment is None else self.assignment.find(self.address)

    @property
    def safe_until_s(self) -> float:
        """Up to when nobody else can be read, as far as is known now; for ever, if nobody could be."""
        if self.record is None:
            return self._present_until_s
        return max(self._present_until_s, self._lease_until_s)

    def permitted(self, now_s: float) -> Permitted:
        """What this broker may do at this moment."""
        if now_s >= self._safe_until_s:
            self._look_around(now_s)
        return self._permitted

    # What the registry says.

    def on_assignment(self, assignment: Assignment) -> list[MasterAction]:
        self.assignment = assignment
        return self._told()

    def on_record(self, record: ReadRecord) -> list[MasterAction]:
        """The record as it is now, read while our presence is in the registry."""
        before, self.record = self.record, record
        self._is_present = True
        self._is_putting = False
        if record != before:
            self._naming = None
        self._safe_until_s = -inf
        if self._is_restoring or _is_ended_by_operator(before, record):
            self.given_up = None
        self._is_restoring = False
        return self._told()

    def on_session_lost(self) -> list[MasterAction]:
        """Our session is over, and our presence goes with it: another session is worth nothing at first."""
        self._is_present = False
        self._is_putting = False
        self._is_restoring = False
        self._safe_until_s = -inf
        return [Tell()]

    def on_put_lost(self) -> list[MasterAction]:
        """Nobody knows whether the last record was written, or will be."""
        self._is_putting = False
        return [ReadAgain()]

    # What the slave says on the link.

    def on_linked(self, address: str) -> None:
        """A slave is linked anew: what it began to tell before is over. What it heard counts on."""
        if self.record is None or self.record.reader in (None, address):
            # Else it is another one than who tells offsets now.
            self.taken = 0
            self._pieces, self._gone_back = {}, {}

    def next_seq(self, now_s: float) -> int:
        """A note is sent now: its number."""
        self.seq += 1
        self._sent_s[self.seq] = now_s
        if len(self._sent_s) > _KEPT_SENDS:
            del self._sent_s[next(iter(self._sent_s))]
        return self.seq

    def on_slave_note(self, note: SlaveNote, now_s: float) -> list[MasterAction]:
        """A slave of the group said something."""
        actions: list[MasterAction] = []
        if note.is_reading:
            actions += self._on_reading(note)
        else:
            self._renew_lease(note)
            actions += self._name_second(note, now_s)
            actions += self._restore(note, now_s)
        return [*actions, SendNote()]

    def on_adopted(self, term: int, round_: int) -> list[MasterAction]:
        """The final offsets of a hand-back are ours, on the disk."""
        self.adopted = max(self.adopted, Adopted(term, round_))
        # The record still names the slave, and with its end we are read again.
        self.given_up = None
        return [*self._told(), SendNote()]

    # Time and operators

    def on_tick(self, now_s: float) -> list[MasterAction]:
        """Some time has passed. Who asked what is permitted may have seen the change before us."""
        self._look_around(now_s)
        return [Tell()]

    def on_restored(self) -> list[MasterAction]:
        """An operator says that nobody else is read."""
        self.given_up = None
        return self._told()

    # Inside

    def _told(self) -> list[MasterAction]:
        self._compute()
        return [Tell()]

    def _look_around(self, now_s: float) -> None:
        """Nobody has promised for this moment that we are not replaced: see who does, or give up."""
        self._safe_until_s = self.safe_until_s
        is_in_charge = self.record is not None and self.record.reader is None
        if now_s >= self._safe_until_s and is_in_charge and self.given_up is None:
            self.given_up = LONELY
        self._compute()

    def _compute(self) -> None:
        # Another than us, if the role was taken from us.
        master = None if self.assignment is None else self.assignment.master
        self._permitted = permitted(
            self.own,
            self.record,
            master=None if master is None else master.address,
            adopted=self.adopted,
            given_up=self.given_up,
        )

    @property
    def _present_until_s(self) -> float:
        return self.held_until_s() if self._is_present else -inf

    @property
    def _lease_until_s(self) -> float:
        """Up to when nobody who could replace us is read; for ever, if nobody could."""
        return min((self._leases_s.get(address, -inf) for address in self._seconds()), default=inf)

    def _seconds(self) -> set[str]:
        """All that the record may name second by now."""
        named = None if self.record is None else self.record.second
        return {address for address in (named, self._naming) if address is not None}

    def _renew_lease(self, note: SlaveNote) -> None:
        sent_s = self._sent_s.get(note.heard)
        if sent_s is not None:
            until_s = sent_s + max(0, note.checks - 1) * CHECK_PERIOD_S * _CLOCK_SHARE
            self._leases_s[note.address] = max(self._leases_s.get(note.address, -inf), until_s)

    def _on_reading(self, note: SlaveNote) -> list[MasterAction]:
        record = self.record
        if record is None or record.reader != note.address or record.term != note.term:
            is_ahead = record is None or note.term > record.term
            if is_ahead and self.given_up is None and note.address in self._seconds():
                # It knows more than we do, and it is the one who could.
                self.given_up = f"{note.address} says that it is read, in term {note.term}"
                return [*self._told(), ReadAgain()]
            return [ReadAgain()] if is_ahead else []
        if not note.has_offsets:
            return []
        for key, queues in note.offsets.items():
            self._pieces.setdefault(key, {}).update(queues)
        for key, queue_ids in note.gone_back.items():
            self._gone_back.setdefault(key, []).extend(queue_ids)
        if not note.is_last:
            return []
        offsets, self._pieces = self._pieces, {}
        gone_back, self._gone_back = self._gone_back, {}
        self.taken = note.seq
        return [TakeOffsets(offsets, note.term, note.round, gone_back, note.view)]

    def _name_second(self, note: SlaveNote, now_s: float) -> list[MasterAction]:
        """Name the slave that may be read when we are gone, once it is linked to us."""
        record, assignment = self.record, self.assignment
        if record is None or assignment is None or record.reader is not None:
            return []
        second = assignment.second
        if second is None or second.address != note.address or record.second == note.address:
            return []
        if self._is_putting or now_s >= self._present_until_s:
            return []
        self._is_putting = True
        self._naming = note.address
        self._safe_until_s = -inf
        return [PutRecord(msgspec.structs.replace(record, second=note.address, brokers=assignment.brokers))]

    def _restore(self, note: SlaveNote, now_s: float) -> list[MasterAction]:
        """The one who could replace us is linked to us, and says that it is not read."""
        if self.given_up is None or note.address not in self._seconds() or now_s >= self._lease_until_s:
            return []
        if now_s < self._present_until_s:
            self._is_restoring = True
            return [ReadAgain()]
        self.given_up = None
        return self._told()


def _is_ended_by_operator(before: ReadRecord | None, record: ReadRecord) -> bool:
    """Whether an operator has ended a slave consumption since, also one that we never heard of."""
    if record.reader is not None or record.ended_by is not EndedBy.OPERATOR:
        return False
    return before is None or before.reader is not None or before.term < record.term
