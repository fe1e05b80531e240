"""A registry that is played: sessions that end in silence, presence, and one record with versions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tanist.model.reading import Assigned, Assignment, ReadRecord
from tanist.sim.clockwork import Clockwork, Process

SESSION_S = 2.0
GROUP = "g"


class Refused(Exception):
    """A condition did not hold."""


class NoSession(Exception):
    """The session that asks is over."""


class Look(NamedTuple):
    """What a broker reads in one go."""

    assignment: Assignment
    record: ReadRecord
    version: int
    is_master_alive: bool


@dataclass(slots=True)
class PlayedRegistry:
    """What it holds outlives its process."""

    clockwork: Clockwork
    process: Process = field(default_factory=lambda: Process("registry"))
    assignment: Assignment = field(default_factory=lambda: Assignment(group=GROUP))
    record: ReadRecord = field(default_factory=lambda: ReadRecord(group=GROUP))
    version: int = 0
    presence: dict[str, int] = field(default_factory=dict[str, int])
    on_change: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Told after any change; whoever has a session hears of it."""
    on_record: Callable[[ReadRecord, ReadRecord], None] = lambda _before, _after: None
    owners: dict[int, str] = field(default_factory=dict[int, str])
    _heard_s: dict[int, float] = field(default_factory=dict[int, float])
    _last_session: int = 0

    def start(self) -> None:
        """Begin another life, in which every session has its whole time again."""
        self.process.life += 1
        self.process.is_up = True
        for session in self._heard_s:
            self._hear(session)

    def open(self, owner: str) -> int:
        self._last_session += 1
        self.owners[self._last_session] = owner
        self._hear(self._last_session)
        return self._last_session

    def ping(self, session: int) -> None:
        self._check(session)

    def enter(self, session: int, broker: Assigned, version: int) -> None:
        """Be present in the place of an earlier life, and assigned, and write the record again, as it is.

        So what an earlier life has sent and nobody has seen yet is refused.
        """
        self._check(session)
        self._fence(version)
        self.presence[broker.address] = session
        if self.assignment.find(broker.address) is None:
            self.assignment = self.assignment.with_broker(broker)
        self._changed()

    def look(self, session: int) -> Look:
        self._check(session)
        master = self.assignment.master
        is_master_alive = master is not None and master.address in self.presence
        return Look(self.assignment, self.record, self.version, is_master_alive)

    def put(self, session: int, record: ReadRecord, version: int, *, absent: str | None = None) -> int:
        """Replace the record of this version, if ``absent`` is; the new version."""
        self._check(session)
        if version != self.version or (absent is not None and absent in self.presence):
            raise Refused
        return self.write(record)

    def write(self, record: ReadRecord) -> int:
        before, self.record = self.record, record
        self.version += 1
        self.on_record(before, record)
        self._changed()
        return self.version

    def assign(self, broker: Assigned) -> None:
        self.assignment = self.assignment.with_broker(broker)
        self._changed()

    def _fence(self, version: int) -> None:
        if version != self.version:
            raise Refused
        self.version += 1

    def _check(self, session: int) -> None:
        if session not in self._heard_s:
            raise NoSession
        self._hear(session)

    def _hear(self, session: int) -> None:
        self._heard_s[session] = self.clockwork.now_s
        self.clockwork.after(SESSION_S, lambda: self._end_if_silent(session), process=self.process)

    def _end_if_silent(self, session: int) -> None:
        if self.clockwork.now_s - self._heard_s.get(session, self.clockwork.now_s) < SESSION_S - 1e-6:
            return
        del self._heard_s[session]
        owner = self.owners.pop(session)
        if self.presence.get(owner) == session:
            del self.presence[owner]
            self._changed()

    def _changed(self) -> None:
        for listener in self.on_change:
            listener()
