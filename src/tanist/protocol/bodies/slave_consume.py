"""Slave consumption, as brokers tell operators of it: how one stands, and what has happened. Ours."""

from enum import StrEnum

import msgspec

from tanist.model.integers import Int32, Int64
from tanist.model.reading import NONE, Assigned, GroupRole, ReadRecord, permission_of
from tanist.model.topics import READ
from tanist.protocol.bodies.base import Body


class Condition(Body, frozen=True):
    """One condition, as it was found."""

    name: str
    holds: bool
    found: str


class LedgerEvent(StrEnum):
    """What happened to a group."""

    SWITCH = "SWITCH"
    """A slave made itself the reader."""
    HAND_BACK = "HAND_BACK"
    """The slave gave the offsets back, and the master is read again."""
    GAVE_UP = "GAVE_UP"
    """A master may have been replaced without knowing, and serves nobody."""
    RESTORED = "RESTORED"
    """A master that had given up serves again: its slave said that it is not read."""
    RESUMED = "RESUMED"
    """A slave that was read when it stopped is read again."""
    ENDED_BY_OPERATOR = "ENDED_BY_OPERATOR"
    """An operator had the master be read, whatever its slave did."""


class LedgerEntry(Body, frozen=True, kw_only=True):
    """One event, as the broker that had a part in it wrote it down."""

    at_ms: Int64
    event: LedgerEvent
    group: str
    term: Int64
    round: Int64 = 0
    broker: str
    """The address of the writer."""
    reason: str = ""
    conditions: list[Condition] = msgspec.field(default=[])
    """As they were found when it was decided."""
    offsets: dict[str, dict[int, Int64]] = msgspec.field(default={})
    """By ``topic@group`` and queue, where the groups stood at the hand-over."""
    duplicates: dict[str, int] = msgspec.field(default={})
    """By group, how many messages may be consumed twice because of it."""
    duplicates_at_most: Int64 | None = None
    """Those of all groups together; None where nothing is handed over."""


class SlaveConsumeLedger(Body, frozen=True, kw_only=True):
    """The last entries of a broker's ledger, the newest last."""

    entries: list[LedgerEntry] = msgspec.field(default=[])
    damaged_count: Int32 = 0
    """How many lines of its file could not be read."""


class RegistrySessionView(Body, frozen=True, kw_only=True):
    """How a broker stands to the registry."""

    state: str
    held_for_ms: Int64 = msgspec.field(name="heldForMillis", default=0)
    """For how long nobody can take it for gone."""


class ChecksView(Body, frozen=True, kw_only=True):
    """A slave's conditions for making itself the reader."""

    needed: Int32
    """So many looks in a row have to find that all hold."""
    count: Int32 = 0
    """So many have, up to now."""
    conditions: list[Condition] = msgspec.field(default=[])
    """As they were found last."""


class AdoptedView(Body, frozen=True, kw_only=True):
    """The last hand-back whose offsets a master has taken over."""

    term: Int64 = 0
    round: Int64 = 0


class SlaveConsumeStatus(Body, frozen=True, kw_only=True):
    """What a broker may do in its group now, and why."""

    group: str
    address: str
    role: GroupRole
    state: str
    """What it does, in a word or two."""
    permission: str
    """FULL, WRITE, READ or NONE, and so the next."""
    configured_permission: str | None = None
    """What it is assigned; None if it is not assigned anything."""
    reason: str = ""
    """Why it may do this, and no more."""
    record: ReadRecord | None = None
    """Who is read, as the registry said last; None before it was read."""
    is_linked: bool = msgspec.field(name="linked", default=False)
    """Whether master and slave are connected, as this one sees it."""
    registry: RegistrySessionView
    brokers: list[Assigned] = msgspec.field(default=[])
    """The group as it is assigned."""
    at_ms: Int64 = 0
    """When this was told, by the broker's clock."""
    checks: ChecksView | None = None
    """A slave's."""
    given_up: str | None = None
    """A master's: why it serves nobody, until its slave or an operator restores it."""
    adopted: AdoptedView | None = None
    """A master's."""
    duplicates_if_ended: dict[str, int] | None = None
    """A master's that serves nobody: by group, what may be consumed twice if an operator restores it now."""
    delivered_twice: dict[str, int] = msgspec.field(default={})
    """By group, how many messages this broker has delivered since its start, and the one before it too."""

    @property
    def term(self) -> int:
        """How many slave consumptions the group has had."""
        return 0 if self.record is None else self.record.term

    @property
    def reader(self) -> str | None:
        """The slave that is read, if one is."""
        return None if self.record is None else self.record.reader

    @property
    def is_readable(self) -> bool:
        return bool((permission_of(self.permission) or NONE) & READ)
