"""Writes to the log on behalf of the handlers, and sees to what follows: dispatch, and the disk.

Dispatch runs once a turn of the event loop, however many sends it had: one addition a queue, one
wake-up of the pulls that wait there. What a slave gets from its master may be more than a turn should take:
the rest comes in the next ones.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tanist.errors import DiskFull, FlushFailed, MQError, NotWritable, ResponseError
from tanist.model.message import Appended, Message
from tanist.protocol.codes import ResponseCode
from tanist.store import FlushMode, MessageStore
from tanist.store.flush import Flusher

_log = logging.getLogger(__name__)

Answer = Callable[[ResponseCode], None]

MAX_WAITING_SENDS = 10_000
"""Sends that may wait for the disk, as many as RocketMQ's queue of sends takes by default."""
_RETRY_S = 1.0


@contextmanager
def told_to_client() -> Generator[None]:
    """What the disk refuses, a client is told in the words that it knows."""
    try:
        yield
    except (NotWritable, DiskFull, OSError) as error:
        raise ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, str(error)) from error


class LogWriter:
    """The one writer of a broker's log."""

    def __init__(self, store: MessageStore, flusher: Flusher, tasks: asyncio.TaskGroup) -> None:
        self._store = store
        self._flusher = flusher
        self._tasks = tasks
        self._dispatch_due: asyncio.Handle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._waiting_count = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.is_synchronous = store.settings.flush_disk_type is FlushMode.SYNC_FLUSH
        """Whether a send waits for the disk unless it says otherwise."""

    @property
    def waiting_count(self) -> int:
        """How many sends wait for the disk."""
        return self._waiting_count

    @property
    def is_overloaded(self) -> bool:
        """Whether so many sends wait for the disk that no more should join them."""
        return self._waiting_count >= MAX_WAITING_SENDS

    def append(self, message: Message) -> Appended:
        appended = self._store.append(message)
        self._dispatch_soon()
        return appended

    def append_laid(self, queue: tuple[str, int], place: Appended, records: bytes) -> bool:
        """Append what was laid out for the log's end; False, and nothing is done, if it can not go there."""
        if not self._store.append_laid(queue, place, records):
            return False
        self._dispatch_soon()
        return True

    def append_packed(self, batch: Message) -> Appended:
        appended = self._store.append_packed(batch)
        self._dispatch_soon()
        return appended

    def append_raw(self, log_offset: int, data: bytes | memoryview) -> int:
        """Append bytes of the master's log, which go to our end; the new end."""
        log_end = self._store.append_raw(log_offset, data)
        self._dispatch_soon()
        return log_end

    def when_flushed(self, end: int, answer: Answer) -> None:
        """Call ``answer`` with what became of the log up to ``end``: flushed, or not in time."""
        self._waiting_count += 1
        self._idle.clear()
        self._tasks.create_task(self._answer_when_flushed(end, answer))

    async def close(self, grace_s: float) -> None:
        """Take no more messages in, and let the sends that wait for the disk be answered."""
        if self._store.log.refusal is None:
            self._store.log.refusal = "the broker stops; send to another one"
        if self._retry is not None:
            self._retry.cancel()
        try:
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("sends still wait for the disk count=%d", self._waiting_count)
        if self._dispatch_due is not None:
            # The store indexes the rest as it closes, and can not be asked afterwards.
            self._dispatch_due.cancel()

    async def _answer_when_flushed(self, end: int, answer: Answer) -> None:
        try:
            is_flushed = await self._flusher.wait(end)
            code = ResponseCode.SUCCESS if is_flushed else ResponseCode.FLUSH_DISK_TIMEOUT
        except FlushFailed:
            code = ResponseCode.FLUSH_DISK_TIMEOUT
        except NotWritable:
            # The message was cut from the log again: it is not stored, and may be sent once more.
            code = ResponseCode.SERVICE_NOT_AVAILABLE
        finally:
            self._waiting_count -= 1
            if not self._waiting_count:
                self._idle.set()
        answer(code)

    def _dispatch_soon(self) -> None:
        # While the disk refuses, sends do not ask it again each time; the next attempt is on its way.
        if self._dispatch_due is None and self._retry is None:
            self._dispatch_due = asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatch_due = self._retry = None
        try:
            if self._store.dispatch_some():
                self._dispatch_soon()
        except (DiskFull, OSError) as error:
            # The messages are safe in the log, but consumers can not see them before this succeeds.
            _log.warning(
                "dispatch waits for the disk dispatched_to=%d reason=%s",
                self._store.dispatcher.dispatched_to,
                error,
            )
            # Again by itself: no further send may come, least of all on a full disk.
            self._retry = asyncio.get_running_loop().call_later(_RETRY_S, self._dispatch)
        except MQError as error:
            self._store.log.refusal = f"the log can not be read back: {error}"
            _log.critical("dispatch failed reason=%s", error)
