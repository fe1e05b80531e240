import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tanist.errors import FlushFailed
from tanist.store.checkpoint import load_checkpoint
from tanist.store.disk import Disk
from tanist.store.store import MessageStore
from tanist.store.upkeep import Upkeep
from tests.support.clocks import FakeClock
from tests.support.conditions import until
from tests.support.failing_disk import FailingDisk
from tests.support.messages import SMALL, kill, make_message, open_store

EAGER = msgspec.structs.replace(SMALL, flush_interval_consume_queue=1, file_reserved_time=0)
FAR_FUTURE_MS = 10_000_000_000_000


class _Looked:
    """A store that is being looked after, for the length of one scenario."""

    def __init__(self, root: Path) -> None:
        self.disk = FailingDisk()
        self.clock = FakeClock(now_ms=FAR_FUTURE_MS)
        self.store = open_store(root, EAGER, disk=self.disk, clock=self.clock)
        self.upkeep = Upkeep(self.store, self.clock)

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def looked_after() -> None:
            task = asyncio.create_task(self.upkeep.run())
            await scenario()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        asyncio.run(looked_after())

    @property
    def saved_to(self) -> int | None:
        return load_checkpoint(Disk(), self.store.root / "checkpoint").flushed_to


def _append(store: MessageStore, count: int) -> None:
    for number in range(count):
        store.append(make_message(number, body_bytes=1000))
    store.dispatch()


def test_checkpoints_are_taken_again_and_again(tmp_path: Path) -> None:
    looked = _Looked(tmp_path)

    async def scenario() -> None:
        for _ in range(3):
            _append(looked.store, 1)
            await until(lambda: looked.saved_to == looked.store.log.log_end)

    looked.run(scenario)
    looked.store.close()


def test_the_disk_is_waited_for_on_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _Looked(tmp_path)
    looked.store.append(make_message())
    threads: set[str] = set()
    count = looked.disk.count

    def noted() -> None:
        threads.add(threading.current_thread().name)
        count()

    monkeypatch.setattr(looked.disk, "count", noted)

    async def scenario() -> None:
        looked.store.append(make_message())
        await until(lambda: looked.saved_to == looked.store.log.log_end)

    looked.run(scenario)
    assert len(threads) == 1
    assert threads.pop().startswith("upkeep")
    looked.store.close()


def test_the_next_file_is_prepared_when_the_last_is_half_full(tmp_path: Path) -> None:
    looked = _Looked(tmp_path)
    next_file = tmp_path / "commitlog" / "00000000000000004096"

    async def scenario() -> None:
        looked.store.append(make_message(body_bytes=1000))
        await until(lambda: looked.saved_to == looked.store.log.log_end)
        assert not next_file.exists()
        looked.store.append(make_message(body_bytes=1500))
        await until(next_file.exists)

    looked.run(scenario)
    looked.store.close()


def test_the_next_file_does_not_wait_for_a_checkpoint(tmp_path: Path) -> None:
    looked = _Looked(tmp_path)
    asked: list[Path] = []

    def prepare() -> None:
        asked.append(tmp_path)

    looked.store.log.segments.prepare = prepare

    async def scenario() -> None:
        looked.store.append(make_message(body_bytes=2500))
        looked.disk.may_sync.clear()
        await until(lambda: bool(asked))
        assert looked.saved_to != looked.store.log.log_end
        looked.disk.may_sync.set()

    looked.run(scenario)
    looked.store.close()


def test_a_full_disk_does_not_end_the_upkeep(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    looked = _Looked(tmp_path)
    next_file = tmp_path / "commitlog" / "00000000000000004096"

    async def scenario() -> None:
        looked.store.append(make_message(body_bytes=2500))
        looked.disk.is_full = True
        await until(lambda: "next file can not be made" in caplog.text)
        looked.disk.is_full = False
        await until(next_file.exists)

    looked.run(scenario)
    looked.store.close()


def test_old_files_are_deleted_when_it_is_time_to_look(tmp_path: Path) -> None:
    looked = _Looked(tmp_path)
    looked.disk.used = 0.8

    async def scenario() -> None:
        _append(looked.store, 9)
        await until(lambda: looked.saved_to == looked.store.log.log_end)
        assert looked.store.log.log_start == 0
        looked.clock.advance_ms(10_000)
        await until(lambda: looked.store.log.log_start == 2 * 4096)

    looked.run(scenario)
    looked.store.close()


def test_whoever_asks_gets_all_old_files_deleted_soon(tmp_path: Path) -> None:
    looked = _Looked(tmp_path)
    looked.store.settings = msgspec.structs.replace(EAGER, delete_file_batch_max=1, delete_when="00")
    # Noon in every zone that a test may run in is not the hour in which files are deleted anyway.
    looked.clock.set_now_ms(FAR_FUTURE_MS - FAR_FUTURE_MS % 86_400_000 + 43_200_000)

    async def scenario() -> None:
        _append(looked.store, 12)
        await until(lambda: looked.saved_to == looked.store.log.log_end)
        assert looked.store.log.log_start == 0
        looked.upkeep.clean_soon()
        await until(lambda: looked.store.log.log_start == looked.store.log.segments[-1].start)

    looked.run(scenario)
    looked.store.close()


def test_a_disk_that_fails_ends_the_upkeep(tmp_path: Path) -> None:
    looked = _Looked(tmp_path)
    saved_to = looked.saved_to

    async def scenario() -> None:
        _append(looked.store, 1)
        looked.disk.is_sync_broken = True
        with pytest.raises(FlushFailed):
            await looked.upkeep.run()

    asyncio.run(scenario())
    assert looked.store.log.refusal is not None
    assert looked.saved_to == saved_to
    kill(looked.store)
