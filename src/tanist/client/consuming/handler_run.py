"""Runs a program's handler for messages: so many at a time, each in one of as many tasks."""

import asyncio

from tanist.client.consuming.handling import Delivery, MessageHandler
from tanist.client.errors import ClientClosed


class HandlerRun:
    """One call of ``Consumer.run``, until the consumer is closed or the call is cancelled."""

    def __init__(self, delivery: Delivery, handler: MessageHandler) -> None:
        self.handler = handler
        self._delivery = delivery
        self._workers: list[asyncio.Task[None]] = []

    async def run(self, concurrency: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._workers = [tasks.create_task(self._work()) for _ in range(concurrency)]

    def cancel(self) -> None:
        """End now, handlers that are at work included."""
        for worker in self._workers:
            worker.cancel()

    async def _work(self) -> None:
        delivery, handler = self._delivery, self.handler
        # A handler may end its work although it is cancelled: its message counts, and is the last one.
        while not _is_cancelled():
            try:
                taken = delivery.take_now() or await delivery.take()
            except ClientClosed:
                return
            try:
                await handler(taken[1])
            except Exception as error:
                delivery.failed(taken, error)
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and not _is_cancelled():
                    # Something that the handler waited for was cancelled: that is its own affair.
                    delivery.failed(taken, error)
                    continue
                # Whoever works on messages next gets this one.
                delivery.put_again(taken)
                raise
            else:
                delivery.done(taken)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
