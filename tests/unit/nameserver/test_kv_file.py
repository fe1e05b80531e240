"""The key-value table on disk: what is visible is durable, what is answered is visible."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tanist.errors import DiskFull, ForeignFile
from tanist.nameserver import kv_file
from tanist.nameserver.kv_config import KVConfig
from tanist.nameserver.kv_file import Change, KVFile
from tanist.store.disk import Disk


class SlowDisk(Disk):
    """Writes when it is allowed to, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.may_write.set()
        self.failure: Exception | None = None
        self.write_count = 0

    def write_durably(self, path: Path, data: bytes) -> None:
        assert self.may_write.wait(10)
        self.write_count += 1
        if self.failure is not None:
            raise self.failure
        super().write_durably(path, data)


@asynccontextmanager
async def running(file: KVFile) -> AsyncGenerator[None]:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(file.run())
        yield
        file.close()


async def made(file: KVFile, change: Change) -> Exception | None:
    """Submit a change and wait for its end."""
    end: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    assert file.submit(change, end.set_result)
    return await asyncio.wait_for(end, 10)


def put(key: str, value: str) -> Change:
    return lambda table: table.with_value("N", key, value)


def test_what_was_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "namesrv" / "kvConfig.json"

    async def story() -> None:
        file = KVFile(path)
        file.load()
        async with running(file):
            assert await made(file, put("k", "ä")) is None
            assert file.current.value("N", "k") == "ä"

    asyncio.run(story())

    again = KVFile(path)
    again.load()
    assert again.current == KVConfig(config_table={"N": {"k": "ä"}})
    assert msgspec.json.decode(path.read_bytes()) == {"configTable": {"N": {"k": "ä"}}}


def test_a_file_of_rocketmq_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text('{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}}}')
    file = KVFile(path)
    file.load()
    assert file.current.value("ORDER_TOPIC_CONFIG", "T") == "broker-a:4"


def test_a_damaged_file_without_backup_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text('{"configTable":')
    with pytest.raises(ForeignFile):
        KVFile(path).load()


def test_a_change_is_not_visible_before_it_is_on_disk(tmp_path: Path) -> None:
    async def story() -> None:
        disk = SlowDisk()
        file = KVFile(tmp_path / "kv.json", disk)
        disk.may_write.clear()
        async with running(file):
            waiting = asyncio.create_task(made(file, put("k", "1")))
            await asyncio.sleep(0)
            assert file.current.value("N", "k") is None
            disk.may_write.set()
            assert await waiting is None
            assert file.current.value("N", "k") == "1"

    asyncio.run(story())


def test_changes_that_come_during_a_write_are_written_together(tmp_path: Path) -> None:
    async def story() -> int:
        disk = SlowDisk()
        file = KVFile(tmp_path / "kv.json", disk)
        disk.may_write.clear()
        async with running(file):
            first = asyncio.create_task(made(file, put("first", "1")))
            await asyncio.sleep(0)
            others = [asyncio.create_task(made(file, put(f"k{number}", "1"))) for number in range(20)]
            await asyncio.sleep(0)
            disk.may_write.set()
            await asyncio.gather(first, *others)
        assert len(file.current.values("N") or {}) == 21
        return disk.write_count

    assert asyncio.run(story()) <= 3


def test_a_failed_write_is_told_and_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    async def story() -> None:
        disk = SlowDisk()
        file = KVFile(tmp_path / "kv.json", disk)
        async with running(file):
            assert await made(file, put("k", "1")) is None
            disk.failure = DiskFull(tmp_path, 10)
            assert await made(file, put("k", "2")) is disk.failure
            assert file.current.value("N", "k") == "1"
            disk.failure = None
            assert await made(file, put("k", "3")) is None

    asyncio.run(story())


def test_a_change_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    async def story() -> int:
        disk = SlowDisk()
        file = KVFile(tmp_path / "kv.json", disk)
        async with running(file):
            assert await made(file, lambda table: table.without("N", "k")) is None
        return disk.write_count

    assert asyncio.run(story()) == 0


def test_changes_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_file, "MAX_PENDING_CHANGES", 2)

    async def story() -> list[bool]:
        file = KVFile(tmp_path / "kv.json")
        return [file.submit(put("k", "1"), lambda _: None) for _ in range(3)]

    assert asyncio.run(story()) == [True, True, False]


def test_what_waits_at_the_end_is_written_first(tmp_path: Path) -> None:
    path = tmp_path / "kv.json"

    async def story() -> None:
        file = KVFile(path)
        file.submit(put("k", "1"), lambda _: None)
        file.close()
        await file.run()

    asyncio.run(story())
    assert b'"k"' in path.read_bytes()
