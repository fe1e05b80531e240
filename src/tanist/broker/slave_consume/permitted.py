"""What a broker may do now: one function of its assignment, its group's record and its own standing. Pure.

    outside slave consumption     the master has what it is assigned, everybody else nothing
    in slave consumption          the master has nothing, the reader what it is assigned of READ

A master also has nothing while it does not know the record, while it may have been replaced without knowing
(it has given up), and while a slave consumption is over whose offsets it has not adopted.
"""

from typing import NamedTuple

from tanist.model.reading import FULL, NONE, Assigned, EndedBy, GroupRole, ReadRecord, permission_name
from tanist.model.topics import READ


class Adopted(NamedTuple):
    """The last hand-back whose offsets a master has taken over."""

    term: int = 0
    round: int = 0


NOTHING_ADOPTED = Adopted()


class Permitted(NamedTuple):
    """What a broker may do, and why not more."""

    permission: int
    reason: str
    reader: str | None = None
    """Where to read instead, if that is known."""
    term: int = 0


def permitted(
    own: Assigned | None,
    record: ReadRecord | None,
    *,
    master: str | None = None,
    adopted: Adopted = NOTHING_ADOPTED,
    given_up: str | None = None,
) -> Permitted:
    """``master`` is the master's address, and ``given_up`` why this one has given up, if it has."""
    if own is None:
        return Permitted(NONE, "no role is assigned to it", master)
    if record is None:
        return Permitted(NONE, "it has not read from the registry who is to be read")
    if own.role is GroupRole.SLAVE:
        return _slave(own, record, master)
    return _master(own, record, adopted, given_up)


def _slave(own: Assigned, record: ReadRecord, master: str | None) -> Permitted:
    if record.reader == own.address:
        permission = own.permission & READ
        reason = "the group is in slave consumption" if permission else _assigned(own)
        return Permitted(permission, reason, own.address, record.term)
    elsewhere = record.reader or master
    return Permitted(NONE, "it is a slave, and its group is not read from it", elsewhere, record.term)


def _master(own: Assigned, record: ReadRecord, adopted: Adopted, given_up: str | None) -> Permitted:
    if record.reader is not None:
        reason = f"the group is in slave consumption, term {record.term}: {record.reader} is read"
        return Permitted(NONE, reason, record.reader, record.term)
    if given_up is not None:
        return Permitted(NONE, given_up, None, record.term)
    if lacks_offsets(record, adopted):
        reason = f"the offsets of slave consumption {record.term} have not been taken over yet"
        return Permitted(NONE, reason, None, record.term)
    reason = "the master is read" if own.permission == FULL else _assigned(own)
    return Permitted(own.permission, reason, own.address, record.term)


def _assigned(own: Assigned) -> str:
    return f"it is assigned {permission_name(own.permission)}"


def lacks_offsets(record: ReadRecord, adopted: Adopted) -> bool:
    """Whether a slave has handed offsets back that this master has not got."""
    return record.ended_by is EndedBy.HAND_BACK and adopted < (record.term, record.round)
