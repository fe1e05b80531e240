"""A master where a coordinator says who is read: it serves while nobody can have replaced it."""

import asyncio
import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from tanist.broker.slave_consume.duty import DutyParts, ReadingDuty, in_turns
from tanist.broker.slave_consume.group_registry import Seen
from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.notes import (
    VIEW_PERIOD_S,
    MasterNote,
    decode_slave_note,
    encode_note,
    never_less,
)
from tanist.broker.slave_consume.permitted import Adopted, Permitted, lacks_offsets
from tanist.broker.slave_consume.status import master_status
from tanist.coord import Conflict, RegistryUnavailable
from tanist.errors import ResponseError
from tanist.ha.notes import SendNote as SendOnLink
from tanist.ha.replicas import Replica
from tanist.model.reading import EndedBy, ReadRecord
from tanist.protocol.bodies.slave_consume import LedgerEvent, SlaveConsumeStatus
from tanist.protocol.codes import ResponseCode

_TICK_S = 1.0
"""How long a master goes on at most without looking whether it is safe."""


@dataclass(slots=True)
class _Link:
    """A slave that is linked to us."""

    send: SendOnLink
    address: str | None = None
    """What it calls itself; None before its first note."""
    heard: int = 0
    view_s: float = -inf
    """When it was last told who consumes here."""


class MasterDuty(ReadingDuty):
    """One master's; a ``tanist.ha.notes.MasterNotes``."""

    def __init__(self, parts: DutyParts) -> None:
        super().__init__(parts)
        self.standing = MasterStanding(
            self._address,
            lambda: self.registry.held_until_s,
            Adopted(self._saved.adopted_term, self._saved.adopted_round),
        )
        self._links: dict[Replica, _Link] = {}
        self._given_up: str | None = None
        self._changed = asyncio.Event()

    def look(self) -> Permitted:
        return self.standing.permitted(self._now_s)

    def _status(self) -> SlaveConsumeStatus:
        return master_status(
            self.standing,
            group=self._state.settings.broker_name,
            now_s=self._now_s,
            now_ms=self._state.clock.now_ms(),
            session=self.registry.session.value,
            is_linked=bool(self._links),
        )

    async def end(self, reason: str, *, is_forced: bool) -> str:
        standing, record = self.standing, self.standing.record
        if record is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, "the registry has not been read yet; see that it is up"
            )
        if record.reader is not None or lacks_offsets(record, standing.adopted):
            await self._end_reading(record, reason, is_forced=is_forced)
            return f"slave consumption {record.term} is ended: the offsets count that this master has"
        if standing.given_up is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "there is no slave consumption to end")
        self._restore(record, reason)
        return "this master has its permission again"

    def duplicates_if_ended(self) -> Generator[None, None, dict[str, int] | None]:
        record = self.standing.record
        if record is not None and (record.reader is not None or lacks_offsets(record, self.standing.adopted)):
            return (yield from self._count_unknown(self._state.offsets.table().offset_table))
        # Nobody has been read in the place of a master that has given up, if the registry says so.
        return None if self.standing.given_up is None else {}

    # What slaves say

    def on_joined(self, replica: Replica, send: SendOnLink) -> None:
        self._links[replica] = _Link(send)

    def on_note(self, replica: Replica, note: bytes) -> None:
        said, link = decode_slave_note(note), self._links[replica]
        if link.address is None:
            self.standing.on_linked(said.address)
        link.address, link.heard = said.address, said.seq
        self._state.delivered_twice.learn(said.pulled)
        self._do(self.standing.on_slave_note(said, self._now_s), link)

    def on_left(self, replica: Replica) -> None:
        self._links.pop(replica, None)

    # Inside

    def _on_seen(self, seen: Seen) -> None:
        assigned = self.standing.on_assignment(self._as_assigned(seen.assignment))
        self._do([*assigned, *self.standing.on_record(seen.record)])

    def _on_session_lost(self) -> None:
        self._do(self.standing.on_session_lost())
        self._changed.set()

    def _on_permitted(self) -> None:
        found = self.look()
        given_up, self._given_up = self._given_up, self.standing.given_up
        self._changed.set()
        if given_up is None and self._given_up is not None:
            self._write_entry(LedgerEvent.GAVE_UP, term=found.term, reason=self._given_up)
        elif given_up is not None and self._given_up is None:
            self._write_entry(LedgerEvent.RESTORED, term=found.term, reason=found.reason)

    async def _keep_time(self) -> None:
        while True:
            # What is safe may end sooner than it did, without anybody being told: a second has been named.
            wait_s = self.standing.safe_until_s - self._now_s
            if not 0 < wait_s < _TICK_S:
                wait_s = _TICK_S
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            self._do(self.standing.on_tick(self._now_s))

    def _do(self, actions: Sequence[MasterAction], link: _Link | None = None) -> None:
        for action in actions:
            match action:
                case Tell():
                    self._tell()
                case ReadAgain():
                    self.registry.look_again()
                case PutRecord(record):
                    self.soon(partial(self._put, record, self.registry.record_version))
                case SendNote():
                    self._send_note(link)
                case TakeOffsets():
                    self._take(action)

    def _send_note(self, link: _Link | None) -> None:
        if link is None:
            return
        adopted, now_s = self.standing.adopted, self._now_s
        has_view = now_s - link.view_s >= VIEW_PERIOD_S
        if has_view:
            link.view_s = now_s
        note = MasterNote(
            seq=self.standing.next_seq(now_s),
            heard=link.heard,
            taken=self.standing.taken,
            adopted_term=adopted.term,
            adopted_round=adopted.round,
            view=self._gate.view() if has_view else None,
        )
        link.send(encode_note(note))

    def _take(self, action: TakeOffsets) -> None:
        """The slave owns the offsets: they are ours, unless we were told of greater ones before we went."""
        table = self._state.offsets
        own = {key: table.queues_at(key) for key in action.offsets}
        taken = replace(action, offsets=never_less(action.offsets, own, action.gone_back))
        table.adopt(taken.offsets)
        if action.round:
            self.soon(lambda: self._adopt(taken))

    async def _adopt(self, action: TakeOffsets) -> None:
        if (finish := self._state.offsets.start_save()) is not None:
            await asyncio.to_thread(finish)
        saved = msgspec.structs.replace(self._saved, adopted_term=action.term, adopted_round=action.round)
        await self._save(saved)
        self._write_entry(
            LedgerEvent.HAND_BACK,
            term=action.term,
            round_=action.round,
            reason="the final offsets of the slave are adopted",
            offsets=action.offsets,
        )
        self._state.delivered_twice.begin()
        if action.view is not None:
            self._gate.take_view(action.view)
        reader = None if self.standing.record is None else self.standing.record.reader
        link = next((each for each in self._links.values() if each.address == reader), None)
        self._do(self.standing.on_adopted(action.term, action.round), link)

    async def _put(self, record: ReadRecord, version: int | None) -> None:
        try:
            written = await self.registry.put(record, version)
        except Conflict:
            self.registry.look_again()
        except RegistryUnavailable:
            self._do(self.standing.on_put_lost())
        else:
            self._do(self.standing.on_record(written))

    def _restore(self, record: ReadRecord, reason: str) -> None:
        if self._now_s >= self.standing.safe_until_s:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "the registry is not reached, so nobody knows who is read; see that it is up, and ask again",
            )
        self._given_up = None
        self._do(self.standing.on_restored())
        self._write_entry(
            LedgerEvent.ENDED_BY_OPERATOR,
            term=record.term,
            reason=reason or "an operator restored the master",
            duplicates={},
        )

    async def _end_reading(self, record: ReadRecord, reason: str, *, is_forced: bool) -> None:
        ended = msgspec.structs.replace(
            record, reader=None, ended_by=EndedBy.OPERATOR, reason=reason or "an operator ended it"
        )
        version = self.registry.record_version
        try:
            if is_forced or record.reader is None:
                written = await self.registry.put(ended, version)
            elif await self.registry.is_alive(record.reader):
                raise ResponseError(
                    ResponseCode.SYSTEM_ERROR,
                    f"{record.reader} is alive and is read: it hands back by itself when it reaches this "
                    "master; stop it first",
                )
            else:
                # It may come back at this very moment.
                written = await self.registry.claim(ended, version, record.reader)
        except (Conflict, RegistryUnavailable) as error:
            self.registry.look_again()
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"the registry does not take it: {error}"
            ) from error
        offsets = self._state.offsets.table().offset_table
        self._write_entry(
            LedgerEvent.ENDED_BY_OPERATOR,
            term=record.term,
            reason=written.reason,
            offsets=offsets,
            duplicates=await in_turns(self._count_unknown(offsets)),
        )
        self._do(self.standing.on_record(written))
