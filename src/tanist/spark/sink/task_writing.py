"""Sends the rows of one task, in a Python worker: several packets are under way to each queue.

If one fails the broker is asked what it has, and what it lacks is sent again; for half a minute, to whoever
is its master by then. A broker that keeps no marks is sent all that it did not acknowledge, maybe twice.
"""

import asyncio
import functools
import logging
import os
import random
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tanist.client.session.wire import Wire
from tanist.client.settings import local_address
from tanist.errors import MQError, RemotingError, ResponseError
from tanist.model.property_names import UNIQ_KEY, WAIT
from tanist.model.route import MessageQueue
from tanist.model.topics import AUTO_CREATE_TOPIC, RETRY_PREFIX
from tanist.model.writes import WRITE_RUN
from tanist.protocol.batch import decode_batch
from tanist.protocol.bodies.writes import QueueMark, WritePlan, WriteProgress
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.message_id import UniqueIds
from tanist.protocol.response_errors import error_of
from tanist.spark.arrow import RecordBatch
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import WAITS_S
from tanist.spark.rocketmq.offsets import queue_name
from tanist.spark.sink.brokers import Brokers, NoMaster
from tanist.spark.sink.lanes import Lane, Packet, Task
from tanist.spark.sink.options import SinkOptions
from tanist.spark.sink.plans import (
    Counts,
    counts_of,
    make_plan,
    partition_count,
    plan_in_force,
    queue_of_row,
    queues_of,
)
from tanist.spark.sink.rows import rows_of

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_WINDOW = 4
"""Packets under way to one queue."""
_MAX_UNDER_WAY_BYTES = 16 << 20
"""To all queues together."""
_MAX_OPEN_BYTES = 8 << 20
"""Of all packets that are not full yet: with many queues the largest is sent before it is."""
_TIMEOUT_S = 15.0
_REPEAT = "the log has it"
_DEFAULT_QUEUES = "4"
_WAITING = f"{WAIT}\x01true\x02"


class Written(NamedTuple):
    """What a task did."""

    rows: int
    body_bytes: int
    skipped: int
    """Rows that the log had before the task began, and those of packets that came twice."""
    is_exactly_once: bool
    partition_count: int = 0
    """How many partitions of the batch brokers had something of, at least, when the task began."""


@dataclass(slots=True)
class _Queue:
    """One queue and what is under way to it."""

    queue: MessageQueue
    lane: Lane
    keeps_marks: bool
    answers: deque[asyncio.Task[Command]] = field(default_factory=deque[asyncio.Task[Command]])
    failure_count: int = 0
    """Since something was last acknowledged."""


class TaskWriter:
    """Writes what one task is given. Used once, in one event loop."""

    def __init__(self, options: SinkOptions, task: Task, proposed: Counts, wire: Wire) -> None:
        """``proposed`` are the queues that the driver saw: those of the plan, if there is none yet."""
        self._options = options
        self._task = task
        self._proposed = proposed
        self._wire = wire
        self._brokers = Brokers(options, wire, is_there=True)
        self._queues: dict[MessageQueue, _Queue] = {}
        self._order: tuple[MessageQueue, ...] = ()
        address = local_address(options.client_settings.namesrv[0])
        self._ids = UniqueIds(
            address=socket.inet_aton(address) if "." in address else b"\x7f\x00\x00\x01",
            pid=os.getpid(),
            discriminator=random.getrandbits(32),
        )
        self._index = 0
        self._open_bytes = 0
        self._body_bytes = 0
        self._repeat_count = 0
        self._partition_count = 0
        self._began_s = time.monotonic()

    async def open(self) -> None:
        """Find out where this task stands. Raises if that can not be known."""
        told = await _patiently(self._look)
        keepers = {name for name, progress in told.items() if progress is not None}
        if len(keepers) < len(told):
            others = ", ".join(sorted(told.keys() - keepers))
            say_once(
                f"topic {self._options.topic} is written at least once: {others} keep no track of writes, as "
                "brokers of Tanist do; repeats can be dropped by WRITE_ID, see `tanist spark dedup`"
            )
        self._partition_count = partition_count(told.values(), self._task.batch)
        plan = await self._agree(told)
        self._order = queues_of(self._options.topic, counts_of(plan))
        for queue in self._order:
            progress = told.get(queue.broker_name)
            self._queues[queue] = _Queue(
                queue,
                Lane(self._task, queue_name(queue), mark_of(progress, queue.queue_id)),
                keeps_marks=progress is not None,
            )
            if progress is not None and progress.is_ended:
                raise SparkError(f"{self._task}: the query has ended, and takes nothing more")

    async def add(self, batch: RecordBatch) -> None:
        """Take the rows of a batch; many of them are still under way on return."""
        task, key_column = self._task, self._options.sharding_key
        now_ms = int(time.time() * 1000)
        for row in rows_of(batch, key_column, self._options.topic):
            index, self._index = self._index, self._index + 1
            chosen = queue_of_row(
                self._order,
                batch=task.batch,
                partition=task.partition,
                index=index,
                sharding_key=row.sharding_key,
            )
            state = self._queues[chosen]
            made = f"{UNIQ_KEY}\x01{self._ids.next_id(now_ms)}\x02".encode()
            self._body_bytes += len(row.body)
            open_before = state.lane.open_bytes
            packets = state.lane.add(
                index, body=row.body, properties=row.properties, made=made, flag=row.flag
            )
            self._open_bytes += state.lane.open_bytes - open_before
            await self._send(state, packets)
            if self._is_single(state):
                await self._send_open(state)
            if self._open_bytes > _MAX_OPEN_BYTES:
                await self._send_open(max(self._queues.values(), key=lambda one: one.lane.open_bytes))
            if self._options.max_rows_per_s:
                await self._rest(index + 1)

    async def finish(self) -> Written:
        """Send the rest, and wait until all of it is safe."""
        for state in self._queues.values():
            last = state.lane.finish()
            await self._send(state, [] if last is None else [last])
        for state in self._queues.values():
            while state.lane.unacked:
                await self._settle(state)
        if self._repeat_count:
            await self._compare()
        skipped = sum(state.lane.skipped_count for state in self._queues.values()) + self._repeat_count
        return Written(
            self._index,
            self._body_bytes,
            skipped,
            all(state.keeps_marks for state in self._queues.values()),
            self._partition_count,
        )

    async def _compare(self) -> None:
        """Another attempt wrote at the same time: make sure that it had these rows, and no more of them."""
        for state in self._queues.values():
            if state.keeps_marks:
                progress = await _patiently(functools.partial(self._look_again, state))
                if progress is not None and not progress.is_ended:
                    state.lane.agree(mark_of(progress, state.queue.queue_id))

    # Where it stands

    async def _look(self) -> Mapping[str, WriteProgress | None]:
        """What each broker says: those that are there now, and those of the plans that they know."""
        await self._brokers.find()
        told: dict[str, WriteProgress | None] = {}
        waiting = set(self._proposed)
        while waiting:
            names = sorted(waiting)
            query, partition = self._task.query, self._task.partition
            found = await asyncio.gather(*(self._brokers.progress(name, query, partition) for name in names))
            told |= dict(zip(names, found, strict=True))
            plan = plan_in_force(_plans(told.values()), self._task.batch)
            waiting = set[str]() if plan is None else set(counts_of(plan)) - told.keys()
        return told

    async def _agree(self, told: Mapping[str, WriteProgress | None]) -> WritePlan:
        """The plan of this batch, known to all its brokers, and that of the next, if queues came or went."""
        task, known = self._task, _plans(told.values())
        plan = plan_in_force(known, task.batch) or make_plan(self._proposed, task.batch)
        plans = [plan]
        if counts_of(plan) != dict(self._proposed) and all(one.from_batch <= task.batch for one in known):
            plans.append(make_plan(self._proposed, task.batch + 1))
        for name, progress in told.items():
            for one in plans:
                if progress is not None and one not in progress.plans:
                    after = await _patiently(functools.partial(self._brokers.put_plan, name, task.query, one))
                    if one is plan and plan not in after.plans:
                        plan_in_force([*after.plans, plan], task.batch)
                        raise SparkError(f"broker {name} does not take the plan of {task}")
        return plan

    # Under way

    def _is_single(self, state: _Queue) -> bool:
        """Whether every row goes alone: RocketMQ takes no batches for retry topics."""
        return not state.keeps_marks and self._options.topic.startswith(RETRY_PREFIX)

    async def _send_open(self, state: _Queue) -> None:
        """Do not wait until the open packet is full."""
        self._open_bytes -= state.lane.open_bytes
        packet = state.lane.take_packet()
        await self._send(state, [] if packet is None else [packet])

    async def _send(self, state: _Queue, packets: list[Packet]) -> None:
        """Send what the lane has just given away, all of it before anything is waited for: who begins again
        begins with all that is under way."""
        if not packets:
            return
        for packet in packets:
            self._start(state, packet)
        # A turn of the loop sends them.
        await asyncio.sleep(0)
        while len(state.answers) > _WINDOW:
            await self._settle(state)
        while sum(one.lane.unacked_bytes for one in self._queues.values()) > _MAX_UNDER_WAY_BYTES:
            await self._settle(max(self._queues.values(), key=lambda one: one.lane.unacked_bytes))

    def _start(self, state: _Queue, packet: Packet) -> None:
        state.answers.append(asyncio.get_running_loop().create_task(self._exchange(state, packet)))

    async def _exchange(self, state: _Queue, packet: Packet) -> Command:
        address = self._brokers.address_of(state.queue.broker_name)
        return await self._wire.exchange(address, self._request(state, packet), timeout_s=_TIMEOUT_S)

    def _request(self, state: _Queue, packet: Packet) -> Command:
        # The wire names of SendMessageRequestV2.
        ext = {
            "a": self._options.group,
            "b": state.queue.topic,
            "c": AUTO_CREATE_TOPIC,
            "d": _DEFAULT_QUEUES,
            "e": str(state.queue.queue_id),
            "f": "0",
            "g": str(int(time.time() * 1000)),
            "h": "0",
            "i": _WAITING,
            "j": "0",
            "k": "false",
            "m": "true",
            "n": state.queue.broker_name,
        }
        if self._is_single(state):
            (item,) = decode_batch(packet.body)
            ext |= {"h": str(item.flag), "i": bytes(item.properties).decode(), "m": "false"}
            return Command(RequestCode.SEND_MESSAGE_V2, body=bytes(item.body), ext_fields=ext)
        if state.keeps_marks:
            ext[WRITE_RUN] = str(packet.run)
        return Command(RequestCode.SEND_BATCH_MESSAGE, body=packet.body, ext_fields=ext)

    async def _settle(self, state: _Queue) -> None:
        """Wait for the first packet that is under way, and see to it that it is written."""
        try:
            answer = await state.answers[0]
            if answer.code != ResponseCode.SUCCESS:
                raise error_of(answer)
        except (MQError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) or not _may_pass(error):
                raise
            await self._recover(state, error)
            return
        state.answers.popleft()
        if answer.remark == _REPEAT:
            self._repeat_count += len(state.lane.unacked[0].items)
        state.lane.on_acked()
        state.failure_count = 0

    async def _recover(self, state: _Queue, failure: MQError) -> None:
        """Begin again with what the broker lacks."""
        for answer in state.answers:
            answer.cancel()
        await asyncio.gather(*state.answers, return_exceptions=True)
        state.answers.clear()
        if state.failure_count >= len(WAITS_S):
            raise failure
        _log.info("packet is sent again queue=%s reason=%s", queue_name(state.queue), failure)
        await asyncio.sleep(WAITS_S[state.failure_count])
        state.failure_count += 1
        progress = await _patiently(functools.partial(self._look_again, state))
        packets = state.lane.resume(mark_of(progress, state.queue.queue_id)) if state.keeps_marks else None
        for packet in state.lane.unacked if packets is None else packets:
            self._start(state, packet)

    async def _look_again(self, state: _Queue) -> WriteProgress | None:
        await self._brokers.find()
        if not state.keeps_marks:
            return None
        name = state.queue.broker_name
        progress = await self._brokers.progress(name, self._task.query, self._task.partition)
        if progress is None:
            raise SparkError(
                f"broker {name} kept track of writes when {self._task} began and does not any more: another "
                "one has taken its place"
            )
        return progress

    async def _rest(self, count: int) -> None:
        due_s = self._began_s + count / self._options.max_rows_per_s
        if (rest_s := due_s - time.monotonic()) > 0:
            await asyncio.sleep(rest_s)


def mark_of(progress: WriteProgress | None, queue_id: int) -> QueueMark | None:
    """What a broker said of one queue."""
    marks = () if progress is None else progress.marks
    return next((mark for mark in marks if mark.queue_id == queue_id), None)


@functools.cache
def say_once(text: str) -> None:
    """Warn, once a process."""
    _log.warning("%s", text)


async def _patiently(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Ask again for a while if nobody answers, or somebody is busy: another master may take over."""
    for wait_s in WAITS_S:
        try:
            return await ask()
        except MQError as error:
            if not _may_pass(error):
                raise
            await asyncio.sleep(wait_s)
    return await ask()


_STORED_UNSAFE = frozenset(
    {
        int(ResponseCode.FLUSH_DISK_TIMEOUT),
        int(ResponseCode.FLUSH_SLAVE_TIMEOUT),
        int(ResponseCode.SLAVE_NOT_AVAILABLE),
        int(ResponseCode.WRITE_OUT_OF_TURN),
        int(ResponseCode.SYSTEM_BUSY),
    }
)


def _may_pass(error: MQError) -> bool:
    """Whether it is worth to try again."""
    if isinstance(error, ResponseError):
        return error.retriable or error.refresh_route or error.code in _STORED_UNSAFE
    return isinstance(error, RemotingError | NoMaster)


def _plans(told: Iterable[WriteProgress | None]) -> list[WritePlan]:
    return [plan for progress in told if progress is not None for plan in progress.plans]
