"""One broker's session with the registry, and what it reads there of its group.

Its presence is entered first, and only then the group's record is read: whoever replaces a master writes
under the condition that the master is not present, so what is read then stays true while the session is held.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from math import inf
from typing import NamedTuple, TypeAlias

import msgspec

from tanist.backoff import Backoff
from tanist.clock import Clock
from tanist.coord import Check, Conflict, Create, Delete, Put, Registry, RegistryUnavailable, SessionState
from tanist.coord.registry import Change, Watch
from tanist.errors import MQError
from tanist.log import ToldFailures
from tanist.model.reading import (
    Assigned,
    Assignment,
    BadReadingRecord,
    GroupRole,
    Presence,
    ReadRecord,
    alive_path,
    assignment_path,
    decode_assignment,
    decode_presence,
    decode_read_record,
    encode_record,
    read_record_path,
)

_log = logging.getLogger(__name__)

_AGAIN_S = 1.0
"""When the registry is read again after it refused: no watch tells that it would answer now."""

OpenSession: TypeAlias = Callable[[], AbstractAsyncContextManager[Registry]]
"""Begins another session with the registry, which ends with the block."""


class _NotPresent(MQError):
    """Our presence is gone, or another's: what was built on it does not hold, though the session lives."""


class Seen(NamedTuple):
    """What the registry holds of a group."""

    assignment: Assignment
    record: ReadRecord
    master: Presence | None
    """None if it is not there, or if there is none."""


class GroupRegistry:
    """Keeps a session for as long as ``run`` runs. ``on_seen`` is told what there is, after each change."""

    def __init__(
        self,
        open_session: OpenSession,
        group: str,
        own: Assigned,
        *,
        presence: Presence,
        clock: Clock,
        on_seen: Callable[[Seen], None],
        on_lost: Callable[[], None],
    ) -> None:
        """``own`` is what this broker is by its settings, and what it assigns itself if nobody has."""
        self._open_session = open_session
        self._group = group
        self._own = own
        self._presence = presence
        self._clock = clock
        self._on_seen = on_seen
        self._on_lost = on_lost
        self._registry: Registry | None = None
        self.record_version: int | None = None
        """Of the record that was told or written last; None if there was none."""
        self._is_to_publish = False
        self._wake = asyncio.Event()
        self._watches: dict[str, Watch] = {}
        self._failures = ToldFailures()
        self._one_by_one = asyncio.Lock()
        """What was read before a write must not be taken for what is there after it."""

    @property
    def session(self) -> SessionState:
        return SessionState.LOST if self._registry is None else self._registry.session

    @property
    def held_until_s(self) -> float:
        """Up to when nobody can have taken our presence for gone."""
        return -inf if self._registry is None else self._registry.held_until_s

    def look_again(self) -> None:
        """Read everything again, soon."""
        self._wake.set()

    async def run(self) -> None:
        """Have a session, and another one whenever it is lost."""
        backoff = Backoff()
        while True:
            try:
                async with self._open_session() as registry:
                    await self._enter(registry)
                    await self._attend(registry)
                    backoff.reset()
            except RegistryUnavailable as error:
                if self._failures.is_news("session", type(error).__name__):
                    _log.warning("registry is not reached group=%s reason=%s", self._group, error)
            except (MQError, OSError) as error:
                # What others wrote there must not end this broker: it tries again until it is put right.
                if self._failures.is_news("session", str(error)):
                    _log.error("registry can not be used group=%s reason=%s", self._group, error)
            finally:
                self._registry = None
                self._watches = {}
            # Not when this broker stops: that is nothing to be told.
            self._on_lost()
            await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311  Jitter is no secret.

    async def claim(self, record: ReadRecord, version: int | None, absent: str) -> ReadRecord:
        """Write a record, as ``put`` does, while another broker is absent."""
        return await self._write(record, version, Check(alive_path(self._group, absent), None))

    async def put(self, record: ReadRecord, version: int | None) -> ReadRecord:
        """Write a record in place of the one that it was made from, which had this ``record_version``.

        Raises Conflict, also if another one has been seen since, or RegistryUnavailable.
        """
        return await self._write(record, version)

    async def is_alive(self, address: str) -> bool:
        """Whether a broker of the group is present. Raises RegistryUnavailable."""
        return await self._live().read(alive_path(self._group, address)) is not None

    def assign(self, permission: int) -> None:
        """Publish what this broker may do from now on, as soon as the registry takes it."""
        self._own = msgspec.structs.replace(self._own, permission=permission)
        self._is_to_publish = True
        self._wake.set()

    @property
    def _own_path(self) -> str:
        return alive_path(self._group, self._own.address)

    def _live(self) -> Registry:
        if self._registry is None:
            raise RegistryUnavailable("there is no session with the registry now")
        return self._registry

    async def _write(self, record: ReadRecord, version: int | None, *conditions: Change) -> ReadRecord:
        path = read_record_path(self._group)
        written = msgspec.structs.replace(record, since_ms=self._clock.now_ms())
        value = encode_record(written)
        async with self._one_by_one:
            change = Create(path, value) if version is None else Put(path, value, version)
            self.record_version = (await self._live().commit(*conditions, change))[-1]
        return written

    async def _enter(self, registry: Registry) -> None:
        """Be present, and be assigned."""
        while not await self._be_present(registry):
            pass
        await self._join(registry)

    async def _be_present(self, registry: Registry) -> bool:
        """Enter our presence and write the record again, as it is, in one step; False if it was changed.

        What an earlier start or session of ours has sent, and nobody has seen yet, is refused from then on: a
        claim, the end of a hand-back, its own presence.
        """
        path, record_path = self._own_path, read_record_path(self._group)
        before, stored = await registry.read(path), await registry.read(record_path)
        presence = encode_record(self._presence)
        # One that is there is of an earlier start: its store is ours by now.
        changes: list[Change] = [] if before is None else [Delete(path, before.version)]
        changes.append(Create(path, presence, is_ephemeral=True))
        if stored is None:
            changes.append(Create(record_path, encode_record(ReadRecord(group=self._group))))
        else:
            changes.append(Put(record_path, stored.value, stored.version))
        try:
            await registry.commit(*changes)
        except Conflict:
            return False
        return True

    async def _join(self, registry: Registry) -> None:
        path, own = assignment_path(self._group), self._own
        while True:
            found = await registry.read(path)
            assignment = Assignment(group=self._group) if found is None else decode_assignment(found.value)
            if assignment.find(own.address) is not None:
                return
            if own.role is GroupRole.MASTER and assignment.master is not None:
                _log.error(
                    "group has another master group=%s master=%s; assign its roles anew with assignRoles",
                    *(self._group, assignment.master.address),
                )
                return
            value = encode_record(assignment.with_broker(own))
            try:
                await registry.commit(
                    Create(path, value) if found is None else Put(path, value, found.version)
                )
            except Conflict:
                continue
            _log.info("role assigned by settings group=%s role=%s", self._group, own.role)
            return

    async def _attend(self, registry: Registry) -> None:
        self._registry = registry
        registry.on_session(lambda _state: self._wake.set())
        for path in (assignment_path(self._group), read_record_path(self._group), self._own_path):
            self._watches[path] = registry.watch(path, self._wake.set)
        self._wake.set()
        again_s: float | None = None
        while registry.session is not SessionState.LOST:
            with suppress(TimeoutError):
                async with asyncio.timeout(again_s):
                    await self._wake.wait()
            self._wake.clear()
            again_s = None
            try:
                await self._publish(registry)
                async with self._one_by_one:
                    await self._look(registry)
                self._failures.is_over("session")
            except RegistryUnavailable as error:
                again_s = _AGAIN_S
                _log.debug("registry is not read group=%s reason=%s", self._group, error)
            except BadReadingRecord as error:
                # What was read before counts on: while we are present nobody replaces us. A watch tells when
                # it is put right.
                if self._failures.is_news("session", str(error)):
                    _log.error("registry can not be used group=%s reason=%s", self._group, error)

    async def _publish(self, registry: Registry) -> None:
        """Have the assignment say what this broker may do, if that was changed here."""
        path = assignment_path(self._group)
        while self._is_to_publish:
            permission = self._own.permission
            found = await registry.read(path)
            assignment = Assignment(group=self._group) if found is None else decode_assignment(found.value)
            own = assignment.find(self._own.address)
            if found is not None and own is not None and own.permission != permission:
                changed = assignment.with_broker(msgspec.structs.replace(own, permission=permission))
                with suppress(Conflict):
                    await registry.commit(Put(path, encode_record(changed), found.version))
                continue
            self._is_to_publish = False

    async def _look(self, registry: Registry) -> None:
        found = await registry.read(assignment_path(self._group))
        assignment = Assignment(group=self._group) if found is None else decode_assignment(found.value)
        master: Presence | None = None
        if assignment.master is not None:
            path = alive_path(self._group, assignment.master.address)
            if path not in self._watches:
                self._watches[path] = registry.watch(path, self._wake.set)
            if (present := await registry.read(path)) is not None:
                master = _presence(present.value)
        stored = await registry.read(read_record_path(self._group))
        record = ReadRecord(group=self._group) if stored is None else decode_read_record(stored.value)
        # After the record: it stays true for as long as we are present.
        own = await registry.read(self._own_path)
        if own is None or own.value != encode_record(self._presence):
            raise _NotPresent(
                f"somebody removed or replaced the presence of {self._own.address}; it enters anew"
            )
        self.record_version = None if stored is None else stored.version
        self._on_seen(Seen(assignment, record, master))


def _presence(value: bytes) -> Presence:
    """What a broker says of itself. It is there, also if that is nonsense."""
    try:
        return decode_presence(value)
    except BadReadingRecord:
        return Presence(token="")
