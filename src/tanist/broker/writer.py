"""Writes to the log on behalf of the handlers, and sees to what follows: dispatch, and the answers that wait.

Dispatch runs once a turn of the event loop, however many sends it had: one addition a queue, one
wake-up of the pulls that wait there.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from tanist.broker.pending import PendingAnswers
from tanist.errors import DiskFull, MQError, NotWritable, ResponseError
from tanist.model.message import Appended, Message
from tanist.protocol.codes import ResponseCode
from tanist.store import MessageStore
from tanist.store.flush import Flusher

_log = logging.getLogger(__name__)

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

    def __init__(self, store: MessageStore, flusher: Flusher) -> None:
        self._store = store
        self.pending = PendingAnswers(store, flusher)
        """Who is answered when a message is safe."""
        self._is_dispatch_due = False
        self._retry: asyncio.TimerHandle | None = None

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

    async def close(self, grace_s: float) -> None:
        """Take no more messages in, and have all who wait answered."""
        if self._store.log.refusal is None:
            self._store.log.refusal = "the broker stops; send to another one"
        if self._retry is not None:
            self._retry.cancel()
        await self.pending.close(grace_s)

    def _dispatch_soon(self) -> None:
        # While the disk refuses, sends do not ask it again each time; the next attempt is on its way.
        if not self._is_dispatch_due and self._retry is None:
            self._is_dispatch_due = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._is_dispatch_due = False
        self._retry = None
        try:
            self._store.dispatch()
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
