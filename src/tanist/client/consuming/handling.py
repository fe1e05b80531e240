"""Hands messages to whoever works on them, and sees to what becomes of them.

    pull --> ReadyMessages --take--> in hand --done--> the consumer offset moves on
                   ^                    |
                   |                    +--failed--> back to the broker (SendBack), which stores it for
                   +-----put again------+            later, as a copy to the retry topic if it does not;
                                                     or here after a while (TryAgain)

A message that failed stays unfinished until the broker has it, so that the offset does not pass it. Until
then it also counts as in hand.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeAlias

from tanist.backoff import Backoff
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.ready_messages import ReadyMessages
from tanist.client.consuming.retrying import RetryLater, RetryRules, SendBack, TryAgain, after_failure
from tanist.client.errors import ClientClosed
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.received import ReceivedMessage
from tanist.client.session.tasks import OwnedTasks
from tanist.client.tracing.trace_format import ConsumeResult
from tanist.client.tracing.tracer import Tracer
from tanist.clock import Clock
from tanist.errors import MQError
from tanist.model.integers import INT32_MAX
from tanist.protocol.response_errors import NotMaster

_log = logging.getLogger(__name__)

NOT_SENT_BACK_S = 5.0
"""When a message comes again from here because no broker takes it, the first time; then each time later."""
_MOST_DOUBLINGS = 4
_SEND_BACK_TRIES = 3

MessageHandler: TypeAlias = Callable[[ReceivedMessage], Awaitable[object]]
Taken: TypeAlias = tuple[OwnedQueue, ReceivedMessage]


class Delivery:
    """The messages of one consumer, between its pulls and its handlers."""

    def __init__(
        self,
        calls: BrokerCalls,
        tasks: OwnedTasks,
        clock: Clock,
        rules: RetryRules,
        *,
        tracer: Tracer | None = None,
    ) -> None:
        self._calls = calls
        self._tasks = tasks
        self._clock = clock
        self._rules = rules
        self._tracer = tracer
        self._ready = ReadyMessages(is_orderly=rules.is_orderly)
        self._takers: deque[asyncio.Future[None]] = deque()
        self._watchers: set[asyncio.Future[None]] = set()
        self._is_closed = False

    def put(self, owned: OwnedQueue, count: int) -> None:
        """A pull brought messages, which are in the queue's cache."""
        self._ready.put(owned, count)
        self._wake_takers(count)

    def take_now(self) -> Taken | None:
        """The next message if it is here. Raises ClientClosed when there will be none."""
        if self._is_closed:
            raise ClientClosed("consumer")
        # Only locks know time, and they are for what is read in order.
        taken = self._ready.take(self._clock.monotonic_s() if self._rules.is_orderly else 0.0)
        if taken is not None and self._tracer is not None:
            self._tracer.before(taken[1])
        return taken

    async def take(self) -> Taken:
        """The next message, as soon as there is one. Raises ClientClosed when there will be none."""
        while (taken := self.take_now()) is None:
            await self._wait_for_turn()
        return taken

    def done(self, taken: Taken) -> None:
        """A message is handled: it is acknowledged."""
        owned, message = taken
        if self._tracer is not None:
            self._tracer.after(message, ConsumeResult.SUCCESS)
        self._finish(owned, message)
        self._let_go(owned)

    def failed(self, taken: Taken, error: BaseException) -> None:
        """A message could not be handled: it comes again, or it is a dead letter."""
        owned, message = taken
        if self._tracer is not None:
            is_meant = isinstance(error, RetryLater)
            self._tracer.after(message, ConsumeResult.FAILED if is_meant else ConsumeResult.EXCEPTION)
        level = error.delay_level if isinstance(error, RetryLater) else 0
        if not isinstance(error, RetryLater):
            _log.warning("message not handled message=%r", message, exc_info=error)
        if owned.is_dropped:
            # Whoever has its queue now gets it, as the offset was not moved beyond it.
            self._let_go(owned)
            return
        match after_failure(self._rules, reconsume_times=message.reconsume_times, delay_level=level):
            case SendBack(delay_level):
                self._tasks.start(self._send_back(owned, message, delay_level), "send back")
            case TryAgain() if self._is_closed:
                # Nobody is there to try: it stays unfinished, and comes again when its queue is read again.
                self.put_again(taken)
            case TryAgain(after_s):
                self._tasks.start(self._try_again(owned, message, after_s), "try again")
            case _:
                _log.error("message given up message=%r tries=%d", message, message.reconsume_times + 1)
                self.done(taken)

    def put_again(self, taken: Taken) -> None:
        """Nobody worked on it to the end: it is the next message."""
        if self._tracer is not None:
            self._tracer.after(taken[1], ConsumeResult.FAILED)
        self._ready.put_again(*taken)
        self._let_go(taken[0])
        self._wake_takers(1)

    def release(self, owned: OwnedQueue) -> None:
        """A queue may go on: it was resumed, or its lock is there again."""
        self._ready.release(owned)
        self._wake_takers(owned.cached.waiting_count)

    def suspend(self) -> None:
        """Hand out nothing until ``resume``."""
        self._ready.is_suspended = True

    def resume(self) -> None:
        self._ready.is_suspended = False
        self._wake_takers(len(self._takers))

    def close(self) -> None:
        """Hand out nothing any more."""
        self._is_closed = True
        self._wake_takers(len(self._takers))

    async def wait_idle(self, queues: Iterable[OwnedQueue], timeout_s: float) -> bool:
        """Wait until nobody works on messages of these queues; whether that is so in time."""
        watched = list(queues)
        return await self._wait_until(lambda: not any(queue.in_hand_count for queue in watched), timeout_s)

    async def _send_back(self, owned: OwnedQueue, message: ReceivedMessage, delay_level: int) -> None:
        """Give a message to the group again. If no broker takes it, it comes again from here."""
        if await self._is_sent_back(owned, message, delay_level):
            self._finish(owned, message)
            self._let_go(owned)
        else:
            # It may be long until one does, and there may be many such messages.
            doublings = min(message.reconsume_times, _MOST_DOUBLINGS)
            await self._try_again(owned, message, NOT_SENT_BACK_S * 2**doublings)

    async def _is_sent_back(self, owned: OwnedQueue, message: ReceivedMessage, delay_level: int) -> bool:
        backoff = Backoff()
        tries_left = _SEND_BACK_TRIES
        # If its queue goes, whoever has that next gets it anyway.
        while not owned.is_dropped:
            # Its own broker needs only to be told where it lies; a copy can go to any.
            send = self._calls.send_back if tries_left else self._calls.send_copy
            try:
                await send(message, delay_level=delay_level, max_retries=self._max_reconsume_times)
            except MQError as error:
                if not tries_left:
                    _log.warning("message not sent back message=%r error=%s", message, error)
                    return False
                _log.debug("message not sent back yet message=%r error=%s", message, error)
                if isinstance(error, NotMaster) and error.master_address is None:
                    # There is no master now, and there will be none a moment later.
                    tries_left = 0
                    continue
                tries_left -= 1
                await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311
            else:
                return True
        return False

    async def _try_again(self, owned: OwnedQueue, message: ReceivedMessage, after_s: float) -> None:
        # In order the next message waits for this one; otherwise the queue goes on without it.
        is_held = self._rules.is_orderly
        if not is_held:
            self._let_go(owned)
        try:
            await asyncio.sleep(after_s)
        finally:
            message.reconsume_times += 1
            self._ready.put_again(owned, message)
            if is_held:
                self._let_go(owned)
            self._wake_takers(1)

    @property
    def _max_reconsume_times(self) -> int:
        return INT32_MAX if self._rules.max_retries is None else self._rules.max_retries

    def _finish(self, owned: OwnedQueue, message: ReceivedMessage) -> None:
        cached = owned.cached
        cached.done(message)
        # Whoever took the last message waits for the next pull, whatever the room.
        if owned.is_full and (cached.count <= owned.wake_at_count or not cached.waiting_count):
            owned.wake_pull.set()

    def _let_go(self, owned: OwnedQueue) -> None:
        """Somebody is through with a message of the queue, whatever the end."""
        owned.in_hand_count -= 1
        if owned.held_count and self._rules.is_orderly:
            self.release(owned)
        if self._watchers:
            self._tell_watchers()

    async def _wait_for_turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._takers.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self._takers.remove(turn)
            else:
                self._wake_takers(1)
            raise

    def _wake_takers(self, count: int) -> None:
        takers = self._takers
        while takers and count > 0:
            turn = takers.popleft()
            if not turn.done():
                turn.set_result(None)
                count -= 1

    async def _wait_until(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        deadline_s = self._clock.monotonic_s() + timeout_s
        while not is_so():
            left_s = deadline_s - self._clock.monotonic_s()
            if left_s <= 0:
                return False
            changed = asyncio.get_running_loop().create_future()
            self._watchers.add(changed)
            try:
                await asyncio.wait([changed], timeout=left_s)
            finally:
                self._watchers.discard(changed)
        return True

    def _tell_watchers(self) -> None:
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)
