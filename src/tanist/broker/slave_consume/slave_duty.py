"""A slave where a coordinator says who is read: it looks after its master, and is read in its place."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator, Sequence
from functools import partial

import msgspec

from tanist.broker.master_place import MasterPlace
from tanist.broker.operating.damage import first_damage
from tanist.broker.slave_consume.actions import Claim, PutRecord, SendNote, SendOffsets, SlaveAction, Tell
from tanist.broker.slave_consume.duplicates import (
    TURN_KEYS,
    CommittedOffsets,
    duplicates_delivered,
    in_steps,
    unbounded,
)
from tanist.broker.slave_consume.duty import DutyParts, ReadingDuty, in_turns
from tanist.broker.slave_consume.group_registry import Seen
from tanist.broker.slave_consume.live_view import NOBODY, LiveView
from tanist.broker.slave_consume.notes import (
    NOTE_PERIOD_S,
    SlaveNote,
    decode_master_note,
    encode_note,
    gone_back,
    pieces,
)
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.slave_standing import SlaveStanding, SlaveState
from tanist.broker.slave_consume.status import slave_status
from tanist.broker.slave_consume.trigger import CHECK_PERIOD_S
from tanist.coord import Conflict, RegistryUnavailable
from tanist.errors import MQError, ResponseError, lone_error
from tanist.ha.notes import SendNote as SendOnLink
from tanist.model.offsets import QueueOffset
from tanist.model.reading import ReadRecord
from tanist.protocol.bodies.slave_consume import LedgerEvent, SlaveConsumeStatus
from tanist.protocol.codes import ResponseCode

_NAMED_GROUPS = 10
_log = logging.getLogger(__name__)

_SAVE_S = 1.0
_SAVE_SHARE = 20
_MARGIN_S = 0.001
"""A timer may come a moment early, and the next look would be one too few."""


class SlaveDuty(ReadingDuty):
    """One slave's; a ``tanist.ha.notes.SlaveNotes``."""

    def __init__(self, parts: DutyParts) -> None:
        super().__init__(parts)
        self.standing = SlaveStanding(
            self._address,
            parts.state.settings.slave_consume_checks,
            lambda: self.registry.held_until_s,
            lambda: first_damage(parts.state),
        )
        self.on_offsets_free: Callable[[], None] = lambda: None
        """Called when what the master tells of offsets counts again."""
        self.on_offsets_taken: Callable[[], None] = lambda: None
        """Called before it counts no more: what has come counts, whatever it waits for."""
        self.on_master: Callable[[MasterPlace], None] = lambda _place: None
        """Called when the master is there, and is not linked to us."""
        self._send: SendOnLink | None = None
        self._seq = 0
        self.master_view: LiveView | None = None
        """Who consumed at the master when it last said so."""
        self._hasten = asyncio.Event()
        self._is_claiming = False

    def look(self) -> Permitted:
        return self.standing.permitted(self._now_s)

    def _status(self) -> SlaveConsumeStatus:
        return slave_status(
            self.standing,
            group=self._state.settings.broker_name,
            now_s=self._now_s,
            now_ms=self._state.clock.now_ms(),
            session=self.registry.session.value,
        )

    def duplicates_if_ended(self) -> Generator[None, None, dict[str, int] | None]:
        yield from ()
        return None

    async def end(self, reason: str, *, is_forced: bool) -> str:  # noqa: ARG002
        master = self.standing.master
        where = "the master" if master is None else master.address
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"this is a slave; ask {where} to end it")

    def owns_offsets(self) -> bool:
        """Whether what the master tells of offsets has to wait."""
        return self.standing.owns_offsets

    # What the master says

    def on_linked(self, send: SendOnLink) -> None:
        self._send = send
        self._do(self.standing.on_linked())

    def on_note(self, note: bytes) -> None:
        said = decode_master_note(note)
        if said.view is not None:
            self.master_view = said.view
        self._do(self.standing.on_master_note(said, self._now_s))

    def on_unlinked(self) -> None:
        self._send = None
        self._do(self.standing.on_unlinked())
        self._hasten.set()

    # Inside

    def _on_seen(self, seen: Seen) -> None:
        if self._is_claiming:
            return
        is_first = self.standing.record is None
        assigned = self.standing.on_assignment(self._as_assigned(seen.assignment))
        self.standing.on_master_alive(seen.master is not None)
        self._do([*assigned, *self.standing.on_record(seen.record)])
        self._hasten.set()
        if is_first:
            # Nothing was said before it was known who is read, and the master names nobody who says nothing.
            self._do(self.standing.on_note_due())
        if is_first and self.standing.is_reader:
            reason = "this slave was read when it stopped, and is read again"
            self._write_entry(LedgerEvent.RESUMED, term=seen.record.term, reason=reason)
        master, address = self.standing.master, seen.master and seen.master.ha_address
        if master is not None and address is not None and not self.standing.is_linked:
            self.on_master(MasterPlace(master.address, address))

    def _on_session_lost(self) -> None:
        self.standing.on_master_alive(None)

    def _on_permitted(self) -> None:
        if not self.standing.owns_offsets:
            self._state.delivered_twice.end()
            self.on_offsets_free()

    async def _keep_time(self) -> None:
        with lone_error():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._checking())
                tasks.create_task(self._noting())
                tasks.create_task(self._saving())

    async def _checking(self) -> None:
        """Look once a second, and at once when something has happened that may begin a count."""
        while True:
            self._hasten.clear()
            self._do(self.standing.on_check(self._now_s))
            if self.standing.trigger.count:
                await asyncio.sleep(CHECK_PERIOD_S + _MARGIN_S)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_PERIOD_S):
                    await self._hasten.wait()

    async def _saving(self) -> None:
        """Save what consumers acknowledge here more often than else: nobody but this slave knows of it."""
        pause_s = _SAVE_S
        while True:
            await asyncio.sleep(pause_s)
            begun_s = self._now_s
            finish = self._state.offsets.start_save() if self.standing.is_reader else None
            # A large table takes its time, of which consumers want most.
            pause_s = max(_SAVE_S, (self._now_s - begun_s) * _SAVE_SHARE)
            if finish is not None:
                try:
                    await asyncio.to_thread(finish)
                except (MQError, OSError) as error:
                    _log.warning("offsets are not saved while this slave is read reason=%s", error)

    async def _noting(self) -> None:
        while True:
            await asyncio.sleep(NOTE_PERIOD_S)
            self._do(self.standing.on_note_due())

    def _do(self, actions: Sequence[SlaveAction]) -> None:
        for action in actions:
            match action:
                case Tell():
                    self._tell()
                case SendNote():
                    self._send_note()
                case SendOffsets(round_):
                    self._send_offsets(round_)
                case Claim(record):
                    self.soon(partial(self._claim, record, self.registry.record_version))
                case PutRecord(record):
                    self.soon(partial(self._put, record, self.registry.record_version))

    def _send_note(
        self,
        *,
        round_: int = 0,
        offsets: dict[str, dict[int, QueueOffset]] | None = None,
        gone_back: dict[str, list[int]] | None = None,
        is_last: bool = True,
    ) -> None:
        if self._send is None:
            return
        self._seq += 1
        record = self.standing.record
        note = SlaveNote(
            seq=self._seq,
            heard=self.standing.heard,
            address=self._address,
            checks=self.standing.checks,
            term=0 if record is None else record.term,
            is_reading=self.standing.is_reader,
            round=round_,
            has_offsets=offsets is not None,
            is_last=is_last,
            offsets=offsets or {},
            gone_back=gone_back or {},
            pulled=self._pulled(offsets or {}) if round_ else {},
            view=self._gate.view() if round_ and is_last else None,
        )
        self._send(encode_note(note))

    def _pulled(self, offsets: CommittedOffsets) -> dict[str, dict[int, int]]:
        """Where the groups' pulls have ended here, if that is beyond these offsets."""
        progress = self._state.pull_progress
        parts = {key: key.partition("@") for key in offsets}
        found = {key: progress.beyond(parts[key][2], parts[key][0], offsets[key]) for key in offsets}
        return {key: queues for key, queues in found.items() if queues}

    @property
    def _base(self) -> dict[str, dict[int, QueueOffset]]:
        """Where the groups stood when this slave began to be read; nothing, if that is not known."""
        record = self.standing.record
        is_of_term = record is not None and self._saved.base_term == record.term
        return self._saved.base if is_of_term else {}

    def _send_offsets(self, round_: int) -> None:
        base = self._base
        for piece, is_last in pieces(self._state.offsets.changed_since(base)):
            self._send_note(round_=round_, offsets=piece, gone_back=gone_back(piece, base), is_last=is_last)
        self.standing.on_offered(self._seq)

    async def _claim(self, record: ReadRecord, version: int | None) -> None:
        # What is seen of the registry meanwhile does not count: nobody is to commit here before the base is
        # written down.
        self._is_claiming = True
        try:
            await self._take_place(record, version)
        finally:
            self._is_claiming = False
            self.registry.look_again()

    async def _take_place(self, record: ReadRecord, version: int | None) -> None:
        standing, conditions = self.standing, self.standing.trigger.conditions
        master = standing.master
        if master is None:
            # It was assigned away since the last check.
            self._do(standing.on_claim_failed())
            return
        try:
            written = await self.registry.claim(record, version, master.address)
        except (Conflict, RegistryUnavailable):
            self._do(standing.on_claim_failed())
            raise
        self.on_offsets_taken()
        # What the disk had of the offsets may be less than the base: after a crash it would look as if
        # somebody had reset the groups.
        if (finish := self._state.offsets.start_save()) is not None:
            await asyncio.to_thread(finish)
        # Nobody commits before this slave is read, so there is time for others in between.
        base = await in_turns(self._copy_offsets())
        await self._save(msgspec.structs.replace(self._saved, base_term=written.term, base=base))
        self._state.delivered_twice.begin()
        self._gate.take_view(self.master_view or NOBODY)
        self._do(standing.on_record(written))
        # To count what may come twice takes a while, in which more may be seen.
        self._is_claiming = False
        doubt = await self._doubt(base)
        self._write_entry(
            LedgerEvent.SWITCH,
            term=written.term,
            reason="; ".join(filter(None, ("the master is gone: its conditions held in all checks", doubt))),
            conditions=conditions,
            offsets=base,
            duplicates=await in_turns(self._count_unknown(base)),
            is_bound=doubt is None,
        )

    def _copy_offsets(self) -> Generator[None, None, dict[str, dict[int, QueueOffset]]]:
        """All offsets; yields wherever it may be interrupted."""
        offsets = self._state.offsets
        copied: dict[str, dict[int, QueueOffset]] = {}
        for number, key in enumerate(offsets.keys()):
            if number % TURN_KEYS == 0:
                yield
            copied[key] = offsets.queues_at(key)
        return copied

    async def _doubt(self, offsets: CommittedOffsets) -> str | None:
        """Why nobody can say how much may be consumed twice; None if that can be said."""
        if self.master_view is None:
            return "how much may come twice is not known: the master never said who consumed there"
        groups = await in_turns(unbounded(self.master_view.topics, offsets, self._bounds))
        if not groups:
            return None
        named = ", ".join(groups[:_NAMED_GROUPS]) + (", ..." if len(groups) > _NAMED_GROUPS else "")
        return f"how much may come twice is not known: without an offset were {named}"

    async def _put(self, record: ReadRecord, version: int | None) -> None:
        """End slave consumption: the master has adopted what we learned."""
        if self.standing.state is not SlaveState.ENDING:
            return
        try:
            written = await self.registry.put(record, version)
        except (Conflict, RegistryUnavailable):
            # Whether it was written is seen when the registry is read again; if not, it is tried again.
            self.registry.look_again()
            return
        # Before it is known that this slave follows again: then the master's offsets take their place.
        offsets = self._state.offsets.changed_since(self._base)
        committed = self._state.offsets.table().offset_table
        self._do(self.standing.on_record(written))
        count = partial(duplicates_delivered, pulled_to=self._state.pull_progress.find)
        self._write_entry(
            LedgerEvent.HAND_BACK,
            term=written.term,
            round_=written.round,
            reason=written.reason,
            offsets=offsets,
            duplicates=await in_turns(in_steps(count, committed)),
        )
