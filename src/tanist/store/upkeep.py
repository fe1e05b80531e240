"""What a running store needs done beside its traffic: checkpoints, the next file, retention."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from tanist.clock import Clock
from tanist.errors import DiskFull
from tanist.store.store import MessageStore

_log = logging.getLogger(__name__)


class Upkeep:
    """Looks after one store for as long as ``run`` runs. The disk's work is done off the event loop."""

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Keep the store in shape until cancelled."""
        settings = self._store.settings
        next_clean_s = self._clock.monotonic_s() + settings.clean_resource_interval / 1000
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="upkeep") as executor:
            while True:
                await asyncio.sleep(settings.flush_interval_consume_queue / 1000)
                await loop.run_in_executor(executor, self._store.start_checkpoint().finish)
                if self._store.log.is_tail_half_full():
                    await loop.run_in_executor(executor, self._prepare)
                if self._clock.monotonic_s() >= next_clean_s:
                    next_clean_s = self._clock.monotonic_s() + settings.clean_resource_interval / 1000
                    gone = self._store.start_clean()
                    await loop.run_in_executor(executor, self._store.log.segments.discard, gone)
                    self._store.finish_clean(gone)

    def _prepare(self) -> None:
        try:
            self._store.log.segments.prepare()
        except DiskFull as error:
            # The append that needs the file will say so to its sender; here it is only early.
            _log.warning("next file can not be made yet reason=%s", error)
