"""A master's port and a slave's follower, each on a store of its own and without the brokers around them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from tanist.clock import SystemClock
from tanist.errors import NotWritable
from tanist.ha.acceptor import Acceptor, Master
from tanist.ha.follower import Follower, Slave
from tanist.ha.notes import MasterNotes, SlaveNotes
from tanist.ha.replicas import ReplicaTable
from tanist.ha.settings import HaSettings
from tanist.remoting import bind_port
from tanist.store import MessageStore
from tanist.store.flush import FlushOutcome
from tests.support.links import INCARNATION, KEYS


def make_follower(
    store: MessageStore,
    settings: HaSettings | None = None,
    *,
    broker_id: int = 1,
    refuses: bool = False,
    refuses_cuts: bool = False,
    epoch: int = 0,
    ask_if_rocketmq: Callable[[], Awaitable[bool]] | None = None,
    notes: SlaveNotes | None = None,
) -> Follower:
    """A slave, which may find its disk full. With an epoch a controller told it of its master."""

    def append(log_offset: int, body: memoryview) -> int:
        if refuses:
            raise NotWritable("the disk is full")
        return store.append_raw(log_offset, body)

    async def truncate_to(log_offset: int) -> None:
        if refuses_cuts:
            raise NotWritable("the disk is full")
        store.truncate_to(log_offset)

    def confirm_to(log_offset: int) -> None:
        store.dispatcher.confirmed_to = log_offset

    return Follower(
        Slave(
            store=store,
            keys=KEYS,
            settings=settings or HaSettings(),
            broker_id=broker_id,
            append=append,
            truncate_to=truncate_to,
            begin_epoch=store.follow_epoch,
            confirm_to=confirm_to,
            when_flushed=lambda _end, done: done(FlushOutcome.FLUSHED),
            sink=None,
            clock=SystemClock(),
            epoch=epoch,
            ask_if_rocketmq=ask_if_rocketmq,
            notes=notes,
        )
    )


@asynccontextmanager
async def following(follower: Follower) -> AsyncGenerator[asyncio.Task[None]]:
    """Have it run while the block lasts."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(follower.run())
        yield running
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def serving_log(
    store: MessageStore,
    settings: HaSettings | None = None,
    *,
    epoch: int = 0,
    own_id: int = 0,
    confirmed_to: Callable[[], int] | None = None,
    on_newer_epoch: Callable[[int], None] | None = None,
    port: int = 0,
    notes: MasterNotes | None = None,
) -> AsyncGenerator[tuple[str, Acceptor]]:
    """A master's port that serves this store, and its address."""
    bound = bind_port("127.0.0.1", port)
    store.make_incarnation(INCARNATION)
    acceptor = Acceptor(
        Master(
            store=store,
            keys=KEYS,
            settings=settings or HaSettings(),
            replicas=ReplicaTable(fallbehind_max_bytes=1 << 20),
            on_replicas=lambda: None,
            make_feed=None,
            clock=SystemClock(),
            epoch=epoch,
            own_id=own_id,
            confirmed_to=confirmed_to,
            on_newer_epoch=on_newer_epoch,
            notes=notes,
        )
    )
    await acceptor.start(bound)
    try:
        yield f"127.0.0.1:{bound.getsockname()[1]}", acceptor
    finally:
        await acceptor.close()


def taken_count(caplog: pytest.LogCaptureFixture) -> int:
    """How often slaves of this process were let in, as they told."""
    return sum(record.getMessage().startswith("following master") for record in caplog.records)
