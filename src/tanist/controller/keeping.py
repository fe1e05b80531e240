"""The records of all groups, as the leader keeps them: changed by one commit each, fenced by its term."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from tanist.controller.decisions import Decision
from tanist.controller.group_record import (
    GROUPS_PATH,
    BadGroupRecord,
    GroupRecord,
    decode_group,
    encode_group,
    group_name,
    group_path,
)
from tanist.controller.leading import LEADER_PATH, TERM_PATH, Leading, NotLeading
from tanist.coord import Conflict, Create, Put, Registry, RegistryUnavailable
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode

MAX_GROUPS = 10_000
_TRIES = 3

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Held:
    record: GroupRecord
    version: int


class GroupKeeper:
    """Nobody but the leader changes the records, so what it wrote last is what the registry has.

    Of a group whose last change may or may not have been made nothing is known until it is read again.
    """

    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._held: dict[str, _Held] = {}
        self._unsure: set[str] = set()
        # One commit at a time: a decision is made on what the last one left.
        self._turn = asyncio.Lock()

    @property
    def records(self) -> list[GroupRecord]:
        """All that are known for sure."""
        return [held.record for held in self._held.values()]

    def known(self, broker_name: str) -> GroupRecord | None:
        """The record of a group, if at least its master is known for sure."""
        held = self._held.get(broker_name)
        return None if held is None else held.record

    def is_sure(self, broker_name: str) -> bool:
        """Whether it is known how a group stands, be it that there is none."""
        return broker_name not in self._unsure

    def forget(self) -> None:
        """We do not lead any more: others change the records."""
        self._held.clear()
        self._unsure.clear()

    async def load(self, registry: Registry) -> None:
        """Read all there are. A record that makes no sense stops nobody but its own group."""
        async with self._turn:
            self.forget()
            for child in await registry.children(GROUPS_PATH):
                name = group_name(child)
                try:
                    await self._read(registry, name)
                except BadGroupRecord as error:
                    _log.error("group can not be served group=%s error=%s", name, error)
                    self._unsure.add(name)

    async def get(self, broker_name: str) -> GroupRecord | None:
        """The record of a group. Raises NotLeading, or ResponseError if the registry does not answer.

        Who only looks does not wait for the changes of other groups.
        """
        self._leading.require()
        if self.is_sure(broker_name):
            return self.known(broker_name)
        async with self._turn:
            held = await self._current(broker_name)
        return None if held is None else held.record

    async def change(self, broker_name: str, decide: Callable[[GroupRecord | None], Decision]) -> Decision:
        """Decide, commit what the decision changes, and return it when that is done."""
        async with self._turn:
            for _ in range(_TRIES):
                held = await self._current(broker_name)
                decision = decide(None if held is None else held.record)
                if decision.record is None:
                    return decision
                if held is None:
                    self._have_room()
                if await self._commit(held, decision.record):
                    return decision
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            f"{broker_name} was changed by others in the registry meanwhile; ask again",
        )

    def _have_room(self) -> None:
        if len(self._held) + len(self._unsure) >= MAX_GROUPS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY, f"{MAX_GROUPS} groups are registered, no more are taken"
            )

    async def _current(self, broker_name: str) -> _Held | None:
        registry = self._leading.registry
        if broker_name in self._unsure:
            try:
                await self._read(registry, broker_name)
            except RegistryUnavailable as error:
                raise _away(error) from error
            self._unsure.discard(broker_name)
        return self._held.get(broker_name)

    async def _read(self, registry: Registry, broker_name: str) -> None:
        path = group_path(broker_name)
        found = await registry.read(path)
        if found is None:
            self._held.pop(broker_name, None)
        else:
            self._held[broker_name] = _Held(decode_group(found.value, path=path), found.version)

    async def _commit(self, held: _Held | None, record: GroupRecord) -> bool:
        """Write a record; False if it has been changed since it was read."""
        registry, name = self._leading.registry, record.broker_name
        value, path = encode_group(record), group_path(name)
        change = Create(path, value) if held is None else Put(path, value, held.version)
        # Until we know better it may have been changed and may not. Either way its master is the same, or
        # nobody gets a lease meanwhile.
        self._unsure.add(name)
        if held is not None and (held.record.epoch, held.record.master_id) != (
            record.epoch,
            record.master_id,
        ):
            del self._held[name]
        try:
            *_, version = await registry.commit(*self._leading.fence, change)
        except Conflict as conflict:
            if conflict.change.path in {LEADER_PATH, TERM_PATH}:
                raise NotLeading(None) from conflict
            return False
        except RegistryUnavailable as error:
            self._held.pop(name, None)
            raise _away(error) from error
        self._held[name] = _Held(record, version)
        self._unsure.discard(name)
        return True


def _away(error: RegistryUnavailable) -> ResponseError:
    return ResponseError(
        ResponseCode.SYSTEM_ERROR, f"the registry does not answer, so nothing can be promised: {error}"
    )
