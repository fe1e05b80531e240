"""A broker's state with a writer at work, on the event loop of one test and without sockets."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tanist.broker.delays.rules import DelayRules
from tanist.broker.delays.table import DelayTable
from tanist.broker.placing import Placing
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.broker.writer import LogWriter
from tanist.clock import Clock
from tanist.errors import FlushFailed
from tanist.store import FlushMode, StoreSettings
from tanist.store.flush import Flusher
from tests.support.broker_tables import SETTINGS, open_state
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk
from tests.support.messages import SMALL, kill, make_message, open_store

SYNC = msgspec.structs.replace(SMALL, flush_disk_type=FlushMode.SYNC_FLUSH)


@dataclass(slots=True)
class WorkingBroker:
    """What a test drives: the state, the flusher behind its writer, and the disk to break."""

    state: BrokerState
    flusher: Flusher
    disk: FailingDisk
    tasks: asyncio.TaskGroup
    running: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def start_flushing(self) -> None:
        self.running.append(self.tasks.create_task(self._flush()))

    async def _flush(self) -> None:
        with suppress(FlushFailed):
            await self.flusher.run()


@asynccontextmanager
async def working_broker(
    root: Path,
    settings: BrokerSettings = SETTINGS,
    *,
    store_settings: StoreSettings = SMALL,
    clock: Clock | None = None,
) -> AsyncGenerator[WorkingBroker]:
    """For the length of a scenario; then the store is left as a killed process leaves it."""
    clock = clock or FakeClock()
    disk = FailingDisk()
    state = open_state(root, settings, clock=clock)
    state.store.close()
    state.store = open_store(root / "store", store_settings, clock=clock, disk=disk)
    state.placing = Placing(delays=DelayRules.of(settings, store_settings.delay_levels))
    state.delays = DelayTable.open(disk, root / "store", settings, state.store, clock)
    # The first file is made now: a disk that a test breaks later would refuse to make one.
    state.store.append(make_message(topic="Before"))
    state.store.dispatch()
    state.store.flush()
    async with asyncio.TaskGroup() as tasks:
        flusher = Flusher(state.store.log, state.store.settings, clock)
        state.writer = LogWriter(state.store, flusher, pause_s=0)
        broker = WorkingBroker(state, flusher, disk, tasks)
        yield broker
        disk.may_sync.set()
        for task in broker.running:
            task.cancel()
    kill(state.store)
