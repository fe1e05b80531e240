"""One session with ZooKeeper on the event loop: how it stands, up to when it is held, and who may send in it.

    SUSPENDED --connected--> CONNECTED --connection lost--> SUSPENDED
        any state --a server says that the session ended, or we closed it--> LOST

Our session lives as long as the leader of the ensemble hears of it. ``held_until_s`` is 0.6 of the timeout
that the server granted, counted from when we sent what was confirmed last. Only writes confirm: a read is
answered by the server that we are connected to, which may not notice for seconds that the others left it and
elected a new leader. A write was seen by the leader and by a majority after we sent it. The other 0.4 is for
how late our server passes on to the leader that it heard from us: every half tick, which is a quarter of the
shortest session that ZooKeeper grants unless it is told otherwise.

After LOST kazoo begins a new session by itself; nothing is sent in that.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tanist.clock import Clock
from tanist.coord.changes import ROOT
from tanist.coord.kazoo_client import AsyncResult, Kazoo, MakeClient, Operations
from tanist.coord.registry import RegistryUnavailable, SessionState

# The part of the session timeout that a confirmation is good for, and how often in it one is asked for.
_HELD_PART = 0.6
_PINGS = 6
# A server that has not answered for so many of these is given up for another.
_MISSED_PINGS = 2
# How many session timeouts a server has to begin a session.
_OPENING_TIMEOUTS = 3

_NEVER = float("-inf")
_ANY_VERSION = -1

_log = logging.getLogger(__name__)


class ZooKeeperSession:
    """A session from ``open`` to ``close``. It is over when it is LOST."""

    def __init__(self, hosts: str, timeout_s: float, clock: Clock, make_client: MakeClient = Kazoo) -> None:
        """Make ready. Raises ConfigError if kazoo is not installed."""
        self.hosts = hosts
        self.state = SessionState.SUSPENDED
        self.held_until_s = _NEVER
        self.listeners: list[Callable[[SessionState], None]] = []
        self._clock = clock
        self._kazoo = make_client(hosts, timeout_s, self._on_kazoo_state)
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ping: asyncio.TimerHandle | None = None
        self._unanswered_since_s: float | None = None
        # For both threads: what is sent after kazoo heard of the session's end would be part of the next one.
        self._sending = threading.Lock()
        self._is_over = False

    @property
    def timeout_s(self) -> float:
        """What the server granted, once it did."""
        return self._kazoo.timeout_s

    async def open(self) -> None:
        """Begin the session; it is held when this returns.

        Raises RegistryUnavailable if no server took us in time.
        """
        patience_s = self.timeout_s * _OPENING_TIMEOUTS
        self._kazoo.start()
        try:
            async with asyncio.timeout(patience_s):
                await self._opened
        except TimeoutError:
            raise RegistryUnavailable(
                f"no ZooKeeper at {self.hosts} began a session within {patience_s:g} s;"
                " see that a majority of its servers runs and can be reached"
            ) from None

    async def close(self) -> None:
        """End the session, and wait until kazoo's threads have ended."""
        self._end()
        await asyncio.to_thread(self._kazoo.stop)

    def send(self, begin: Callable[[Operations], AsyncResult], done: Callable[[AsyncResult], None]) -> bool:
        """Send something and have ``done`` called with the answer, unless there is nobody to send it to.

        kazoo would keep it for the next connection, when nobody waits for it any more.
        """
        if self.state is not SessionState.CONNECTED:
            return False
        with self._sending:
            if self._is_over:
                return False
            answer = begin(self._kazoo.operations)
        answer.rawlink(lambda ready: self.to_loop(partial(done, ready)))
        return True

    async def ask(self, begin: Callable[[Operations], AsyncResult]) -> AsyncResult:
        """Send something and wait for the answer, for one session timeout at most."""
        future: asyncio.Future[AsyncResult] = self._loop.create_future()

        def done(answer: AsyncResult) -> None:
            if not future.done():
                future.set_result(answer)

        if not self.send(begin, done):
            raise self.unavailable()
        try:
            async with asyncio.timeout(self.timeout_s):
                return await future
        except TimeoutError:
            raise RegistryUnavailable(
                f"ZooKeeper did not answer within {self.timeout_s:g} s; what was asked may be done"
            ) from None

    def unavailable(self) -> RegistryUnavailable:
        """The error that says why nothing can be asked."""
        if self._is_over:
            return RegistryUnavailable("our session with ZooKeeper is over; open another")
        return RegistryUnavailable(f"no connection to ZooKeeper at {self.hosts}; nothing was asked")

    def confirm(self, sent_s: float) -> None:
        """A write that we sent at this time was made in our session."""
        if self.state is not SessionState.LOST:
            self.held_until_s = max(self.held_until_s, sent_s + _HELD_PART * self.timeout_s)
            if not self._opened.done():
                self._opened.set_result(None)

    def to_loop(self, call: Callable[[], None]) -> None:
        """Have something called on the event loop. For the threads of kazoo."""
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _send_ping(self) -> None:
        """Have our session confirmed, now and every so often."""
        now_s = self._clock.monotonic_s()
        pause_s = self.timeout_s / _PINGS
        if self._ping is not None:
            self._ping.cancel()
        self._ping = self._loop.call_later(pause_s, self._send_ping)
        if self._unanswered_since_s is None:
            if self.send(_begin_ping, partial(self._on_pong, now_s)):
                self._unanswered_since_s = now_s
        elif now_s - self._unanswered_since_s >= _MISSED_PINGS * pause_s:
            silent_s = now_s - self._unanswered_since_s
            _log.warning("registry server is silent hosts=%s for_s=%.1f", self.hosts, silent_s)
            self._unanswered_since_s = None
            self._kazoo.drop_connection()

    def _on_pong(self, sent_s: float, answer: AsyncResult) -> None:
        if self._unanswered_since_s == sent_s:
            self._unanswered_since_s = None
        if answer.exception is None:
            self.confirm(sent_s)

    def _on_kazoo_state(self, state: str) -> None:
        if state == SessionState.LOST.name:
            with self._sending:
                self._is_over = True
        self.to_loop(partial(self._on_state, SessionState[state]))

    def _on_state(self, state: SessionState) -> None:
        if self.state in {state, SessionState.LOST}:
            return
        _log.info("registry session state=%s hosts=%s", state.value, self.hosts)
        self.state = state
        self._unanswered_since_s = None
        if state is SessionState.CONNECTED:
            self._send_ping()
        elif state is SessionState.LOST:
            self._end()
        for listener in self.listeners:
            listener(state)

    def _end(self) -> None:
        with self._sending:
            self._is_over = True
        self.state = SessionState.LOST
        self.held_until_s = _NEVER
        if self._ping is not None:
            self._ping.cancel()


def _begin_ping(operations: Operations) -> AsyncResult:
    # A transaction that changes nothing is a write nevertheless.
    transaction = operations.transaction()
    transaction.check(ROOT, _ANY_VERSION)
    return transaction.commit_async()
