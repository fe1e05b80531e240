import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from tanist.admin.roles import AssignRefused, Reassigned, assign_roles, read_assignment
from tanist.coord import Check, Conflict, Create, Put, Registry, open_registry
from tanist.errors import ConfigError
from tanist.model.reading import (
    FULL,
    NONE,
    ReadRecord,
    alive_path,
    assignment_path,
    decode_assignment,
    encode_record,
    read_record_path,
)
from tanist.model.topics import READ

GROUP, MASTER, SLAVE, OTHER = "broker-a", "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"
FIRST = read_assignment(GROUP, MASTER, [SLAVE])
SWAPPED = read_assignment(GROUP, SLAVE, [MASTER])


def run(tmp_path: Path, scenario: Callable[[Registry], Awaitable[None]]) -> None:
    async def scene() -> None:
        async with open_registry(f"sqlite://{tmp_path}/registry.db") as registry:
            await scenario(registry)

    asyncio.run(scene())


def test_slaves_have_ids_from_1_on_and_full_permission_unless_told() -> None:
    assignment = read_assignment(GROUP, f"{MASTER}=read", [f"{SLAVE}:3=NONE", OTHER, "[::1]:10911=READ"])
    assert [(each.address, each.broker_id, each.permission) for each in assignment.brokers] == [
        (MASTER, 0, READ),
        (OTHER, 1, FULL),
        ("[::1]:10911", 2, READ),
        (SLAVE, 3, NONE),
    ]


@pytest.mark.parametrize(
    ("master", "slaves", "key"),
    [
        ("10.0.0.1", [], "master"),
        (f"{MASTER}=ALL", [], "master"),
        (MASTER, ["10.0.0.2"], "slave"),
        (MASTER, [f"{SLAVE}:0"], "slave"),
        (MASTER, [f"{SLAVE}=RW"], "slave"),
        (MASTER, [f"{SLAVE}:1", f"{OTHER}:1"], "slave"),
        (MASTER, [MASTER], "slave"),
        (MASTER, [f"{SLAVE}:x"], "slave"),
    ],
)
def test_an_assignment_that_makes_no_sense_is_refused_by_the_argument(
    master: str, slaves: list[str], key: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{key}="):
        read_assignment(GROUP, master, slaves)


@pytest.mark.behaviour("S3-3")
def test_an_administrator_assigns_roles_and_the_registry_has_them(tmp_path: Path) -> None:
    async def scenario(registry: Registry) -> None:
        assert await assign_roles(registry, FIRST) == Reassigned(None, FIRST)
        changed = read_assignment(GROUP, MASTER, [SLAVE, OTHER])
        assert await assign_roles(registry, changed) == Reassigned(FIRST, changed)
        found = await registry.read(assignment_path(GROUP))
        assert found is not None
        assert decode_assignment(found.value) == changed

    run(tmp_path, scenario)


def test_roles_stay_while_a_slave_is_read_unless_forced(tmp_path: Path) -> None:
    record = encode_record(ReadRecord(group=GROUP, term=1, reader=SLAVE))

    async def scenario(registry: Registry) -> None:
        await registry.commit(Create(read_record_path(GROUP), record))
        with pytest.raises(AssignRefused, match=f"{SLAVE} is read"):
            await assign_roles(registry, FIRST)
        assert await registry.read(assignment_path(GROUP)) is None
        await assign_roles(registry, FIRST, is_forced=True)

    run(tmp_path, scenario)


def test_a_master_that_is_alive_is_not_replaced_unless_forced(tmp_path: Path) -> None:
    async def scenario(registry: Registry) -> None:
        await assign_roles(registry, FIRST)
        await registry.commit(Create(alive_path(GROUP, MASTER), b"{}", is_ephemeral=True))
        await assign_roles(registry, read_assignment(GROUP, MASTER, [OTHER]))
        with pytest.raises(AssignRefused, match=f"master at {MASTER} is alive; stop it"):
            await assign_roles(registry, SWAPPED)
        await assign_roles(registry, SWAPPED, is_forced=True)

    run(tmp_path, scenario)


def test_who_changes_a_group_at_the_same_time_is_not_overwritten(tmp_path: Path) -> None:
    class Late:
        """Somebody else is faster each time."""

        def __init__(self, registry: Registry) -> None:
            self.read = registry.read
            self._registry = registry

        async def commit(self, *changes: Check | Create | Put) -> list[int]:
            found = await self.read(assignment_path(GROUP))
            assert found is not None
            await self._registry.commit(Put(assignment_path(GROUP), found.value, found.version))
            return await self._registry.commit(*changes)

    async def scenario(registry: Registry) -> None:
        await assign_roles(registry, FIRST)
        with pytest.raises(AssignRefused, match="somebody else changes this group") as refused:
            await assign_roles(cast("Registry", Late(registry)), SWAPPED)
        assert isinstance(refused.value.__cause__, Conflict)

    run(tmp_path, scenario)
