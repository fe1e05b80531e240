"""Producers and consumers that record what they do and see, against any cluster with a name server.

Each message goes out once and says who sent it, so that its fate can be told from all others'. What a
producer heard is taken at its word and no further: an answer that promises less than all, or none at all,
leaves a message's fate unknown.
"""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tanist.admin.asking import Access, asking
from tanist.admin.cluster import topic_route, topic_stats
from tanist.check.history import Acked, Asked, Assigned, Began, Ended, Fault, Held, Log, Outcome, Read, Waited
from tanist.check.recording import Recorder, now_us
from tanist.client import (
    ConnectFailed,
    Consumer,
    Credentials,
    Message,
    MessageQueue,
    MQError,
    NoRoute,
    Producer,
    ReceivedMessage,
    SendFailed,
    SendStatus,
    Start,
    TooBusy,
)
from tanist.client.session.wire import Wire
from tanist.errors import lone_error
from tanist.model.route import MASTER_ID
from tanist.protocol.response_errors import BrokerBusy, FlowControlled, NotMaster

_Answer = TypeVar("_Answer", dict[MessageQueue, int], list[ReceivedMessage])

_NOT_TAKEN = (ConnectFailed, NoRoute, NotMaster, BrokerBusy, FlowControlled, TooBusy)
"""Whoever says so has stored nothing."""
_COMMIT_EVERY_US = 200_000
_PAUSE_S = 0.02
"""After a failure, so that a cluster that is away is not asked without end."""
_PULL_COUNT = 32
_WATCH_S = 0.05
_ASK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done, against whom, and where that is written down."""

    namesrv: str
    folder: Path
    credentials: Credentials | None = None
    topic: str = "tanist-check"
    group: str = "tanist-check-readers"
    producers: int = 4
    consumers: int = 2
    seconds: float | None = None
    """How long to send; without it until the workload is told to end."""
    rate: float = 200.0
    """Messages a second of each producer, if the cluster takes as many."""
    topic_s: float = 10.0
    """How long the cluster may take until it has the topic."""
    drain_s: float = 60.0
    """How long the consumers may take in the end until they have all."""
    timeout_s: float = 3.0
    read_pause_s: float = 0.0
    """How long a consumer takes for a message, so that there is always something left to read."""


@dataclass(slots=True)
class Workload:
    """One run. ``fault`` is for whoever breaks things meanwhile."""

    plan: Plan
    _sent: int = field(default=0, init=False)
    _read: int = field(default=0, init=False)
    _seen: set[tuple[MessageQueue, int]] = field(default_factory=set[tuple[MessageQueue, int]], init=False)

    _has_grown: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_over: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def counts(self) -> tuple[int, int]:
        """How many messages were acknowledged, and read, by now."""
        return self._sent, self._read

    def end(self) -> None:
        """Send no more; what is there is read to its end."""
        self._is_over.set()

    def fault(self, name: str, *, is_over: bool = False, forgets_s: float = 0.0) -> None:
        """Take down that something is broken from now on, or whole again."""
        with Recorder(self.plan.folder / "faults.jsonl") as recorder:
            recorder.write(Fault(now_us(), name, is_over, int(forgets_s * 1e6)))

    async def run(self, on_progress: Callable[[], None] | None = None) -> list[Path]:
        """Send and read until the end, then the rest, then the final log. Returns the history's files.

        Raises NoRoute if the cluster is not there or makes no topics by itself.
        """
        self.plan.folder.mkdir(parents=True, exist_ok=True)
        run_id = secrets.token_hex(4)
        await self._make_topic(f"p-{run_id}-first")
        with lone_error():
            await self._work(run_id, on_progress)
        return sorted(self.plan.folder.glob("*.jsonl"))

    async def _work(self, run_id: str, on_progress: Callable[[], None] | None) -> None:
        async with asyncio.TaskGroup() as group:
            consumers = [
                group.create_task(self._consume(f"c-{number}")) for number in range(self.plan.consumers)
            ]
            asker = group.create_task(self._ask("asker"))
            watch = group.create_task(_tell(on_progress)) if on_progress is not None else None
            if self.plan.seconds is not None:
                asyncio.get_running_loop().call_later(self.plan.seconds, self.end)
            async with asyncio.TaskGroup() as producing:
                for number in range(self.plan.producers):
                    producing.create_task(self._produce(f"p-{run_id}-{number}"))
            await self._drain()
            for task in (*consumers, asker, watch):
                if task is not None:
                    task.cancel()

    async def _make_topic(self, process: str) -> None:
        """Have the first message make the topic, and wait until consumers can find it."""
        deadline_us = now_us() + int(self.plan.topic_s * 1e6)
        with Recorder(self.plan.folder / f"{process}.jsonl") as recorder:
            async with self._producer(process) as producer:
                for number in itertools.count():
                    ended = await self._send(producer, process, f"{process}/{number}", recorder)
                    if ended.outcome is Outcome.OK or now_us() >= deadline_us:
                        break
                    await asyncio.sleep(_PAUSE_S)
        while True:
            try:
                async with self._consumer("first"):
                    return
            except NoRoute:
                if now_us() >= deadline_us:
                    raise
                await asyncio.sleep(_PAUSE_S)

    async def _produce(self, process: str) -> None:
        with Recorder(self.plan.folder / f"{process}.jsonl") as recorder:
            async with self._producer(process) as producer:
                number = 0
                while not self._is_over.is_set():
                    due_us = now_us() + int(1e6 / self.plan.rate)
                    ended = await self._send(producer, process, f"{process}/{number}", recorder)
                    number += 1
                    left_s = (due_us - now_us()) / 1e6
                    await asyncio.sleep(max(left_s, 0.0 if ended.outcome is Outcome.OK else _PAUSE_S))

    def _producer(self, process: str) -> Producer:
        plan = self.plan
        return Producer(
            group="tanist-check-writers",
            namesrv=plan.namesrv,
            credentials=plan.credentials,
            retries=0,
            timeout_s=plan.timeout_s,
            instance=process,
        )

    def _consumer(self, process: str, *, group: str | None = None) -> Consumer:
        plan = self.plan
        return Consumer(
            group=group or plan.group,
            namesrv=plan.namesrv,
            credentials=plan.credentials,
            topics={plan.topic: "*"},
            start=Start.FIRST,
            timeout_s=plan.timeout_s,
            instance=process,
        )

    async def _send(self, producer: Producer, process: str, value: str, recorder: Recorder) -> Ended:
        recorder.write(Began(now_us(), process, value))
        try:
            receipt = await producer.send(Message(self.plan.topic, value.encode()))
        except MQError as error:
            ended = Ended(now_us(), process, value, _outcome(error))
        else:
            if receipt.status is SendStatus.OK:
                self._sent += 1
                queue = _named(receipt.queue)
                ended = Ended(now_us(), process, value, Outcome.OK, queue, receipt.queue_offset)
            else:
                ended = Ended(now_us(), process, value, Outcome.UNKNOWN)
        recorder.write(ended)
        return ended

    async def _consume(self, process: str) -> None:
        with Recorder(self.plan.folder / f"{process}.jsonl") as recorder:
            async with self._consumer(process) as consumer:
                reading = _Reading(self, consumer, process, recorder)
                async for message in consumer:
                    await reading.on_message(message)
                    if self.plan.read_pause_s:
                        await asyncio.sleep(self.plan.read_pause_s)

    async def _ask(self, process: str) -> None:
        """Ask the masters again and again where the queues end, as whoever starts at the end does."""
        with Recorder(self.plan.folder / f"{process}.jsonl") as recorder:
            async with asking(Access(self.plan.credentials)) as wire:
                while True:
                    began_us = now_us()
                    with suppress(MQError):
                        for queue, end in sorted((await self._ends(wire)).items()):
                            recorder.write(Asked(now_us(), process, _named(queue), began_us, end))
                    await asyncio.sleep(_ASK_EVERY_S)

    async def _ends(self, wire: Wire) -> dict[MessageQueue, int]:
        """Where the queues end, as their masters say."""
        route = await topic_route(wire, self.plan.namesrv, self.plan.topic)
        ends: dict[MessageQueue, int] = {}
        for broker in route.broker_datas:
            if (address := broker.broker_addrs.get(MASTER_ID)) is not None:
                stats = await topic_stats(wire, address, self.plan.topic)
                ends |= {queue: found.max_offset for queue, found in stats.offset_table.items()}
        return ends

    async def _drain(self) -> None:
        """Read the final log, and give the consumers time to have all of it."""
        plan = self.plan
        with Recorder(plan.folder / "final.jsonl") as recorder:
            async with (
                self._consumer("final", group=f"{plan.group}-final") as consumer,
                asking(Access(plan.credentials)) as wire,
            ):
                consumer.pause()
                ends = await self._in_time(lambda: self._ends(wire))
                held = [
                    await self._read_log(consumer, queue, end, recorder)
                    for queue, end in sorted(ends.items())
                ]
            with suppress(TimeoutError):
                async with asyncio.timeout(plan.drain_s):
                    while not set().union(*held) <= self._seen:
                        self._has_grown.clear()
                        await self._has_grown.wait()
            recorder.write(Waited(now_us(), plan.group))

    async def _read_log(
        self, consumer: Consumer, queue: MessageQueue, end: int, recorder: Recorder
    ) -> set[tuple[MessageQueue, int]]:
        """Read a queue up to where its master says that it ends, however long an answer takes."""
        held: set[tuple[MessageQueue, int]] = set()
        offset = 0
        while offset < end:
            start = offset
            messages = await self._in_time(
                lambda start=start: consumer.pull(
                    queue, start, max_count=_PULL_COUNT, timeout_s=self.plan.timeout_s
                )
            )
            if not messages:
                break
            for message in messages:
                held.add((queue, message.queue_offset))
                recorder.write(
                    Held(now_us(), "master", _named(queue), message.queue_offset, message.body.decode())
                )
            offset = messages[-1].queue_offset + 1
        recorder.write(Log(now_us(), "master", _named(queue), 0, offset, is_master=True))
        return held

    async def _in_time(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """The first answer that says something. After a fault it may take a while until a master is named."""
        deadline_us = now_us() + int(self.plan.drain_s * 1e6)
        while True:
            try:
                answer = await ask()
            except MQError:
                if now_us() >= deadline_us:
                    raise
            else:
                if answer or now_us() >= deadline_us:
                    return answer
            await asyncio.sleep(_PAUSE_S)

    def took(self, message: ReceivedMessage) -> None:
        """A consumer has a message."""
        self._read += 1
        self._seen.add((message.queue, message.queue_offset))
        self._has_grown.set()


class _Reading:
    """One consumer's part of the history."""

    def __init__(self, workload: Workload, consumer: Consumer, process: str, recorder: Recorder) -> None:
        self._workload = workload
        self._consumer = consumer
        self._process = process
        self._group = workload.plan.group
        self._recorder = recorder
        self._owned: frozenset[MessageQueue] = frozenset()
        self._in_hand: ReceivedMessage | None = None
        self._done: dict[MessageQueue, int] = {}
        """Of each queue, one past the last message that was acknowledged since the last commit."""
        self._committed_us = now_us()

    async def on_message(self, message: ReceivedMessage) -> None:
        """Take down a message, and that the one before it is acknowledged by asking for this one."""
        if self._in_hand is not None:
            self._done[self._in_hand.queue] = self._in_hand.queue_offset + 1
        self._in_hand = message
        self._note_assignment()
        self._recorder.write(
            Read(
                now_us(),
                self._process,
                self._group,
                _named(message.queue),
                message.queue_offset,
                message.body.decode(),
            )
        )
        self._workload.took(message)
        if now_us() - self._committed_us >= _COMMIT_EVERY_US:
            await self._commit()

    def _note_assignment(self) -> None:
        owned = self._consumer.assignment
        for queue in owned - self._owned:
            if queue.topic == self._workload.plan.topic:
                self._recorder.write(Assigned(now_us(), self._process, self._group, _named(queue)))
        self._owned = owned

    async def _commit(self) -> None:
        done, self._done, self._committed_us = self._done, {}, now_us()
        with suppress(MQError):
            await self._consumer.commit()
            for queue, up_to in done.items():
                if queue in self._consumer.assignment:
                    self._recorder.write(Acked(now_us(), self._process, self._group, _named(queue), up_to))


async def _tell(on_progress: Callable[[], None]) -> None:
    while True:
        on_progress()
        await asyncio.sleep(_WATCH_S)


def _outcome(error: MQError) -> Outcome:
    if isinstance(error, SendFailed):
        causes = [cause for _, cause in error.failures]
        is_taken = error.may_be_stored or not all(isinstance(cause, _NOT_TAKEN) for cause in causes)
        return Outcome.UNKNOWN if is_taken else Outcome.REFUSED
    return Outcome.REFUSED if isinstance(error, _NOT_TAKEN) else Outcome.UNKNOWN


def _named(queue: MessageQueue) -> str:
    return f"{queue.topic}@{queue.broker_name}:{queue.queue_id}"
