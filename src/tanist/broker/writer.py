"""Writes to the log on behalf of the handlers, and sees to what follows: dispatch, and the answers that wait.

Slaves are sent to once a turn of the event loop, however many sends it had: one frame a slave. Dispatch
runs at once too, but after a run that had several messages not again before a moment has passed: while the
log grows all the time a queue gets one addition for many messages, and the pulls that wait there one
wake-up. A message that comes alone does not wait, nor does whoever asks meanwhile (``catch_up``). While
nobody waits for messages there is no hurry at all, and dispatch rests for longer, after one message too.
What a slave gets from its master may be more than a turn should take: the rest is dispatched in the next
ones.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from tanist.broker.pending import MAX_WAITING_SENDS, PendingAnswers
from tanist.broker.reign import Reign
from tanist.errors import DiskFull, DivergedLog, MQError, NotWritable, ResponseError
from tanist.model.message import Appended, Message
from tanist.protocol.codes import ResponseCode
from tanist.protocol.record import MIN_RECORD_BYTES
from tanist.store import MessageStore
from tanist.store.flush import Flusher

_log = logging.getLogger(__name__)

_RETRY_S = 1.0
_PAUSE_S = 0.001
"""Between two runs of dispatch while messages come in: as long as RocketMQ's rests after each."""
_UNHURRIED_PAUSES = 5
"""So many of them where nobody waits for messages, and on a slave: hardly anybody reads there, and a master
waits for its acks."""
_MUCH_BYTES = 1 << 20
_CATCHING_UP_S = 0.04
"""A slave that gets as much between two parts of its dispatch is catching up. To hold the log comes first, so
the next part waits for this long."""


@contextmanager
def told_to_client() -> Generator[None]:
    """What the disk refuses, a client is told in the words that it knows."""
    try:
        yield
    except (NotWritable, DiskFull, OSError) as error:
        raise ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, str(error)) from error


class LogWriter:
    """The one writer of a broker's log."""

    def __init__(self, store: MessageStore, flusher: Flusher, *, pause_s: float = _PAUSE_S) -> None:
        """``pause_s`` is how long dispatch rests at least after each run."""
        self._store = store
        self._pause_s = pause_s
        self.pending = PendingAnswers(store, flusher)
        """Who is answered when a message is safe."""
        self.on_appended: list[Callable[[], None]] = []
        """Called once a turn of the event loop in which the log has grown."""
        self.on_grown: list[Callable[[], None]] = []
        """Called after those, whatever the broker's role is."""
        self.on_cut: list[Callable[[int], None]] = []
        """Called before the log is cut, with how many whole records it loses at most."""
        self.is_awaited: Callable[[], bool] = lambda: True
        """Whether somebody may wait for a message to come into its queue."""
        self.reign: Reign | None = None
        """As master under a controller: what may be acknowledged and shown."""
        self._loop = asyncio.get_running_loop()
        self._due_turn: asyncio.Handle | None = None
        self._due_dispatch: asyncio.Handle | None = None
        self._has_grown = False
        """Whether the log has grown since dispatch ran, or more of it is confirmed."""
        self._is_failing = False
        """Whether dispatch failed when it last ran, and is not to be tried again with every request."""
        self._is_filling = False
        """Whether this is a slave that has got so much at once that dispatch takes many turns."""
        self._is_closed = False
        self._append_count = 0
        """How often the log has grown since dispatch ran."""
        self._dispatched_s = -math.inf
        """When dispatch last had so much to do that it rests."""
        self._raw_bytes = 0
        self._is_barred = False
        """Under a controller: whether this broker is no master, and only appends what its master wrote."""
        if store.dispatcher.is_behind:
            # The disk was full when the store was opened.
            self._due_dispatch = self._loop.call_soon(self._dispatch)

    def append(self, message: Message) -> Appended:
        """Append one message. Raises NotWritable if this broker may not, also to its own services."""
        self.check_right()
        appended = self._store.append(message)
        self._turn_soon()
        return appended

    def append_laid(self, queue: tuple[str, int], place: Appended, records: bytes) -> bool:
        """Append what was laid out for the log's end; False, and nothing is done, if it can not go there."""
        if self._is_barred or not self._store.append_laid(queue, place, records):
            return False
        self._turn_soon()
        return True

    @property
    def room(self) -> int:
        """How many messages may be taken now without another look at each; with 0 each is looked at."""
        if self._is_barred:
            return 0
        return self.pending.room if self.pending.is_on else MAX_WAITING_SENDS

    def on_taken(self, count: int, begin_wait: Callable[[], None] | None = None) -> None:
        """So many messages were written into the log, by who had room for them: all that this turn brings.

        ``begin_wait`` has their senders wait. That is done while the slaves work on them already.
        """
        self._has_grown = True
        self._append_count += count
        is_due = self._due_turn is not None
        try:
            if not is_due:
                self._tell_grown()
        finally:
            # Whatever a listener meets: who is not among those who wait is never answered.
            if begin_wait is not None:
                begin_wait()
        if not is_due:
            self._follow_up()

    def append_packed(self, batch: Message) -> Appended:
        self.check_right()
        appended = self._store.append_packed(batch)
        self._turn_soon()
        return appended

    async def close(self, grace_s: float) -> None:
        """Take no more messages in, and have all who wait answered."""
        if self._store.log.refusal is None:
            self._store.log.refusal = "the broker stops; send to another one"
        await self.pending.close(grace_s)
        self._is_closed = True
        if self._due_dispatch is not None:
            # The store indexes the rest as it closes, and can not be asked afterwards.
            self._due_dispatch.cancel()
            self._due_dispatch = None
        if self._due_turn is not None:
            self._due_turn.cancel()
            self._tell_grown()

    def append_raw(self, log_offset: int, data: memoryview) -> int:
        """Append bytes of the master's log at our end; the new end."""
        log_end = self._store.append_raw(log_offset, data)
        self.on_raw_taken(len(data))
        return log_end

    def on_raw_taken(self, size_bytes: int) -> None:
        """So many bytes of the master's log were written at our end."""
        self._raw_bytes += size_bytes
        self._turn_soon()

    def catch_up(self) -> None:
        """Dispatch what waits for that no longer than it has to: who is told of a message finds it."""
        dispatcher, before = self._store.dispatcher, -1
        while dispatcher.is_behind and dispatcher.dispatched_to > before:
            if self._is_failing or self._is_filling or self._is_closed:
                return
            before = dispatcher.dispatched_to
            if self._due_dispatch is not None:
                self._due_dispatch.cancel()
            self._dispatch()

    async def truncate_to(self, log_offset: int) -> None:
        """Cut our log where it last agrees with the master's. What is cut is kept in a folder of its own.

        Raises DivergedLog if that is confirmed: consumers may have seen it, so it is not for us to decide.
        Whoever is cancelled before the copy is whole has cut nothing.
        """
        store, log_end = self._store, self._store.log.log_end
        self._check_unconfirmed(log_offset)
        await self._keep_diverged(log_offset)
        # Others had their turns meanwhile.
        self._check_unconfirmed(log_offset)
        if store.log.log_end != log_end:
            raise DivergedLog(f"the log has grown since it was to be cut at {log_offset}")
        if self._due_dispatch is not None:
            # It would go on in the middle of what is cut.
            self._due_dispatch.cancel()
            self._due_dispatch = None
        try:
            if most_records := (store.whole_to - log_offset) // MIN_RECORD_BYTES:
                for listener in self.on_cut:
                    listener(most_records)
            store.truncate_to(log_offset)
        finally:
            if store.log.refusal is None:
                self._turn_soon()

    def _check_unconfirmed(self, log_offset: int) -> None:
        confirmed_to = self._store.confirmed_whole_to
        if confirmed_to is not None and log_offset < confirmed_to:
            raise DivergedLog(f"the log is confirmed up to {confirmed_to} and would be cut at {log_offset}")

    async def _keep_diverged(self, log_offset: int) -> None:
        """Copy what is about to be cut, on a thread: a GiB takes the disk seconds, and others wait."""
        is_dropped = threading.Event()
        copying = self._loop.run_in_executor(
            None, partial(self._store.keep_diverged, log_offset, is_dropped=is_dropped.is_set)
        )
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            is_dropped.set()
            # The log may be closed next, and this must have let go of it by then.
            await asyncio.wait([copying])
            copying.exception()
            raise

    def confirm_to(self, log_offset: int) -> None:
        """Let consumers see the log up to here, as far as we hold it. What they may see stays so.

        A master that has just begun may not know yet that what we hold is confirmed.
        """
        dispatcher = self._store.dispatcher
        dispatcher.confirmed_to = max(log_offset, dispatcher.confirmed_log_end or 0)
        self._on_confirmed()

    def follow(self, reign: Reign | None) -> None:
        """Take messages in and show them as this reign under a controller says; None: it is over."""
        self.reign = reign
        self._is_barred = reign is None
        self.pending.follow(reign)
        if reign is not None:
            # Answers first: the log goes to consumers when the turn's work is done.
            reign.on_confirmed += [self.pending.on_confirmed, self._on_confirmed]
            reign.on_replicas()

    def end_reign(self) -> None:
        """Another broker is or may be master: nobody is told any more that a message is safe."""
        self.reign = None
        self._is_barred = True
        self.pending.end_reign()

    def check_right(self) -> None:
        """Refuse what would be in this log alone: another broker is or may be master."""
        if self._is_barred:
            raise NotWritable("this broker is no master now; send to the one that is")
        if self.reign is not None and (refusal := self.reign.refusal()) is not None:
            raise NotWritable(refusal)

    def _on_confirmed(self) -> None:
        """More of the log may be dispatched, although it has not grown: slaves need not be told."""
        # A turn that is due must not pass it by, though dispatch ran since the turn was asked for.
        self._has_grown = True
        is_due = self._due_turn is not None or self._due_dispatch is not None
        if not is_due and self._store.dispatcher.is_behind:
            self._dispatch_after(self._rest_s())

    def _turn_soon(self) -> None:
        self._has_grown = True
        self._append_count += 1
        if self._due_turn is None:
            self._due_turn = self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """The log has grown: first the slaves get it, who work on it while we dispatch."""
        self._due_turn = None
        self._tell_grown()
        self._follow_up()

    def _follow_up(self) -> None:
        """What can be done while slaves work: nobody waits for it."""
        self._store.log.warm_ahead()
        # While the disk refuses it is not asked again each time; the next attempt is on its way.
        if self._due_dispatch is not None or not self._has_grown:
            return
        if rest_s := self._rest_s():
            self._dispatch_after(rest_s)
        else:
            self._dispatch()

    def _tell_grown(self) -> None:
        for listener in (*self.on_appended, *self.on_grown):
            listener()

    def _rest_s(self) -> float:
        """How long dispatch rests yet; 0 if it has."""
        is_hurried = not self._raw_bytes and self.is_awaited()
        pause_s = self._pause_s if is_hurried else self._pause_s * _UNHURRIED_PAUSES
        return max(0.0, self._dispatched_s + pause_s - self._loop.time())

    def _dispatch_after(self, rest_s: float) -> None:
        self._due_dispatch = self._loop.call_later(rest_s, self._dispatch)

    def _dispatch(self) -> None:
        self._due_dispatch = None
        self._has_grown = self._is_failing = False
        append_count, self._append_count = self._append_count, 0
        dispatched_to = self._store.dispatcher.dispatched_to
        if self.reign is not None:
            self.reign.hold()
        try:
            has_more, gained_bytes, self._raw_bytes = self._store.dispatch_some(), self._raw_bytes, 0
            self._is_filling = has_more and (self._is_filling or gained_bytes >= _MUCH_BYTES)
            if has_more and gained_bytes >= _MUCH_BYTES:
                self._due_dispatch = self._loop.call_later(_CATCHING_UP_S, self._dispatch)
            elif has_more:
                self._due_dispatch = self._loop.call_soon(self._dispatch)
        except (DiskFull, OSError) as error:
            self._is_failing = True
            # The messages are safe in the log, but consumers can not see them before this succeeds.
            _log.warning(
                "dispatch waits for the disk dispatched_to=%d reason=%s",
                self._store.dispatcher.dispatched_to,
                error,
            )
            # Again by itself: no further send may come, least of all on a full disk.
            self._due_dispatch = self._loop.call_later(_RETRY_S, self._dispatch)
        except MQError as error:
            self._is_failing = True
            self._store.log.refusal = f"the log can not be read back: {error}"
            _log.critical("dispatch failed reason=%s", error)
        is_resting = append_count > 1 or not self.is_awaited()
        if is_resting and self._store.dispatcher.dispatched_to > dispatched_to:
            self._dispatched_s = self._loop.time()
