import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tanist.errors import FlushFailed, NotWritable, StoreBusy
from tanist.store import FlushMode, StoreSettings
from tanist.store.commitlog import CommitLog
from tanist.store.flush import Flusher, FlushOutcome
from tanist.store.segments import Segments
from tests.support.clocks import FakeClock
from tests.support.conditions import until
from tests.support.failing_disk import FailingDisk
from tests.support.messages import SMALL, make_message

SYNC = msgspec.structs.replace(SMALL, flush_disk_type=FlushMode.SYNC_FLUSH)
FLUSHED = FlushOutcome.FLUSHED
EAGER = msgspec.structs.replace(SMALL, flush_interval_commit_log=1)


class _Flushing:
    """A log and its flusher, on a disk whose syncs can be held up or broken."""

    def __init__(
        self, tmp_path: Path, settings: StoreSettings = SYNC, *, max_dirty_bytes: int | None = None
    ) -> None:
        self.disk = FailingDisk()
        segments = Segments(self.disk, tmp_path, settings.mapped_file_size_commit_log)
        segments.open()
        self.clock = FakeClock()
        self.log = CommitLog(segments, store_host=bytes(8), max_body_bytes=4096, clock=self.clock)
        self.log.append(make_message())
        self.log.flush()
        self.flusher = Flusher(self.log, settings, self.clock, max_dirty_bytes=max_dirty_bytes)
        self.sync_count = self.disk.sync_count

    def append(self) -> int:
        return self.log.append(make_message()).end

    def wait(self, end: int) -> asyncio.Future[FlushOutcome]:
        """What becomes of the log up to here."""
        outcome: asyncio.Future[FlushOutcome] = asyncio.get_running_loop().create_future()
        self.flusher.when_flushed(end, outcome.set_result)
        return outcome

    @property
    def syncs(self) -> int:
        """How often the disk was asked to sync since the beginning."""
        return self.disk.sync_count - self.sync_count


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_what_is_durable_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path)
        assert await flushing.wait(flushing.log.flushed_to) is FLUSHED
        assert flushing.syncs == 0

    asyncio.run(scenario())


def test_a_send_is_released_when_its_bytes_are_on_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path)
        run = asyncio.create_task(flushing.flusher.run())
        end = flushing.append()
        assert await flushing.wait(end) is FLUSHED
        assert flushing.log.flushed_to == end
        await _stop(run)

    asyncio.run(scenario())


def test_all_waiting_sends_are_released_by_one_flush(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path)
        waits = [flushing.wait(flushing.append()) for _ in range(20)]
        await asyncio.sleep(0)
        run = asyncio.create_task(flushing.flusher.run())
        assert await asyncio.gather(*waits) == [FLUSHED] * 20
        assert flushing.flusher.flush_count == 1
        assert flushing.syncs == 1
        await _stop(run)

    asyncio.run(scenario())


def test_sends_that_come_while_the_disk_is_busy_share_the_next_flush(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path)
        run = asyncio.create_task(flushing.flusher.run())
        flushing.disk.may_sync.clear()
        first = flushing.wait(flushing.append())
        await until(lambda: flushing.syncs == 1)
        others = [flushing.wait(flushing.append()) for _ in range(20)]
        await asyncio.sleep(0)
        flushing.disk.may_sync.set()
        assert await first is FLUSHED
        assert await asyncio.gather(*others) == [FLUSHED] * 20
        assert flushing.syncs == 2
        await _stop(run)

    asyncio.run(scenario())


def test_a_wait_that_takes_too_long_ends_with_false_and_the_message_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, msgspec.structs.replace(SYNC, sync_flush_timeout=1))
        run = asyncio.create_task(flushing.flusher.run())
        flushing.disk.may_sync.clear()
        end = flushing.append()
        assert await flushing.wait(end) is FlushOutcome.LATE
        assert flushing.log.log_end == end
        assert flushing.log.refusal is None
        flushing.disk.may_sync.set()
        await until(lambda: flushing.log.flushed_to == end)
        assert await flushing.wait(end) is FLUSHED
        await _stop(run)

    asyncio.run(scenario())


def test_those_who_wait_run_out_one_after_the_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, msgspec.structs.replace(SYNC, sync_flush_timeout=300))
        loop, started_s = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        first = flushing.wait(flushing.append())
        await until(lambda: loop.time() - started_s > 0.15)
        second = flushing.wait(flushing.append())
        assert await first is FlushOutcome.LATE
        assert not second.done()
        assert await second is FlushOutcome.LATE

    asyncio.run(scenario())


def test_who_waits_after_the_end_runs_out_as_well(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, msgspec.structs.replace(SYNC, sync_flush_timeout=50))
        run = asyncio.create_task(flushing.flusher.run())
        assert await flushing.wait(flushing.append()) is FLUSHED
        await _stop(run)
        async with asyncio.timeout(10):
            assert await flushing.wait(flushing.append()) is FlushOutcome.LATE

    asyncio.run(scenario())


def test_those_who_wait_can_be_told_that_it_is_too_late(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path)
        given_up = [flushing.wait(flushing.append()) for _ in range(2)]
        flushing.flusher.give_up()
        assert await asyncio.gather(*given_up) == [FlushOutcome.LATE] * 2
        run = asyncio.create_task(flushing.flusher.run())
        assert await flushing.wait(flushing.append()) is FLUSHED
        await _stop(run)

    asyncio.run(scenario())


def test_a_failed_flush_fails_all_who_wait_and_is_never_tried_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, msgspec.structs.replace(SYNC, flush_interval_commit_log=1))
        flushing.disk.is_sync_broken = True
        waits = [flushing.wait(flushing.append()) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(FlushFailed):
            await flushing.flusher.run()
        results = await asyncio.gather(*waits)
        assert results == [FlushOutcome.FAILED] * 5
        with pytest.raises(NotWritable, match="disk failed to flush"):
            flushing.append()
        flushing.disk.is_sync_broken = False
        assert await flushing.wait(flushing.log.log_end) is FlushOutcome.FAILED
        with pytest.raises(FlushFailed):
            await flushing.flusher.run()
        assert flushing.syncs == 1

    asyncio.run(scenario())


def test_a_send_whose_message_was_cut_is_told_so_and_nobody_waits_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path)
        start = flushing.log.log_end
        for _ in range(3):
            flushing.append()
        cut = flushing.wait(flushing.log.log_end)
        await asyncio.sleep(0)
        flushing.log.cut(start)
        run = asyncio.create_task(flushing.flusher.run())
        assert await flushing.wait(flushing.append()) is FLUSHED
        assert await cut is FlushOutcome.CUT
        await until(lambda: not flushing.flusher._waiters)
        await _stop(run)

    asyncio.run(scenario())


@pytest.mark.parametrize("refusal", [None, "the disk is nearly full"])
def test_what_is_written_at_the_end_is_flushed_last(tmp_path: Path, refusal: str | None) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, SMALL)
        run = asyncio.create_task(flushing.flusher.run())
        await asyncio.sleep(0)
        end = flushing.append()
        flushing.log.refusal = refusal
        await _stop(run)
        assert flushing.log.flushed_to == end

    asyncio.run(scenario())


def test_a_last_flush_that_fails_fails_those_who_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path)
        run = asyncio.create_task(flushing.flusher.run())
        flushing.disk.may_sync.clear()
        wait = flushing.wait(flushing.append())
        await until(lambda: flushing.syncs == 1)
        flushing.disk.is_sync_broken = True
        run.cancel()
        flushing.disk.may_sync.set()
        with pytest.raises(FlushFailed):
            await run
        assert await wait is FlushOutcome.FAILED

    asyncio.run(scenario())


# ASYNC_FLUSH


def test_a_log_that_is_much_dirty_is_flushed_without_anybody_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, EAGER)
        while flushing.log.log_end - flushing.log.flushed_to < 4 * 4096:
            flushing.append()
        run = asyncio.create_task(flushing.flusher.run())
        await until(lambda: flushing.log.flushed_to == flushing.log.log_end)
        await _stop(run)

    asyncio.run(scenario())


def test_a_log_that_is_a_little_dirty_is_flushed_after_ten_seconds(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, EAGER)
        end = flushing.append()
        run = asyncio.create_task(flushing.flusher.run())
        flushing.clock.advance_ms(9_999)
        assert not flushing.flusher._is_due()
        flushing.clock.advance_ms(1)
        await until(lambda: flushing.log.flushed_to == end)
        await _stop(run)

    asyncio.run(scenario())


def test_the_ten_seconds_count_from_the_last_flush(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, EAGER)
        flushing.clock.advance_ms(60_000)
        run = asyncio.create_task(flushing.flusher.run())
        assert await flushing.wait(flushing.append()) is FLUSHED
        flushing.append()
        assert not flushing.flusher._is_due()
        await _stop(run)

    asyncio.run(scenario())


def test_a_clean_log_is_not_flushed(tmp_path: Path) -> None:
    flushing = _Flushing(tmp_path, EAGER)
    flushing.clock.advance_ms(60_000)
    assert not flushing.flusher._is_due()


def test_with_sync_flush_what_nobody_waits_for_is_not_left_lying(tmp_path: Path) -> None:
    flushing = _Flushing(tmp_path, SYNC)
    flushing.append()
    assert flushing.flusher._is_due()


IMPATIENT = {"os_page_cache_busy_time_out_mills": 20}


def test_a_flush_that_lasts_too_long_has_messages_refused_until_it_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, msgspec.structs.replace(SYNC, **IMPATIENT))
        flushing.disk.may_sync.clear()
        task = asyncio.create_task(flushing.flusher.run())
        waiting = flushing.wait(flushing.append())
        await until(lambda: flushing.log.busy is not None)
        with pytest.raises(StoreBusy, match=r"the disk has been busy with [0-9]+ bytes for [0-9]+ ms"):
            flushing.append()
        flushing.disk.may_sync.set()
        assert await waiting is FLUSHED
        assert flushing.log.busy is None
        assert await flushing.wait(flushing.append()) is FLUSHED
        await _stop(task)

    asyncio.run(scenario())


def test_where_nobody_waits_a_slow_disk_matters_when_too_much_waits_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = msgspec.structs.replace(EAGER, flush_commit_log_least_pages=0, **IMPATIENT)
        flushing = _Flushing(tmp_path, settings, max_dirty_bytes=2000)
        flushing.disk.may_sync.clear()
        task = asyncio.create_task(flushing.flusher.run())
        flushing.append()
        await until(lambda: flushing.syncs == 1)
        began_s = asyncio.get_running_loop().time()
        await until(lambda: asyncio.get_running_loop().time() - began_s > 0.1)
        assert flushing.log.busy is None
        while flushing.log.log_end - flushing.log.flushed_to <= 2000:
            flushing.append()
        await until(lambda: flushing.log.busy is not None)
        flushing.disk.may_sync.set()
        await until(lambda: flushing.log.busy is None)
        await _stop(task)

    asyncio.run(scenario())


def test_the_time_of_a_flush_counts_from_its_own_beginning(tmp_path: Path) -> None:
    async def scenario() -> None:
        flushing = _Flushing(tmp_path, msgspec.structs.replace(SYNC, os_page_cache_busy_time_out_mills=300))
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(flushing.flusher.run())
        first_s = loop.time()
        assert await flushing.wait(flushing.append()) is FLUSHED
        await until(lambda: loop.time() - first_s > 0.15)
        flushing.disk.may_sync.clear()
        second_s = loop.time()
        waiting = flushing.wait(flushing.append())
        await until(lambda: flushing.log.busy is not None)
        assert loop.time() - second_s >= 0.3
        flushing.disk.may_sync.set()
        assert await waiting is FLUSHED
        await _stop(task)

    asyncio.run(scenario())


def test_another_interval_counts_from_the_next_wait_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_s: list[float | None] = []
    real_wait = asyncio.wait

    def wait(futures: Iterable[asyncio.Future[object]], *, timeout: float | None = None) -> object:
        waits_s.append(timeout)
        return real_wait(futures, timeout=timeout)

    monkeypatch.setattr("tanist.store.flush.asyncio.wait", wait)

    async def scenario() -> None:
        flushing = _Flushing(tmp_path, EAGER)
        run = asyncio.create_task(flushing.flusher.run())
        await until(lambda: 0.001 in waits_s)
        flushing.flusher.use(msgspec.structs.replace(EAGER, flush_interval_commit_log=2))
        await until(lambda: 0.002 in waits_s)
        assert flushing.syncs == 0
        await _stop(run)

    asyncio.run(scenario())
