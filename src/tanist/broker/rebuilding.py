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

from tanist.broker.operating.ha_status import told_log_end
from tanist.broker.state import BrokerState
from tanist.clock import Clock
from tanist.errors import MQError, lone_error
from tanist.store.commitlog import CommitLog
from tanist.store.set_aside import Earlier, aside_folders, drop_aside, set_aside

_log = logging.getLogger(__name__)

_LOOK_S = 0.5

Round = Callable[[socket.socket, "SlaveRounds"], AbstractAsyncContextManager[None]]
"""Begins and ends one round on a port that is bound. It has whoever is asked call ``rebuild``."""


class SlaveRounds:
    """The rounds of one slave, whose store is in ``root``."""

    def __init__(
        self,
        serve: Round,
        bound: socket.socket,
        root: Path,
        clock: Clock,
        *,
        forget_identity: Callable[[], None] | None = None,
    ) -> None:
        """``forget_identity`` has the next round be given another id by the controller, if there is one."""
        self._serve = serve
        self._forget_identity = forget_identity
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
            if self._forget_identity is not None:
                # First: an id with an empty log would be believed to hold what it acked.
                await asyncio.to_thread(self._forget_identity)
            # What an earlier rebuild has set aside was the whole log, and this may be a part of it.
            await asyncio.to_thread(set_aside, self._root, self._clock.now_ms(), earlier=Earlier.KEEP)
        except (MQError, OSError) as error:
            self.failure = str(error)
            _log.error("log is not set aside reason=%s", error)
        else:
            self.failure = None


class StepWatch:
    """Whether a slave is in step, from one look to the next: it holds now what its master had then. Pure.

    Under load it never holds the same as its master. A master of RocketMQ does not tell where its log ends;
    of such a one only quiet tells that there is no more: it sends heartbeats when it has nothing to send.
    """

    def __init__(self, *, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._wanted: int | None = None
        self._log_end = 0
        self._grown_s = 0.0

    def on_look(self, log: CommitLog, *, master_log_end: int | None, now_s: float) -> bool:
        """The slave follows, and this is its log. ``master_log_end`` is None if it is not told."""
        if master_log_end is not None:
            wanted, self._wanted = self._wanted, master_log_end
            return wanted is not None and log.flushed_to >= wanted
        if log.log_end != self._log_end:
            self._log_end, self._grown_s = log.log_end, now_s
        return 0 < log.log_end <= log.flushed_to and now_s - self._grown_s > self._quiet_s

    def on_lost(self) -> None:
        """It does not follow: what was seen does not count any more."""
        self._wanted, self._log_end = None, 0


async def drop_when_in_step(state: BrokerState) -> None:
    """Delete what was set aside when this slave is in step and its log on disk. Runs until cancelled."""
    root, loop = state.store.root, asyncio.get_running_loop()
    watch = StepWatch(quiet_s=1 + state.ha.heartbeat_s)
    while await asyncio.to_thread(aside_folders, root):
        follower = state.replication.follower
        if follower is None or not follower.is_transferring:
            watch.on_lost()
        elif watch.on_look(state.store.log, master_log_end=told_log_end(state), now_s=loop.time()):
            await asyncio.to_thread(drop_aside, root)
        await asyncio.sleep(_LOOK_S)
    await asyncio.Event().wait()
