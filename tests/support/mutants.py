"""Planted bugs: machines with one rule left out each, for simulations that have to find them."""

from dataclasses import replace
from math import inf

import msgspec

from tanist.broker.slave_consume.actions import MasterAction, SlaveAction, TakeOffsets
from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.notes import MasterNote, SlaveNote
from tanist.broker.slave_consume.permitted import Permitted, permitted
from tanist.broker.slave_consume.slave_standing import SlaveStanding, SlaveState
from tanist.ha.ack_right import AckRight
from tanist.ha.sync_state import SyncState
from tanist.model.reading import ReadRecord


class ExpandsLate(SyncState):
    """What is proposed does not count before it is confirmed."""

    def _recount(self) -> None:
        kept, self._proposed = self._proposed, None
        super()._recount()
        self._proposed = kept


class ShrinksEarly(SyncState):
    """What is to leave counts no more before that is confirmed."""

    def _recount(self) -> None:
        kept = self.members
        self.members = self.members if self._proposed is None else self._proposed
        super()._recount()
        self.members = kept


class ForgetsDoubt(SyncState):
    """A proposal without an answer is taken for refused."""

    def on_unanswered(self, *, now_s: float) -> None:
        super().on_unanswered(now_s=now_s)
        self._doubtful = frozenset()
        self._recount()


class LooksPastTheLost(SyncState):
    """Only those that are connected count."""

    def _confirm(self) -> None:
        acks = [self._peers[broker_id].acked_to for broker_id in self._others if broker_id in self._peers]
        self.confirmed_to = max(self.confirmed_to, min(acks, default=self._held_to))


class AsksOnce(AckRight):
    """Whether it may acknowledge is asked before a message is written and not again."""

    def may_acknowledge(self, end: int, now_s: float) -> bool:
        return True


class LongLease(MasterStanding):
    """It counts on its slave for longer than that promises."""

    def _renew_lease(self, note: SlaveNote) -> None:
        super()._renew_lease(note)
        if note.heard in self._sent_s:
            self._leases_s[note.address] += 1.0


class StaysUp(MasterStanding):
    """It never gives up."""

    def _look_around(self, now_s: float) -> None:
        super()._look_around(now_s)
        self.given_up = None
        self._compute()


class BelievesReaders(MasterStanding):
    """It counts on a slave that says that it is read."""

    def on_slave_note(self, note: SlaveNote, now_s: float) -> list[MasterAction]:
        self._renew_lease(note)
        self.given_up = None
        return super().on_slave_note(note, now_s)


class TakesLess(MasterStanding):
    """It takes over what its slave hands back also where that is less than it had itself."""

    def on_slave_note(self, note: SlaveNote, now_s: float) -> list[MasterAction]:
        return [
            replace(action, gone_back={key: list(queues) for key, queues in action.offsets.items()})
            if isinstance(action, TakeOffsets)
            else action
            for action in super().on_slave_note(note, now_s)
        ]


class PromisesNothing(SlaveStanding):
    """It lets itself be read as soon as the record names it."""

    def on_master_note(self, note: MasterNote, now_s: float) -> list[SlaveAction]:
        actions = super().on_master_note(note, now_s)
        self._promised_until_s = -inf
        return actions


class ReadsOn(SlaveStanding):
    """It is read while it hands back."""

    def permitted(self, now_s: float) -> Permitted:
        master = None if self.master is None else self.master.address
        return permitted(self.own, self.record, master=master)


class SpeaksTooSoon(SlaveStanding):
    """It says that it is not read before it has read the record."""

    def on_linked(self) -> list[SlaveAction]:
        self.record = self.record or ReadRecord(group="g")
        return super().on_linked()


class TakesOldOffsets(SlaveStanding):
    """It follows its master's offsets before it has read the record."""

    @property
    def owns_offsets(self) -> bool:
        return self.state is not SlaveState.FOLLOWING


class AnySlave(SlaveStanding):
    """It takes itself for the second, whoever is."""

    def on_record(self, record: ReadRecord) -> list[SlaveAction]:
        return super().on_record(msgspec.structs.replace(record, second=self.address))
