"""A slave whose links do not work, over sockets."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tanist.clock import SystemClock
from tanist.errors import ConfigError, NotWritable
from tanist.ha.acceptor import Acceptor, Master
from tanist.ha.follower import Follower, FollowerState, Slave
from tanist.ha.replicas import ReplicaTable
from tanist.ha.settings import HaSettings
from tanist.remoting import bind_port
from tanist.store import MessageStore
from tanist.store.flush import FlushOutcome
from tests.support.conditions import until
from tests.support.links import KEYS
from tests.support.messages import make_message, open_store


def _make_follower(store: MessageStore, *, refuses: bool = False) -> Follower:
    def append(log_offset: int, body: memoryview) -> int:
        if refuses:
            raise NotWritable("the disk is full")
        return store.append_raw(log_offset, body)

    return Follower(
        Slave(
            store=store,
            keys=KEYS,
            settings=HaSettings(),
            broker_id=1,
            append=append,
            when_flushed=lambda _end, done: done(FlushOutcome.FLUSHED),
            sink=None,
            clock=SystemClock(),
        )
    )


@asynccontextmanager
async def _running(follower: Follower) -> AsyncGenerator[asyncio.Task[None]]:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(follower.run())
        yield running
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def _master(store: MessageStore) -> AsyncGenerator[str]:
    """A master that serves this store; its address."""
    bound = bind_port("127.0.0.1", 0)
    store.make_incarnation(b"i" * 16)
    acceptor = Acceptor(
        Master(
            store=store,
            keys=KEYS,
            settings=HaSettings(),
            replicas=ReplicaTable(fallbehind_max_bytes=1 << 20),
            on_replicas=lambda: None,
            make_feed=None,
            clock=SystemClock(),
        )
    )
    await acceptor.start(bound)
    try:
        yield f"127.0.0.1:{bound.getsockname()[1]}"
    finally:
        await acceptor.close()


@pytest.mark.parametrize(
    "address", ["no port", "127.0.0.1:port", "127.0.0.1:99999999", f"{'a' * 64}.b:10912", "a..b:10912", ":1"]
)
def test_an_address_that_is_none_is_a_failure_like_others_and_the_next_one_is_tried(
    tmp_path: Path, address: str
) -> None:
    async def run() -> None:
        with open_store(tmp_path / "m") as log, open_store(tmp_path / "s") as store:
            follower = _make_follower(store)
            follower.use_master(address)
            async with _master(log) as good, _running(follower) as running:
                await until(lambda: follower.status.failure is not None or running.done())
                assert not running.done()
                follower.use_master(good)
                await until(lambda: follower.is_transferring)

    asyncio.run(run())


@pytest.mark.parametrize("address", ["10.0.0.7", "10.0.0.7:", "10.0.0.7:0", ":10912", "10.0.0.7:65536"])
def test_a_setting_that_is_no_address_stops_the_start(address: str) -> None:
    with pytest.raises(ConfigError, match="haMasterAddress"):
        HaSettings(ha_master_address=address)


def test_a_slave_whose_links_end_as_soon_as_they_work_calls_less_and_less_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        with open_store(tmp_path / "m") as log, open_store(tmp_path / "s") as store:
            log.append(make_message())
            follower = _make_follower(store, refuses=True)
            async with _master(log) as address, _running(follower):
                follower.use_master(address)
                await until(lambda: follower.status.failure is not None and _taken_count(caplog) == 4)
                assert follower.status.state is FollowerState.PAUSED
                # After 50, 100 and 200 ms at most. Had it begun anew each time, the next would come in 50.
                assert follower._backoff._step_s >= 0.4

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    # The reason stays the same, and is told once.
    assert sum("are not appended" in record.getMessage() for record in caplog.records) == 1


def _taken_count(caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.getMessage().startswith("following master") for record in caplog.records)
