"""Tanist's clients in a process of their own, told what to do as the Java clients of the tests are.

One step a line of input, as JSON, and one answer a line of output. Steps and answers are those of
``Load.java``, so that both processes measure the same. They say how much CPU time the whole process took
while the load ran: starting and connecting do not count.
"""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import msgspec
import uvloop

from tanist.client import Consumer, Message, Producer, ReceivedMessage, Start

_DRAIN_LIMIT_S = 60.0

Options: TypeAlias = dict[str, Any]


class Load(msgspec.Struct, rename="camel"):
    """What came of one step."""

    count: int
    rate: float
    cpu_seconds: float


class _Meter:
    """Wall and CPU time from ``begin`` on."""

    def begin(self) -> None:
        self._cpu_s = time.process_time()
        self._began_s = time.perf_counter()

    def load(self, count: int) -> Load:
        taken_s = time.perf_counter() - self._began_s
        return Load(count=count, rate=count / taken_s, cpu_seconds=time.process_time() - self._cpu_s)


class _Steps:
    """The clients of this process. They live until its end."""

    def __init__(self, clients: AsyncExitStack) -> None:
        self._clients = clients
        self._producers: dict[str, Producer] = {}

    async def do(self, step: str, options: Options) -> Load | None:
        match step:
            case "producer":
                return await self._start_producer(options)
            case "load":
                return await self._send(options)
            case "drain":
                return await _drain(options)
            case "rewind":
                return await _rewind(options)
            case _:
                raise ValueError(f"unknown step {step}")

    async def _start_producer(self, options: Options) -> None:
        producer = Producer(group=options["group"], namesrv=options["nameServer"])
        self._producers[options["name"]] = await self._clients.enter_async_context(producer)

    async def _send(self, options: Options) -> Load:
        """Send until the time is over; ``inFlight`` sends are on their way at any time."""
        producer = self._producers[options["name"]]
        topic: str = options["topic"]
        # What can be compressed would be.
        body = random.Random(1).randbytes(options["bodyBytes"])
        meter = _Meter()
        meter.begin()
        end_s = time.perf_counter() + options["durationMs"] / 1000

        async def send_in_turn() -> int:
            count = 0
            while time.perf_counter() < end_s:
                await producer.send(Message(topic, body))
                count += 1
            return count

        in_flight: int = options["inFlight"]
        if in_flight > 1:
            return meter.load(sum(await asyncio.gather(*(send_in_turn() for _ in range(in_flight)))))
        return meter.load(await send_in_turn())


async def _drain(options: Options) -> Load:
    """Read a backlog with a new group; counted from the first message on, when the queues are assigned."""
    consumer = Consumer(
        group=options["group"],
        namesrv=options["nameServer"],
        topics={options["topic"]: "*"},
        start=Start.FIRST,
    )
    read = _read_by_handler if options["isByHandler"] else _read_by_iterator
    async with asyncio.timeout(_DRAIN_LIMIT_S), consumer:
        return await read(consumer, options["count"])


async def _rewind(options: Options) -> None:
    """Put a new group at the beginning of a topic, for clients that begin at its end."""
    topic, queue_count = options["topic"], options["queues"]
    consumer = Consumer(
        group=options["group"], namesrv=options["nameServer"], topics={topic: "*"}, start=Start.FIRST
    )
    async with asyncio.timeout(_DRAIN_LIMIT_S), consumer:
        # Nothing tells when the last queue is there.
        while len(queues := [queue for queue in consumer.assignment if queue.topic == topic]) < queue_count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for queue in queues:
            await consumer.seek(queue, 0)
        await consumer.commit()


async def _read_by_iterator(consumer: Consumer, wanted: int) -> Load:
    meter = _Meter()
    count = 0
    async for _message in consumer:
        if not count:
            meter.begin()
        count += 1
        if count == wanted:
            break
    return meter.load(count)


async def _read_by_handler(consumer: Consumer, wanted: int) -> Load:
    meter = _Meter()
    count = 0
    load: asyncio.Future[Load] = asyncio.get_running_loop().create_future()

    async def handle(_message: ReceivedMessage) -> None:
        nonlocal count
        if not count:
            meter.begin()
        count += 1
        if count == wanted:
            load.set_result(meter.load(count))

    running = asyncio.ensure_future(consumer.run(handle))
    try:
        return await load
    finally:
        running.cancel()
        await asyncio.wait([running])


async def _main() -> None:
    async with AsyncExitStack() as clients:
        await answer_steps(_Steps(clients).do)


async def answer_steps(do: Callable[[str, Options], Awaitable[Any]]) -> None:
    """Do what the lines of the input say until it ends."""
    async for line in _lines():
        options: Options = msgspec.json.decode(line)
        try:
            answer: Options = {"result": await do(options.pop("do"), options)}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


async def _lines() -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        yield line


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main())
