"""A broker's duty to its group where a coordinator says who is read: what master and slave have in common.

The standing decides; here are the session with the registry, the tasks, and those who are told. What is
written to the registry or to the disk is written by one task, one thing after the other.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import msgspec

from tanist.broker.ha_port import ha_address
from tanist.broker.queue_look import queue_bounds
from tanist.broker.slave_consume.duplicates import CommittedOffsets, Counting, duplicates_unknown, in_steps
from tanist.broker.slave_consume.gate import ReadGate
from tanist.broker.slave_consume.group_registry import GroupRegistry, OpenSession, Seen
from tanist.broker.slave_consume.ledger import LedgerFile
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.right import ReadRight
from tanist.broker.slave_consume.saved import SavedStanding, SavedStandingFile
from tanist.broker.state import BrokerState
from tanist.errors import MQError, lone_error
from tanist.log import ToldFailures
from tanist.model.reading import FULL, Assigned, Assignment, GroupRole, Presence, permission_name
from tanist.protocol.bodies.slave_consume import (
    Condition,
    LedgerEntry,
    LedgerEvent,
    SlaveConsumeLedger,
    SlaveConsumeStatus,
)

_log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DutyFiles:
    """What a broker keeps of its part in slave consumption."""

    ledger: LedgerFile
    saved: SavedStandingFile


@dataclass(frozen=True, slots=True)
class DutyParts:
    """What the duty needs of a broker."""

    state: BrokerState
    gate: ReadGate
    open_session: OpenSession
    token: str
    """Tells this start of the broker from others."""
    files: DutyFiles


class ReadingDuty(ABC):
    """One broker's, for as long as ``run`` runs. Before that ``right`` allows nothing."""

    def __init__(self, parts: DutyParts) -> None:
        state, files = parts.state, parts.files
        settings = state.settings
        self._state = state
        self._gate = parts.gate
        self._files = files
        self._saved = files.saved.load()
        self._address = settings.address
        self._role = GroupRole.SLAVE if settings.is_slave else GroupRole.MASTER
        self.registry = GroupRegistry(
            parts.open_session,
            settings.broker_name,
            Assigned(
                address=self._address,
                role=self._role,
                broker_id=settings.broker_id,
                permission=settings.broker_permission & FULL,
            ),
            presence=Presence(
                token=parts.token, ha_address=None if settings.is_slave else ha_address(settings, state.ha)
            ),
            clock=state.clock,
            on_seen=self._on_seen,
            on_lost=self._on_session_lost,
        )
        self.right = ReadRight(self._address, self.look)
        self._published = settings.broker_permission & FULL
        self._told: Permitted | None = None
        self._failures = ToldFailures()
        self._work: asyncio.Queue[Work] = asyncio.Queue()
        self.event_counts: Counter[LedgerEvent] = Counter()

    async def run(self) -> None:
        """Do what the duty asks for until cancelled. Whoever runs it may run it again after an error."""
        try:
            with lone_error():
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self.registry.run())
                    tasks.create_task(self._working())
                    tasks.create_task(self._keep_time())
        except Exception:
            # The session has ended with it: what was read in it is worth nothing in the next one.
            self._on_session_lost()
            raise

    def ledger(self, count: int) -> SlaveConsumeLedger:
        """The last entries that it wrote down. Waits for the disk."""
        return self._files.ledger.last(count)

    def status(self) -> SlaveConsumeStatus:
        """How it stands now."""
        return msgspec.structs.replace(
            self._status(), delivered_twice=dict(self._state.delivered_twice.counts)
        )

    @abstractmethod
    def _status(self) -> SlaveConsumeStatus: ...

    @abstractmethod
    def duplicates_if_ended(self) -> Generator[None, None, dict[str, int] | None]:
        """By group, what may be consumed twice if this master is made to be read now; counted in steps."""

    @abstractmethod
    async def end(self, reason: str, *, is_forced: bool) -> str:
        """Have this master be read again, on an operator's word; what was ended, in words.

        Raises ResponseError if there is nothing to end, if the slave that is read is alive, or if this is a
        slave.
        """

    @abstractmethod
    def look(self) -> Permitted:
        """What is permitted at this moment."""

    @abstractmethod
    async def _keep_time(self) -> None:
        """Tell the standing when time has passed."""

    @abstractmethod
    def _on_seen(self, seen: Seen) -> None: ...

    @abstractmethod
    def _on_session_lost(self) -> None: ...

    @abstractmethod
    def _on_permitted(self) -> None:
        """What is permitted is another than before; called before those who listen to ``right``."""

    def _count_unknown(self, offsets: CommittedOffsets) -> Counting:
        """By group, what another broker may have delivered beyond these offsets."""
        return in_steps(partial(duplicates_unknown, bounds=self._bounds), offsets)

    @property
    def _now_s(self) -> float:
        return self._state.clock.monotonic_s()

    def _bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """The first offset and the end of each queue of a topic."""
        config, store = self._state.topics.find(topic), self._state.store
        count = 0 if config is None else max(config.read_queue_count, config.write_queue_count)
        return {queue: queue_bounds(store, topic, queue) for queue in range(count)}

    def _tell(self) -> None:
        """Have all know what is permitted, if it is another than before."""
        found = self.look()
        if found == self._told:
            return
        self._told = found
        _log.info(
            "permission is %s group=%s term=%d reader=%s reason=%s",
            *(permission_name(found.permission), self._state.settings.broker_name, found.term),
            *(found.reader, found.reason),
        )
        self._on_permitted()
        self.right.on_changed()

    def _as_assigned(self, assignment: Assignment) -> Assignment:
        """The assignment, without this broker if it was started for another role: that takes a restart."""
        own = assignment.find(self._address)
        if own is None or own.role is self._role:
            self._failures.is_over("role")
            return assignment
        if self._failures.is_news("role", own.role):
            _log.error(
                "role is another than at the start; restart this broker to take it role=%s assigned=%s",
                *(self._role, own.role),
            )
        others = tuple(broker for broker in assignment.brokers if broker is not own)
        return Assignment(group=assignment.group, brokers=others)

    def publish_permission(self) -> None:
        """Have the coordinator know what this broker may do by its settings, if an operator changed that.

        What was assigned to it stays if they changed something else.
        """
        permission = self._state.settings.broker_permission & FULL
        if permission != self._published:
            self._published = permission
            self.registry.assign(permission)

    # What is done one after the other.

    def soon(self, work: Work) -> None:
        """Have this done after what is to be done before it."""
        self._work.put_nowait(work)

    async def _working(self) -> None:
        while True:
            work = await self._work.get()
            try:
                await work()
            except (MQError, OSError) as error:
                _log.error("slave consumption: a step failed reason=%s", error)

    async def _save(self, saved: SavedStanding) -> None:
        self._saved = saved
        await asyncio.to_thread(self._files.saved.save, saved)

    def _write_entry(
        self,
        event: LedgerEvent,
        *,
        term: int,
        round_: int = 0,
        reason: str,
        conditions: tuple[Condition, ...] = (),
        offsets: Mapping[str, Mapping[int, int]] | None = None,
        duplicates: dict[str, int] | None = None,
        is_bound: bool = True,
    ) -> None:
        """Write an entry down, when what is before it is done.

        ``is_bound`` says whether all that may be consumed twice is among the ``duplicates``.
        """
        entry = LedgerEntry(
            at_ms=self._state.clock.now_ms(),
            event=event,
            group=self._state.settings.broker_name,
            term=term,
            round=round_,
            broker=self._address,
            reason=reason,
            conditions=list(conditions),
            offsets={key: dict(queues) for key, queues in (offsets or {}).items()},
            duplicates=duplicates or {},
            duplicates_at_most=sum(duplicates.values()) if duplicates is not None and is_bound else None,
        )
        self.event_counts[event] += 1
        _log.warning(
            "slave consumption %s group=%s term=%d duplicates_at_most=%s reason=%s",
            *(event.value, entry.group, term, entry.duplicates_at_most, reason),
        )

        async def write() -> None:
            await asyncio.to_thread(self._files.ledger.append, entry)

        self.soon(write)


async def in_turns(steps: Generator[None, None, _T]) -> _T:
    """What is made in steps, with turns for everybody else in between."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            found: _T = finished.value
            return found
        await asyncio.sleep(0)
