"""Many of our consumers in one process, told what to do. They note when each of their queues begins anew."""

import asyncio
import logging
from contextlib import AsyncExitStack

import msgspec
import uvloop

from bench.client_steps import Options, answer_steps
from tanist.client import Consumer, MessageQueue, ReceivedMessage, Start

_TIMEOUT_S = 10.0


class Standing(msgspec.Struct, rename="camel"):
    """What the consumers of this process have."""

    queues: int
    handled: int
    moved: int
    last_moved_s: float


class _Begins(logging.Handler):
    """Notes when a queue begins at its first message, as the client's log tells."""

    def __init__(self, begun_s: dict[MessageQueue, float]) -> None:
        super().__init__()
        self._begun_s = begun_s

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("add a new pull request") and isinstance(record.args, tuple):
            _group, queue, next_offset = record.args
            if isinstance(queue, MessageQueue) and next_offset == 0:
                self._begun_s[queue] = record.created


class _Steps:
    """The consumers of this process. They live until its end."""

    def __init__(self, clients: AsyncExitStack) -> None:
        self._clients = clients
        self._consumers: list[Consumer] = []
        self._topic = ""
        self._handled = 0
        self._begun_s: dict[MessageQueue, float] = {}
        tell = logging.getLogger("tanist.client.queues.owned_queues")
        tell.setLevel(logging.INFO)
        tell.addHandler(_Begins(self._begun_s))

    async def do(self, step: str, options: Options) -> Standing | None:
        match step:
            case "start":
                await self._start(options)
            case "commit":
                # What is at its broker already costs nothing.
                await asyncio.gather(*(consumer.commit() for consumer in self._consumers))
                self._begun_s.clear()
            case "standing":
                return self._standing()
            case _:
                raise ValueError(f"unknown step {step}")
        return None

    async def _start(self, options: Options) -> None:
        self._topic = options["topic"]

        async def handle(_message: ReceivedMessage) -> None:
            self._handled += 1

        tasks = await self._clients.enter_async_context(asyncio.TaskGroup())
        for _ in range(options["count"]):
            consumer = Consumer(
                group=options["group"],
                namesrv=options["nameServer"],
                topics={self._topic: "*"},
                start=Start.FIRST,
                timeout_s=_TIMEOUT_S,
            )
            self._consumers.append(await self._clients.enter_async_context(consumer))
            tasks.create_task(consumer.run(handle))

    def _standing(self) -> Standing:
        begun_s = [at_s for queue, at_s in self._begun_s.items() if queue.topic == self._topic]
        owned = [queue for consumer in self._consumers for queue in consumer.assignment]
        return Standing(
            queues=sum(queue.topic == self._topic for queue in owned),
            handled=self._handled,
            moved=len(begun_s),
            last_moved_s=max(begun_s, default=0.0),
        )


async def _main() -> None:
    async with AsyncExitStack() as clients:
        await answer_steps(_Steps(clients).do)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main())
