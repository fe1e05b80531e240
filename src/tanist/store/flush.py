"""Makes the log durable, off the event loop.

SYNC_FLUSH: a send waits until its bytes are on disk. All sends that wait while the disk is busy
share the next flush (group commit), so a slow disk costs latency and not throughput.
ASYNC_FLUSH: nobody waits; the log is flushed by time and by how much is dirty.

A flush that fails is never tried again: all that wait for it fail, and the log takes no more writes.

A flush that lasts too long has the log refuse messages until it is over. They would have to wait behind
it, or would fill the page cache until the kernel holds back whoever writes: the event loop, and with it
everybody.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial

import psutil

from tanist.clock import Clock
from tanist.errors import FlushFailed
from tanist.store.commitlog import CommitLog
from tanist.store.settings import FlushMode, StoreSettings

_log = logging.getLogger(__name__)

_PAGE_BYTES = 4096
_DIRTY_SHARE = 10
"""Where nobody waits for the disk, one part in so many of the memory may wait for it. Linux begins to
write back by itself there, and stops writers at twice as much."""


class FlushOutcome(Enum):
    """What became of bytes that somebody wanted on disk."""

    FLUSHED = "flushed"
    LATE = "late"
    """Not within syncFlushTimeout. They stay written, and are flushed later."""
    FAILED = "failed"
    """The disk refused. They stay written, and nothing more is."""
    CUT = "cut"
    """They were cut from the log before they were durable."""


FlushDone = Callable[[FlushOutcome], None]
"""Told once. It must not raise, for others are told behind it."""


class Flusher:
    """Flushes one log for as long as ``run`` runs."""

    def __init__(
        self, log: CommitLog, settings: StoreSettings, clock: Clock, *, max_dirty_bytes: int | None = None
    ) -> None:
        """``max_dirty_bytes`` may wait for a slow disk under ASYNC_FLUSH; a share of memory by default."""
        self._log = log
        self._settings = settings
        self._clock = clock
        # Log ends only grow between two cuts, so waiters stand in the order in which they are released.
        # The end of each, how often the log had been cut (the end means nothing behind the next cut), its
        # deadline, and whom to tell: plain tuples, for there are many a second.
        self._waiters: deque[tuple[int, int, float, FlushDone]] = deque()
        self._deadline: asyncio.TimerHandle | None = None
        self._last_flush_s = clock.monotonic_s()
        self._flush_began_s: float | None = None
        self._busy_check: asyncio.TimerHandle | None = None
        self._thread: _FlushThread | None = None
        """While ``run`` runs."""
        is_synchronous = settings.flush_disk_type is FlushMode.SYNC_FLUSH
        if max_dirty_bytes is None:
            max_dirty_bytes = psutil.virtual_memory().total // _DIRTY_SHARE
        self._max_dirty_bytes = 0 if is_synchronous else max_dirty_bytes
        self.flush_count = 0

    def use(self, settings: StoreSettings) -> None:
        """Go on with these settings; a wait that has begun keeps its end."""
        self._settings = settings

    def when_flushed(self, end: int, done: FlushDone) -> None:
        """Have ``done`` told when the log is durable up to ``end``, or why it is not after syncFlushTimeout.

        All are told in the order in which they came.
        """
        if self._log.flushed_to >= end and not self._waiters:
            done(FlushOutcome.FLUSHED)
        elif self._log.flush_failure is not None:
            done(FlushOutcome.FAILED)
        else:
            now_s = asyncio.get_running_loop().time()
            deadline_s = now_s + self._settings.sync_flush_timeout / 1000
            self._waiters.append((end, self._log.cut_count, deadline_s, done))
            if self._flush_began_s is None:
                self._begin()
            if self._deadline is None:
                self._watch_deadline()

    def give_up(self) -> None:
        """Tell all who wait that it is too late: nobody will be there when their bytes are on disk."""
        # Not who begins to wait because of that.
        for _ in range(len(self._waiters)):
            self._release(FlushOutcome.LATE)

    async def run(self) -> None:
        """Flush when it is time, until cancelled; what is written then is flushed last."""
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        self._thread = _FlushThread(self._log.flush, partial(loop.call_soon_threadsafe, self._on_flush_ended))
        try:
            await self._run(self._ended)
        except FlushFailed:
            self._fail()
            raise
        finally:
            self._thread.close()
            self._thread = None
            if self._busy_check is not None:
                self._busy_check.cancel()
            self._busy_check = self._flush_began_s = None
            if self._deadline is not None and not self._waiters:
                self._deadline.cancel()
                self._deadline = None

    async def _run(self, ended: asyncio.Future[BaseException]) -> None:
        """Flush what nobody waits for; who does wait begins a flush himself."""
        if self._waiters:
            self._begin()
        try:
            while not ended.done():
                await asyncio.wait([ended], timeout=self._settings.flush_interval_commit_log / 1000)
                if self._flush_began_s is None and self._is_due():
                    self._begin()
        except asyncio.CancelledError:
            self._log.flush()
            self._flushed()
            raise
        raise ended.result()

    def _begin(self) -> None:
        """Have the thread flush. What is written before it begins goes along."""
        if self._thread is None:
            return
        self._flush_began_s = asyncio.get_running_loop().time()
        if self._busy_check is None:
            self._check_busy_at(self._flush_began_s + self._busy_after_s)
        self._thread.flush_once()

    def _on_flush_ended(self, failure: BaseException | None) -> None:
        if self._thread is None:
            return
        if failure is not None:
            self._ended.set_result(failure)
            return
        self._flushed()
        if self._waiters:
            self._begin()

    def _is_due(self) -> bool:
        dirty_bytes = self._log.log_end - self._log.flushed_to
        idle_ms = (self._clock.monotonic_s() - self._last_flush_s) * 1000
        least_bytes = self._settings.flush_commit_log_least_pages * _PAGE_BYTES
        is_synchronous = self._settings.flush_disk_type is FlushMode.SYNC_FLUSH
        is_old = is_synchronous or idle_ms >= self._settings.flush_commit_log_thorough_interval
        return dirty_bytes >= least_bytes or (dirty_bytes > 0 and is_old)

    def _flushed(self) -> None:
        """Release those who have waited for what is durable now."""
        self.flush_count += 1
        self._flush_began_s = None
        if self._log.busy is not None:
            self._log.busy = None
            _log.warning("disk goes on flushed_to=%d", self._log.flushed_to)
        self._last_flush_s = self._clock.monotonic_s()
        while self._waiters:
            end, cut_count, _deadline_s, _done = self._waiters[0]
            if cut_count != self._log.cut_count:
                self._release(FlushOutcome.CUT)
            elif end <= self._log.flushed_to:
                self._release(FlushOutcome.FLUSHED)
            else:
                return

    def _release(self, outcome: FlushOutcome) -> None:
        """Tell the first who waits."""
        self._waiters.popleft()[3](outcome)

    def _watch_deadline(self) -> None:
        # One timer for all. The first who waits runs out first, but for a change of syncFlushTimeout.
        if self._waiters:
            deadline_s = self._waiters[0][2]
            self._deadline = asyncio.get_running_loop().call_at(deadline_s, self._on_deadline, deadline_s)

    def _on_deadline(self, deadline_s: float) -> None:
        self._deadline = None
        # The loop may be a little early.
        now_s = max(deadline_s, asyncio.get_running_loop().time())
        while self._waiters and self._waiters[0][2] <= now_s:
            self._release(FlushOutcome.LATE)
        self._watch_deadline()

    @property
    def _busy_after_s(self) -> float:
        return self._settings.os_page_cache_busy_time_out_mills / 1000

    def _check_busy_at(self, when_s: float) -> None:
        # Set once and not for each flush, of which there may be thousands a second.
        self._busy_check = asyncio.get_running_loop().call_at(when_s, self._check_busy)

    def _check_busy(self) -> None:
        """Have the log refuse messages if the flush that runs now is taking too long."""
        self._busy_check = None
        if self._flush_began_s is None or self._log.busy is not None:
            return
        now_s = asyncio.get_running_loop().time()
        lasts_s = now_s - self._flush_began_s
        if lasts_s < self._busy_after_s:
            self._check_busy_at(self._flush_began_s + self._busy_after_s)
            return
        dirty_bytes = self._log.log_end - self._log.flushed_to
        if dirty_bytes <= self._max_dirty_bytes:
            self._check_busy_at(now_s + self._busy_after_s)
            return
        self._log.busy = f"the disk has been busy with {dirty_bytes} bytes for {lasts_s * 1000:.0f} ms"
        _log.warning("disk is busy, sends are refused reason=%s", self._log.busy)

    def _fail(self) -> None:
        _log.critical("flush failed flushed_to=%d log_end=%d", self._log.flushed_to, self._log.log_end)
        while self._waiters:
            self._release(FlushOutcome.FAILED)


class _FlushThread:
    """Flushes once for each time it is told to, and tells how that ended.

    A send that waits for the disk waits for this hand-over too. So it is a lock and a call: the queue, the
    future and the task of an executor take several times as long.
    """

    def __init__(self, flush: Callable[[], object], ended: Callable[[BaseException | None], object]) -> None:
        self._flush = flush
        self._ended = ended
        self._go = threading.Lock()
        self._go.acquire()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="flush")
        self._thread.start()

    def flush_once(self) -> None:
        """Not again before this one has ended."""
        self._go.release()

    def close(self) -> None:
        """Return when no flush runs any more."""
        self._is_closing = True
        if self._go.locked():
            self._go.release()
        self._thread.join()

    def _work(self) -> None:
        while True:
            self._go.acquire()
            if self._is_closing:
                return
            failure: BaseException | None = None
            try:
                self._flush()
            except BaseException as error:  # It is raised by who waits for the flusher's end.
                failure = error
            self._ended(failure)
