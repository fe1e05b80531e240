"""Who is master and who is slave in a group, as an administrator assigns it in the registry."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tanist.coord import Check, Conflict, Create, Put, Registry
from tanist.errors import ConfigError, MQError
from tanist.model.host import is_host_and_port
from tanist.model.reading import (
    ASSIGNMENTS_PATH,
    FULL,
    Assigned,
    Assignment,
    GroupRole,
    alive_path,
    assignment_path,
    decode_assignment,
    decode_read_record,
    encode_record,
    permission_of,
    read_record_path,
)
from tanist.model.route import MASTER_ID

_SLAVE = re.compile(r"(?P<address>(?:\[[^\]]+\]|[^:=]+):\d+)(?::(?P<id>\d+))?(?:=(?P<permission>\w+))?")


class AssignRefused(MQError):
    """The roles were not assigned, and nothing was changed."""


class Reassigned(NamedTuple):
    """What was assigned, and what is."""

    before: Assignment | None
    after: Assignment


def read_assignment(group: str, master: str, slaves: Sequence[str]) -> Assignment:
    """The assignment that these arguments mean. Raises ConfigError for one that means nothing.

    ``master`` is ``ADDRESS[=PERMISSION]``, a slave ``ADDRESS[:ID][=PERMISSION]``; ids that are left out are
    counted up from 1.

    >>> read_assignment("broker-a", "10.0.0.1:10911", ["10.0.0.2:10911=READ"]).second.address
    '10.0.0.2:10911'
    """
    brokers = [_read_master(master)]
    ids = {broker_id for _, broker_id, _ in map(_read_slave, slaves) if broker_id is not None}
    free_ids = (broker_id for broker_id in range(1, len(slaves) * 2 + 2) if broker_id not in ids)
    for text in slaves:
        address, broker_id, permission = _read_slave(text)
        taken = next(free_ids) if broker_id is None else broker_id
        if any(taken == other.broker_id or address == other.address for other in brokers):
            raise ConfigError("slave", text, "an address and an id that no other broker of the group has")
        brokers.append(
            Assigned(address=address, role=GroupRole.SLAVE, broker_id=taken, permission=permission)
        )
    return Assignment(group=group, brokers=tuple(sorted(brokers, key=lambda each: each.broker_id)))


async def assign_roles(registry: Registry, assignment: Assignment, *, is_forced: bool = False) -> Reassigned:
    """Store an assignment, and so tell all brokers of the group; what it was before.

    Raises AssignRefused if somebody else changes it at the same time and, unless it is forced, while a slave
    of the group is read or while the master is alive that would be replaced.

    >>> async with open_registry("tanist://127.0.0.1:9878") as registry:
    ...     await assign_roles(registry, read_assignment("broker-a", "10.0.0.1:10911", []))
    """
    group, path = assignment.group, assignment_path(assignment.group)
    found, stored = await registry.read(path), await registry.read(read_record_path(group))
    before = None if found is None else decode_assignment(found.value)
    conditions: list[Check] = []
    if not is_forced:
        reader = None if stored is None else decode_read_record(stored.value).reader
        if reader is not None:
            raise AssignRefused(
                f"{group} is in slave consumption: {reader} is read; wait until it has handed back, or end "
                "that with endSlaveConsume"
            )
        conditions.append(Check(read_record_path(group), None if stored is None else stored.version))
        conditions += _master_is_gone(before, assignment)
    value = encode_record(assignment)
    change = Create(path, value) if found is None else Put(path, value, found.version)
    try:
        await registry.commit(*conditions, change)
    except Conflict as conflict:
        raise AssignRefused(_explain(conflict, before)) from conflict
    return Reassigned(before, assignment)


async def read_assignments(registry: Registry) -> list[Assignment]:
    """All groups that have roles assigned, by name."""
    found = [
        await registry.read(f"{ASSIGNMENTS_PATH}/{name}")
        for name in await registry.children(ASSIGNMENTS_PATH)
    ]
    assignments = [decode_assignment(record.value) for record in found if record is not None]
    return sorted(assignments, key=lambda assignment: assignment.group)


def _master_is_gone(before: Assignment | None, after: Assignment) -> list[Check]:
    """Two masters of one group would both take messages, and neither log would be the other's copy."""
    old = None if before is None else before.master
    if old is None or (after.master is not None and after.master.address == old.address):
        return []
    return [Check(alive_path(after.group, old.address), None)]


def _explain(conflict: Conflict, before: Assignment | None) -> str:
    master = None if before is None else before.master
    if (
        master is not None
        and before is not None
        and conflict.change.path == alive_path(before.group, master.address)
    ):
        return f"the master at {master.address} is alive; stop it before another broker becomes master"
    return "somebody else changes this group at the same time; look again, and repeat it"


def _read_master(text: str) -> Assigned:
    address, separator, permission = text.partition("=")
    if not is_host_and_port(address):
        raise ConfigError("master", text, "host:port, and =PERMISSION if it is not FULL")
    return Assigned(
        address=address,
        role=GroupRole.MASTER,
        broker_id=MASTER_ID,
        permission=_read_permission("master", permission) if separator else FULL,
    )


def _read_slave(text: str) -> tuple[str, int | None, int]:
    match = _SLAVE.fullmatch(text)
    if match is None or not is_host_and_port(match["address"]) or match["id"] == str(MASTER_ID):
        raise ConfigError("slave", text, "host:port[:ID][=PERMISSION], with an ID from 1 on")
    permission = FULL if match["permission"] is None else _read_permission("slave", match["permission"])
    return match["address"], None if match["id"] is None else int(match["id"]), permission


def _read_permission(key: str, name: str) -> int:
    permission = permission_of(name.upper())
    if permission is None:
        raise ConfigError(key, name, "FULL, WRITE, READ or NONE")
    return permission
