"""Tanist's producer in a process of its own, that sends all the time, as ``Stream.java`` does.

It takes the same steps: ``stream`` begins, ``streamed-from`` tells when a broker first acknowledged one.
"""

import asyncio
import time
from contextlib import AsyncExitStack

import uvloop

from bench.client_steps import Options, answer_steps
from tanist.client import Message, Producer, SendStatus
from tanist.errors import MQError

_SENDERS = 4
_PAUSE_S = 0.002
_HOST_DIGITS = 16


class _Stream:
    """The senders, and what was acknowledged: when, and by whom."""

    def __init__(self, tasks: asyncio.TaskGroup, clients: AsyncExitStack) -> None:
        self._tasks = tasks
        self._clients = clients
        self._acknowledged: list[tuple[int, str]] = []
        self._failures = 0

    async def do(self, step: str, options: Options) -> int | None:
        match step:
            case "stream":
                return await self._begin(options["nameServer"], options["topic"])
            case "streamed-from":
                return await self._await_from(options["storeHost"], options["sinceNs"], options["timeoutMs"])
            case _:
                raise ValueError(f"unknown step {step}")

    async def _begin(self, name_server: str, topic: str) -> None:
        producer = Producer(group="stream", namesrv=name_server)
        await self._clients.enter_async_context(producer)
        for _ in range(_SENDERS):
            self._tasks.create_task(self._send(producer, topic))

    async def _send(self, producer: Producer, topic: str) -> None:
        number = 0
        while True:
            number += 1
            try:
                receipt = await producer.send(Message(topic, b"stream-%d" % number))
            except MQError:
                self._failures += 1
            else:
                if receipt.status is SendStatus.OK:
                    self._acknowledged.append((time.monotonic_ns(), receipt.offset_id[:_HOST_DIGITS]))
            await asyncio.sleep(_PAUSE_S)

    async def _await_from(self, store_host: str, since_ns: int, timeout_ms: int) -> int:
        looked = 0
        async with asyncio.timeout(timeout_ms / 1000):
            while True:
                for time_ns, host in self._acknowledged[looked:]:
                    if time_ns >= since_ns and host == store_host:
                        return time_ns
                looked = len(self._acknowledged)
                await asyncio.sleep(_PAUSE_S)


async def _main() -> None:
    async with AsyncExitStack() as clients, asyncio.TaskGroup() as tasks:
        await answer_steps(_Stream(tasks, clients).do)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main())
