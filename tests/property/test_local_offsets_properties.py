"""Whatever is persisted in whatever order, and wherever a crash strikes: the file is a whole one."""

import asyncio
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.client.offsets.local_offsets import LocalOffsets
from tanist.client.offsets.offset_file import OffsetFile, encode_offsets
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tests.support.offset_stores import queue_of

QUEUES = [queue_of(number) for number in range(4)]

Table = dict[int, int]
"""Offsets by the numbers of their queues."""


class Crash(OSError):
    """The machine stops here."""


@contextmanager
def crash_at(step: int, kept_ratio: float) -> Generator[None]:
    """Let a write end at its given step: at a sync, or before a file takes the name of another.

    What was not synced then is lost but for a part of it.
    """
    steps_left = step
    fsync, replace = os.fsync, Path.replace

    def strike() -> None:
        nonlocal steps_left
        steps_left -= 1
        if steps_left < 0:
            raise Crash

    def fsync_or_crash(fd: int) -> None:
        try:
            strike()
        except Crash:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                os.ftruncate(fd, int(os.fstat(fd).st_size * kept_ratio))
            raise
        fsync(fd)

    def replace_or_crash(path: Path, target: Path) -> Path:
        strike()
        return replace(path, target)

    with mock.patch.object(os, "fsync", fsync_or_crash), mock.patch.object(Path, "replace", replace_or_crash):
        yield


@dataclass(frozen=True)
class Update:
    queue: MessageQueue
    offset: int
    increase_only: bool


@dataclass(frozen=True)
class Persist:
    """All of these at once."""

    sets: list[set[MessageQueue]]


@dataclass(frozen=True)
class CrashWhilePersisting:
    queues: set[MessageQueue]
    step: int
    kept_ratio: float


@dataclass(frozen=True)
class Restart:
    """The process ends and another begins."""


Event = Update | Persist | CrashWhilePersisting | Restart

_queues = st.sampled_from(QUEUES)
_events = st.one_of(
    st.builds(Update, _queues, st.integers(0, 99), st.booleans()),
    st.builds(Persist, st.lists(st.sets(_queues), min_size=1, max_size=3)),
    st.builds(CrashWhilePersisting, st.sets(_queues), st.integers(0, 9), st.floats(0, 1)),
    st.just(Restart()),
)


class Machine:
    """A consumer's store, what it is to have in memory, and what the file is to hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offsets = LocalOffsets(path)
        self.memory: Table = {}
        self.durable: Table = {}

    async def do(self, event: Event) -> None:
        match event:
            case Update():
                self.update(event)
            case Persist(sets):
                await asyncio.gather(*(self.offsets.persist(queues) for queues in sets))
                self.durable |= self.of_memory(set[MessageQueue]().union(*sets))
            case CrashWhilePersisting():
                await self.crash(event)
            case Restart():
                await self.restart()
        assert self.in_file() == self.durable

    def update(self, event: Update) -> None:
        number, offset = event.queue.queue_id, event.offset
        self.offsets.update(event.queue, QueueOffset(offset), increase_only=event.increase_only)
        self.memory[number] = max(self.memory.get(number, 0), offset) if event.increase_only else offset
        assert self.offsets.in_memory(event.queue) == self.memory[number]

    async def crash(self, event: CrashWhilePersisting) -> None:
        wanted = self.durable | self.of_memory(event.queues)
        with crash_at(event.step, event.kept_ratio):
            await self.offsets.persist(event.queues)
        assert self.in_file() in (self.durable, wanted)
        await self.restart()

    async def restart(self) -> None:
        self.offsets = LocalOffsets(self.path)
        await self.offsets.load()
        self.durable = self.in_file()
        self.memory = dict(self.durable)
        for number, queue in enumerate(QUEUES):
            assert await self.offsets.read_for_rebalance(queue) == self.memory.get(number)

    def of_memory(self, queues: set[MessageQueue]) -> Table:
        return {number: offset for number, offset in self.memory.items() if QUEUES[number] in queues}

    def in_file(self) -> Table:
        """What the next process reads. If there is a file it is whole: no backup is needed."""
        kept = OffsetFile(self.path).read()
        if self.path.exists():
            assert kept.data == encode_offsets(kept.offsets)
        return {queue.queue_id: offset for queue, offset in kept.offsets.items()}


@pytest.mark.behaviour("S4-28")
@settings(deadline=None)
@given(st.lists(_events, max_size=20))
def test_the_file_is_always_one_of_the_whole_states_written(events: list[Event]) -> None:
    async def scenario(path: Path) -> None:
        machine = Machine(path)
        for event in events:
            await machine.do(event)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder) / "offsets.json"))


@pytest.mark.behaviour("S4-28")
def test_every_write_is_synced_before_it_takes_the_name_of_the_file(tmp_path: Path) -> None:
    """A file that takes the name first may be empty after a crash."""
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(fd: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{fd}').resolve().name}")
        fsync(fd)

    def noted_replace(path: Path, target: Path) -> Path:
        done.append(f"{path.name} becomes {target.name}")
        return replace(path, target)

    async def scenario() -> None:
        offsets = LocalOffsets(tmp_path / "offsets.json")
        for offset in (1, 2):
            offsets.update(QUEUES[0], QueueOffset(offset), increase_only=True)
            await offsets.persist(QUEUES)

    with mock.patch.object(os, "fsync", noted_fsync), mock.patch.object(Path, "replace", noted_replace):
        asyncio.run(scenario())
    folder = f"sync {tmp_path.name}"
    main = ["sync offsets.json.tmp", "offsets.json.tmp becomes offsets.json", folder]
    backup = ["sync offsets.json.bak.tmp", "offsets.json.bak.tmp becomes offsets.json.bak", folder]
    assert done == [*main, *backup, *main]
