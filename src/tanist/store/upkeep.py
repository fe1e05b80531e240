"""What a running store needs done beside its traffic: checkpoints, the next file, retention."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from tanist.clock import Clock
from tanist.errors import DiskFull, lone_error
from tanist.store.store import MessageStore

_log = logging.getLogger(__name__)

_PREPARE_S = 0.1
"""How often is looked whether the last file is half full."""
_RETRY_S = 1.0


class Upkeep:
    """Looks after one store for as long as ``run`` runs. The disk's work is done off the event loop."""

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._is_clean_asked = False

    async def run(self) -> None:
        """Keep the store in shape until cancelled."""
        with lone_error():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._run_rounds())
                tasks.create_task(self._prepare_files())

    async def _run_rounds(self) -> None:
        next_clean_s = self._next_clean_s()
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="upkeep") as executor:
            while True:
                await asyncio.sleep(self._store.settings.flush_interval_consume_queue / 1000)
                await self._checkpoint(executor)
                await loop.run_in_executor(executor, self._store.log.release)
                if self._clock.monotonic_s() >= next_clean_s:
                    next_clean_s = self._next_clean_s()
                    await self._clean(executor)
                # One round deletes a few files only, so that it ends soon: whoever asked wants all of them.
                while self._is_clean_asked:
                    self._is_clean_asked = await self._clean(executor, is_asked=True) > 0

    async def _prepare_files(self) -> None:
        """Have the next file ready in time, whatever the disk is busy with.

        Half a file may be filled within a second, by a slave that catches up, and to make one takes as long
        as the flush that goes on meanwhile.
        """
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="prepare") as executor:
            while True:
                await asyncio.sleep(_PREPARE_S)
                if self._store.log.needs_next_file() and not await loop.run_in_executor(
                    executor, self._prepare
                ):
                    await asyncio.sleep(_RETRY_S)

    async def _checkpoint(self, executor: ThreadPoolExecutor) -> None:
        try:
            # Ten thousand queues take a while, and their clients do not wait so long for the others.
            for _ in self._store.queues.write_in_turns():
                await asyncio.sleep(0)
            checkpoint = self._store.start_checkpoint()
        except DiskFull as error:
            # Cleaning, which may make room, must not wait for a checkpoint. Until there is one, a crash
            # costs a longer start.
            _log.warning("checkpoint waits for the disk reason=%s", error)
            return
        await asyncio.get_running_loop().run_in_executor(executor, checkpoint.finish)

    def clean_soon(self) -> None:
        """Delete all files that are old enough, whatever hour it is."""
        self._is_clean_asked = True

    async def _clean(self, executor: ThreadPoolExecutor, *, is_asked: bool = False) -> int:
        gone = self._store.start_clean(is_asked=is_asked)
        await asyncio.get_running_loop().run_in_executor(executor, self._store.log.segments.discard, gone)
        self._store.finish_clean(gone)
        return len(gone)

    def _next_clean_s(self) -> float:
        return self._clock.monotonic_s() + self._store.settings.clean_resource_interval / 1000

    def _prepare(self) -> bool:
        """Make the next file; whether there was room for it."""
        try:
            self._store.log.segments.prepare()
        except DiskFull as error:
            # The append that needs the file will say so to its sender; here it is only early.
            _log.warning("next file can not be made yet reason=%s", error)
            return False
        return True
