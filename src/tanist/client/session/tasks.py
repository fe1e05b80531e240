"""The tasks of one client: they have one owner, and all are over when it is closed."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

_log = logging.getLogger(__name__)


async def wait_at_most(timeout_s: float, event: asyncio.Event) -> None:
    """Go on when the event is set, and after so long in any case."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


class OwnedTasks:
    """Background work of a client. A task that fails is a mistake of ours: it is logged, the others go on."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Begin ``work``; it is cancelled by ``close``, and at once if that is over."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        if self._is_closed:
            task.cancel()
        return task

    async def close(self) -> None:
        """Cancel all and wait until they are over, those that one of them begins meanwhile included."""
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        self._is_closed = True

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("client task failed task=%s", task.get_name(), exc_info=error)
