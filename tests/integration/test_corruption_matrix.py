"""Nine kinds of file, seven damages, a master's or a slave's: what was promised is there, or it is told.

A store that a damage hit is refused with the name of the file and left as it is; or it opens, and all that
was flushed is in it, at its offsets, and its queues go on behind it. Where opening takes bytes as they are,
because it would have to read the whole disk to know better, the running broker's scrub names the place.

Of a record RocketMQ's format proves place, length and body; a changed bit in its times or properties shows to
nobody, so only bodies are compared.
"""

import asyncio
import os
import random
from pathlib import Path

import pytest

from tanist.coord import Create, Record, RegistryError
from tanist.coord.sqlite_registry import SqliteHome
from tanist.errors import ForeignFile, StoreError
from tests.support.damaged_store import (
    STORE_FILES,
    TABLE_FILES,
    Left,
    leave_master,
    leave_slave,
    load_tables,
    refused_or_open,
    scrubbed,
    shown,
    tables,
)
from tests.support.damages import DAMAGES
from tests.support.messages import make_message, tree

PLACES = 2
"""At so many places each damage is done."""
LEAVING = {"master": leave_master, "slave": leave_slave}


@pytest.fixture(scope="module", params=[(role, stop) for role in LEAVING for stop in ("closed", "killed")])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Left:
    role, stop = request.param
    return LEAVING[role](tmp_path_factory.mktemp(role), is_closed=stop == "closed")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", STORE_FILES)
def test_a_damaged_file_of_a_store_loses_nothing_in_silence(
    left: Left, tmp_path: Path, kind: str, damage: str
) -> None:
    for place in range(PLACES):
        rng = random.Random(f"{kind} {damage} {place}")
        root = left.copied(tmp_path / str(place))
        path = STORE_FILES[kind](root, rng)
        DAMAGES[damage](path, left.older / path.relative_to(root), rng)
        before = tree(root)
        with refused_or_open(root) as opened:
            if isinstance(opened, StoreError):
                _check_refusal(opened, path, before, tree(root))
                continue
            found = shown(opened)
            wrong = {at for at, body in left.promised.items() if found.get(at) != body}
            wrong |= {at for at, body in found.items() if left.written.get(at) != body}
            assert not wrong or scrubbed(opened), f"{path}: nobody tells that {sorted(wrong)} are lost"
            for queue_id, queue_offset in left.promised:
                assert opened.append(make_message(queue_id=queue_id)).queue_offset > queue_offset


def _check_refusal(
    refusal: StoreError, path: Path, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    assert path.name in str(refusal) or path.parent.name in str(refusal)
    # A log file that is cut short gets its length back before it is looked at.
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= {"lock", f"commitlog/{path.name}"}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", TABLE_FILES)
def test_a_damaged_table_is_read_from_its_backup_and_never_as_another_one(
    left: Left, tmp_path: Path, kind: str, damage: str
) -> None:
    number = TABLE_FILES.index(kind)
    for place in range(PLACES):
        root = left.copied(tmp_path / str(place))
        path = root / "config" / kind
        modified_ns = path.stat().st_mtime_ns
        DAMAGES[damage](path, left.older / "config" / kind, random.Random(f"{kind} {damage} {place}"))
        if path.exists():
            # No disk that damages a file says so in the file's time.
            os.utime(path, ns=(modified_ns, modified_ns))
        assert load_tables(root)[number] in (tables(1)[number], tables(2)[number])


SEEN_BY_FORMAT = DAMAGES.keys() - {"a flipped bit", "a copied chunk"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_registry_is_refused_or_has_its_records(tmp_path: Path, damage: str) -> None:
    older = tmp_path / "older.db"
    first, second = ({f"/groups/{number}": b"x" * 600 for number in range(count)} for count in (5, 20))
    asyncio.run(_fill(older, first))
    for place in range(PLACES):
        path = tmp_path / f"registry-{place}.db"
        asyncio.run(_fill(path, second))
        DAMAGES[damage](path, older, random.Random(f"registry {damage} {place}"))
        found = asyncio.run(_look(path, second))
        if isinstance(found, str):
            assert path.name in found
        elif damage in SEEN_BY_FORMAT:
            assert found == (first if damage == "an older version" else second)
        else:
            # SQLite proves the shape of its pages, and keeps no checksum of what is in them.
            assert found.keys() == second.keys()


async def _fill(path: Path, values: dict[str, bytes]) -> None:
    async with SqliteHome(path) as home, home.session(timeout_s=60) as registry:
        await registry.commit(*(Create(name, value) for name, value in values.items()))


async def _look(path: Path, values: dict[str, bytes]) -> dict[str, bytes] | str:
    """The records, or why the file is refused."""
    try:
        async with SqliteHome(path) as home, home.session(timeout_s=60) as registry:
            found = {name: await registry.read(name) for name in values}
    except (ForeignFile, RegistryError) as refusal:
        return str(refusal)
    return {name: record.value for name, record in found.items() if isinstance(record, Record)}
