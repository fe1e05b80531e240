"""What the demo is told with: a cluster, a producer and a consumer that remember, and verdicts."""

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tanist.client.consumer import Consumer
from tanist.client.consuming.subscriptions import Start
from tanist.client.errors import NoRoute
from tanist.client.message import Message, SendStatus
from tanist.client.producer import Producer
from tanist.client.received import ReceivedMessage
from tanist.errors import MQError
from tanist.up.control import Act, ClusterState, Order, find_socket, give_order
from tanist.up.plan import BROKERS, HOST, Mode, Ports

TOPIC, GROUP = "StoryTopic", "story-readers"
_UP_S, _STOP_S, _LOOK_S = 60.0, 30.0, 0.05
_PREFETCHED = 64


class StoryFailed(MQError):
    """The story can not go on; the text says why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the table at the end."""

    promise: str
    measured: str
    is_kept: bool


@dataclass(slots=True)
class Told:
    """What the producer sent and what the consumer got."""

    acked: list[str] = field(default_factory=list[str])
    """The ids of messages that a broker said are safe."""
    unsafe: int = 0
    got: Counter[str] = field(default_factory=Counter[str])
    hold_at: int | None = None
    """When it has got so many the consumer waits for ``go_on``."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def lost(self) -> int:
        return sum(message_id not in self.got for message_id in self.acked)

    @property
    def twice(self) -> int:
        return sum(count - 1 for count in self.got.values())


class Stage:
    """A cluster that ``tanist up`` runs for the story."""

    def __init__(self, home: Path, mode: Mode, ports: Ports) -> None:
        self.home = home
        self._mode = mode
        self.ports = ports
        self.name_server = f"{HOST}:{ports.namesrv}"
        self.brokers = (f"{HOST}:{ports.first}", f"{HOST}:{ports.second}")
        self.stores = tuple(home / mode.value / name for name in BROKERS)

    async def order(self, act: Act, whom: str = "") -> ClusterState:
        return await give_order(find_socket(self.home), Order(act=act, whom=whom))


@asynccontextmanager
async def stage(home: Path, mode: Mode) -> AsyncGenerator[tuple[Stage, float]]:
    """A cluster for a block, and how long it took to come up."""
    began_s = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tanist.cli", "up", "--home", str(home), "--mode", mode.value),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said: list[str] = []
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_UP_S):
            while line := (await process.stdout.readline()).decode(errors="replace"):
                said.append(line.strip())
                if "Ctrl-C stops all" in line:
                    break
            else:
                raise StoryFailed(f"the cluster did not come up: {' '.join(said)}")
        took_s = time.monotonic() - began_s
        ports = msgspec.json.decode((home / f"{mode.value}.ports.json").read_bytes(), type=Ports)
        yield Stage(home, mode, ports), took_s
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()


async def send(producer: Producer, told: Told, count: int) -> None:
    """Send so many messages, many at a time; each counts that is where the settings promise."""
    room = asyncio.Semaphore(64)

    async def one(number: int) -> None:
        async with room:
            message = Message(TOPIC, f"message {number}".encode(), keys=[f"k{number}"])
            receipt = await producer.send(message, timeout_s=60)
        if receipt.status is SendStatus.OK:
            told.acked.append(receipt.message_id)
        else:
            told.unsafe += 1

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(one(number))


@asynccontextmanager
async def reading(name_server: str, told: Told) -> AsyncGenerator[Consumer]:
    """A consumer that notes what it gets, for a block."""
    consumer = Consumer(
        group=GROUP,
        topics={TOPIC: "*"},
        namesrv=name_server,
        start=Start.FIRST,
        # Few, so that what comes after a crash comes from a broker and not from memory.
        prefetch_count=_PREFETCHED,
    )

    async def take(message: ReceivedMessage) -> None:
        if told.hold_at is not None and len(told.got) >= told.hold_at:
            await told.go_on.wait()
        told.got[message.message_id] += 1

    while True:
        try:
            await consumer.__aenter__()
            break
        except NoRoute:
            await asyncio.sleep(_LOOK_S)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(consumer.run(take))
            yield consumer
            running.cancel()
    finally:
        await consumer.__aexit__(None, None, None)


async def seen(what: str, is_so: Callable[[], bool | Awaitable[bool]], *, timeout_s: float = 60.0) -> float:
    """Wait until something is so; how long that took. Raises StoryFailed."""
    began_s = time.monotonic()
    while True:
        answer = is_so()
        if answer if isinstance(answer, bool) else await answer:
            return time.monotonic() - began_s
        if time.monotonic() - began_s > timeout_s:
            raise StoryFailed(f"it was waited {timeout_s:g} s for nothing: {what}")
        await asyncio.sleep(_LOOK_S)


async def tanist(*arguments: str | Path) -> tuple[int, str]:
    """Run a command as a person would; its exit code, and what it said."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tanist.cli", *map(str, arguments)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    text = out.decode(errors="replace")
    return process.returncode or 0, text or err.decode(errors="replace")
