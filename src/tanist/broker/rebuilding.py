"""Serves a slave in rounds: to be filled anew it ends, sets its log aside, and begins with an empty one.

    serve  ->  asked to rebuild  ->  end, set aside  ->  serve  ->  in step: drop what was set aside

All rounds are one task's, for what a round begins it must also end. Whoever waits outside notices nothing,
and whoever connects meanwhile waits: the port stays taken.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path

from tanist.broker.state import BrokerState
from tanist.clock import Clock
from tanist.errors import MQError, lone_error
from tanist.store.set_aside import Earlier, aside_folders, drop_aside, set_aside

_log = logging.getLogger(__name__)

_LOOK_S = 0.5

Round = Callable[[socket.socket, "SlaveRounds"], AbstractAsyncContextManager[None]]
"""Begins and ends one round on a port that is bound. It has whoever is asked call ``rebuild``."""


class SlaveRounds:
    """The rounds of one slave, whose store is in ``root``."""

    def __init__(self, serve: Round, bound: socket.socket, root: Path, clock: Clock) -> None:
        self._serve = serve
        self._bound = bound
        self._root = root
        self._clock = clock
        self._kept = ExitStack()
        self._over = asyncio.Event()
        self._is_stopping = False
        self.failure: str | None = None
        """Why the log was not set aside when that was last tried."""

    def rebuild(self) -> None:
        """End this round, set the log aside, and begin the next round."""
        if self._over.is_set():
            return
        self._bound = self._kept.enter_context(self._bound.dup())
        self._over.set()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve from the beginning of the block to its end, in however many rounds."""
        with self._kept, lone_error():
            async with asyncio.TaskGroup() as tasks:
                begun = asyncio.Event()
                tasks.create_task(self._run(begun))
                # If the first round fails instead, its error ends this wait.
                await begun.wait()
                try:
                    yield
                finally:
                    self._is_stopping = True
                    self._over.set()

    async def _run(self, begun: asyncio.Event) -> None:
        while True:
            async with self._serve(self._bound, self):
                begun.set()
                await self._over.wait()
            if self._is_stopping:
                return
            await self._set_aside()
            self._over.clear()

    async def _set_aside(self) -> None:
        """What can not be set aside stays, and is served again: an old log is better than none."""
        try:
            # What an earlier rebuild has set aside was the whole log, and this may be a part of it.
            await asyncio.to_thread(set_aside, self._root, self._clock.now_ms(), earlier=Earlier.KEEP)
        except (MQError, OSError) as error:
            self.failure = str(error)
            _log.error("log is not set aside reason=%s", error)
        else:
            self.failure = None


async def drop_when_in_step(state: BrokerState) -> None:
    """Delete what was set aside when this slave holds its master's log on disk. Runs until cancelled.

    In step is who holds now what the master had a moment ago: under load it is never quite the same.
    """
    root, wanted = state.store.root, None
    while await asyncio.to_thread(aside_folders, root):
        if wanted is not None and state.store.log.flushed_to >= wanted:
            await asyncio.to_thread(drop_aside, root)
        follower = state.replication.follower
        wanted = None
        if follower is not None and follower.is_transferring:
            wanted = follower.status.master_log_end
        await asyncio.sleep(_LOOK_S)
    await asyncio.Event().wait()
