"""Tanist's consumer in a process of its own that notes what it was given when, as ``Reading.java`` does.

It takes the same steps: ``reader`` begins, ``reader-pace`` says how long each message takes, ``read`` tells
what came.
"""

import asyncio
import time
from contextlib import AsyncExitStack

import uvloop

from bench.client_steps import Options, answer_steps
from tanist.client import Consumer, ReceivedMessage, Start


class _Reader:
    """One consumer at default settings."""

    def __init__(self, pace_ms: int) -> None:
        self.pace_ms = pace_ms
        self.deliveries: list[tuple[int, int, int]] = []

    async def keep(self, message: ReceivedMessage) -> None:
        self.deliveries.append((time.monotonic_ns(), message.queue.queue_id, message.queue_offset))
        await asyncio.sleep(self.pace_ms / 1000)


class _Readers:
    """All consumers of this process, by name."""

    def __init__(self, tasks: asyncio.TaskGroup, clients: AsyncExitStack) -> None:
        self._tasks = tasks
        self._clients = clients
        self._readers: dict[str, _Reader] = {}

    async def do(self, step: str, options: Options) -> list[tuple[int, int, int]] | None:
        if step == "reader":
            return await self._begin(options)
        reader = self._readers[options["name"]]
        match step:
            case "reader-pace":
                reader.pace_ms = options["paceMs"]
                return None
            case "read":
                return reader.deliveries[options["from"] :]
            case _:
                raise ValueError(f"unknown step {step}")

    async def _begin(self, options: Options) -> None:
        reader = self._readers[options["name"]] = _Reader(options["paceMs"])
        consumer = Consumer(
            group=options["group"],
            namesrv=options["nameServer"],
            topics={options["topic"]: "*"},
            start=Start.FIRST,
        )
        await self._clients.enter_async_context(consumer)
        self._tasks.create_task(consumer.run(reader.keep))


async def _main() -> None:
    async with AsyncExitStack() as clients, asyncio.TaskGroup() as tasks:
        await answer_steps(_Readers(tasks, clients).do)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main())
