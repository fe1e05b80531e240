"""Who of a replica group with fixed roles may be read and written, and the records that say so. Pure.

An administrator assigns the roles, and what each broker may do at most. Which of them is read now is one
record of the registry: its reader is a slave while the group is in slave consumption, and else nobody, which
means the master. The record stays when its writer dies, and its term counts the slave consumptions.
"""

from enum import StrEnum
from typing import TypeVar
from urllib.parse import quote

import msgspec

from tanist.errors import MQError
from tanist.model.route import MASTER_ID
from tanist.model.topics import READ, WRITE

NONE = 0
FULL = READ | WRITE
_NAMES = {FULL: "FULL", WRITE: "WRITE", READ: "READ", NONE: "NONE"}
_BY_NAME = {name: permission for permission, name in _NAMES.items()}

ASSIGNMENTS_PATH = "/assignments"
"""Where the groups are that have roles assigned."""
_ALIVE_PATH = "/alive"
_READ_RECORDS_PATH = "/slave-consume"

_T = TypeVar("_T")


class BadReadingRecord(MQError):
    """The registry holds something that is no record of who may be read."""


class GroupRole(StrEnum):
    """What a broker is in its group, as the administrator assigned it."""

    MASTER = "MASTER"
    SLAVE = "SLAVE"


class Assigned(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One broker of a group, which is known by its address."""

    address: str
    role: GroupRole
    broker_id: int
    permission: int = FULL
    """What it may do at most."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The brokers of one group."""

    group: str
    brokers: tuple[Assigned, ...] = ()

    def find(self, address: str) -> Assigned | None:
        return next((broker for broker in self.brokers if broker.address == address), None)

    @property
    def master(self) -> Assigned | None:
        return next((broker for broker in self.brokers if broker.role is GroupRole.MASTER), None)

    @property
    def second(self) -> Assigned | None:
        """The slave that is read when the master is gone: of those that may be read, that of the least id.

        It is one by the assignment alone, whoever is alive: a master that has lost the registry must know
        which slave could take its place.
        """
        slaves = (
            broker for broker in self.brokers if broker.role is GroupRole.SLAVE and broker.permission & READ
        )
        return min(slaves, key=lambda broker: broker.broker_id, default=None)

    def with_broker(self, broker: Assigned) -> "Assignment":
        """With a broker that is new, or has another role or permission."""
        others = (other for other in self.brokers if other.address != broker.address)
        return msgspec.structs.replace(
            self, brokers=tuple(sorted((*others, broker), key=lambda other: other.broker_id))
        )


class EndedBy(StrEnum):
    """How the last slave consumption ended."""

    HAND_BACK = "hand-back"
    OPERATOR = "operator"


class ReadRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who is read in one group. A group that never was in slave consumption has term 0."""

    group: str
    term: int = 0
    reader: str | None = None
    """The address of the slave that is read; None for the master."""
    second: str | None = None
    """The one slave that may make itself the reader. Only the master names it, once it has been linked to it,
    so a master knows whom it can be replaced by, also when it has lost the registry."""
    ended_by: EndedBy | None = None
    round: int = 0
    """Which hand-back of this term was the one that ended it: the master has adopted its offsets."""
    since_ms: int = 0
    reason: str = ""
    """Why it was changed last, in words."""
    brokers: tuple[Assigned, ...] = ()
    """The group as it was then."""


class Presence(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a broker says of itself while it is there."""

    token: str
    """Tells this start of it from others."""
    ha_address: str | None = None
    """Where slaves connect to; None if they do not."""


def permission_name(permission: int) -> str:
    """What operators call it: FULL, WRITE, READ or NONE."""
    return _NAMES[permission & FULL]


def permission_of(name: str) -> int | None:
    """The permission that operators call so; None if it is no name of one."""
    return _BY_NAME.get(name)


def assignment_path(group: str) -> str:
    return f"{ASSIGNMENTS_PATH}/{quote(group, safe='')}"


def alive_path(group: str, address: str) -> str:
    """Where a broker is, ephemerally, as long as it lives."""
    return f"{_ALIVE_PATH}/{quote(group, safe='')}/{quote(address, safe='')}"


def read_record_path(group: str) -> str:
    return f"{_READ_RECORDS_PATH}/{quote(group, safe='')}"


def encode_record(record: Assignment | Presence | ReadRecord) -> bytes:
    return msgspec.json.encode(record)


def decode_assignment(data: bytes) -> Assignment:
    """Raises BadReadingRecord if it is none."""
    assignment = _decode(data, Assignment)
    if len([broker for broker in assignment.brokers if broker.role is GroupRole.MASTER]) > 1:
        raise BadReadingRecord(f"group {assignment.group} has two masters; assign its roles again")
    if any(
        (broker.role is GroupRole.MASTER) != (broker.broker_id == MASTER_ID) for broker in assignment.brokers
    ):
        raise BadReadingRecord(f"in group {assignment.group} the master, and nobody else, has id {MASTER_ID}")
    return assignment


def decode_presence(data: bytes) -> Presence:
    """Raises BadReadingRecord if it is none."""
    return _decode(data, Presence)


def decode_read_record(data: bytes) -> ReadRecord:
    """Raises BadReadingRecord if it is none."""
    return _decode(data, ReadRecord)


def _decode(data: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReadingRecord(f"{data[:200]!r} is no {kind.__name__}: {error}") from error
