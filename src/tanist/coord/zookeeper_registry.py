"""The registry in ZooKeeper: for several controllers, none of which is a single point.

Our session lives as long as the leader of the ensemble hears of it. ``held_until_s`` is 0.6 of the timeout
that the server granted, counted from when we sent what was confirmed last. Only writes confirm: a read is
answered by the server that we are connected to, which may not notice for seconds that the others left it and
elected a new leader. A write was seen by the leader and by a majority after we sent it. The other 0.4 is for
how late our server passes on to the leader that it heard from us: every half tick, which is a quarter of the
shortest session that ZooKeeper grants unless it is told otherwise.

A session that is LOST is over, and so is this object: whoever needs another opens another. kazoo would begin
a new session by itself; nothing is sent in that.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from tanist.clock import Clock, SystemClock
from tanist.coord import zookeeper_commit
from tanist.coord.changes import ROOT, ancestors, check_changes, check_path
from tanist.coord.kazoo_client import AsyncResult, Kazoo, KazooErrors, Operations
from tanist.coord.registry import Change, Conflict, Record, RegistryUnavailable, SessionState
from tanist.coord.zookeeper_watch import ZooKeeperWatch

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


class ZooKeeperRegistry:
    """One session with ZooKeeper, from ``async with`` to the end of its block; see ``Registry``."""

    def __init__(self, hosts: str, root: str = ROOT, *, timeout_s: float, clock: Clock | None = None) -> None:
        """Name the servers as ``host:port,host:port`` and the path below which the records are.

        Raises ConfigError if kazoo is not installed.
        """
        self._hosts = hosts
        self._root = "" if root == ROOT else check_path(root)
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._errors = KazooErrors()
        self._kazoo = Kazoo(hosts, timeout_s, self._on_kazoo_state)
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._state = SessionState.SUSPENDED
        self._held_until_s = _NEVER
        self._ping: asyncio.TimerHandle | None = None
        self._unanswered_since_s: float | None = None
        self._listeners: list[Callable[[SessionState], None]] = []
        self._watches: set[ZooKeeperWatch] = set()
        # Both threads: what is sent after kazoo knows of the session's end would be part of the next one.
        self._sending = threading.Lock()
        self._is_over = False

    async def __aenter__(self) -> Self:
        """Begin the session; it is held when this returns.

        Raises RegistryUnavailable if no server took us in time.
        """
        patience_s = self._timeout_s * _OPENING_TIMEOUTS
        try:
            self._kazoo.start()
            async with asyncio.timeout(patience_s):
                await self._opened
                await self._make_root()
        except TimeoutError:
            await self.close()
            raise RegistryUnavailable(
                f"no ZooKeeper at {self._hosts} began a session within {patience_s:g} s;"
                " see that a majority of its servers runs and can be reached"
            ) from None
        except BaseException:
            await self.close()
            raise
        _log.info(
            "registry opened hosts=%s root=%s timeout_s=%g", self._hosts, self._root, self._kazoo.timeout_s
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def session(self) -> SessionState:
        """What kazoo heard last; it learns of a session's end only from a server that it reaches."""
        return self._state

    @property
    def held_until_s(self) -> float:
        """Up to when our session lives whatever happens; it moves with every confirmed write."""
        return self._held_until_s

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Have ``listener`` called on the event loop whenever the session's state changes."""
        self._listeners.append(listener)

    async def read(self, path: str) -> Record | None:
        """A record as our server has it; None if it is not there."""
        place = self._place(check_path(path))
        answer = await self._ask(lambda operations: operations.get_async(place))
        if isinstance(answer.exception, self._errors.no_node):
            return None
        value, stat = self._value(answer)
        return Record(value or b"", stat.version)

    async def children(self, path: str) -> list[str]:
        """The names right below a path, sorted, as our server has them."""
        place = self._place(check_path(path))
        answer = await self._ask(lambda operations: operations.get_children_async(place))
        if isinstance(answer.exception, self._errors.no_node):
            return []
        return sorted(self._value(answer))

    async def commit(self, *changes: Change) -> list[int]:
        """Make all changes in one step. A majority has them on disk when this returns."""
        check_changes(changes)
        fault = await self._try(changes)
        for _ in changes:
            if fault is None or not zookeeper_commit.lacks_parents(*fault, self._errors):
                break
            await self._make_parents(fault[0])
            fault = await self._try(changes)
        if fault is None:
            return zookeeper_commit.versions(changes)
        change, error = fault
        if isinstance(error, self._errors.refused):
            raise Conflict(change) from error
        raise RegistryUnavailable(f"ZooKeeper refused {change}: {error!r}") from error

    def watch(self, path: str, listener: Callable[[], None]) -> ZooKeeperWatch:
        """Have ``listener`` called after changes by any session."""
        watch = ZooKeeperWatch(
            self,
            self._place(check_path(path)),
            errors=self._errors,
            listener=listener,
            on_close=self._watches.discard,
        )
        self._watches.add(watch)
        watch.arm()
        return watch

    async def close(self) -> None:
        """End the session: what is ephemeral goes at once if a server can be told, else with the timeout."""
        self._end()
        await asyncio.to_thread(self._kazoo.stop)

    def send(self, begin: Callable[[Operations], AsyncResult], done: Callable[[AsyncResult], None]) -> bool:
        """Send something and have ``done`` called with the answer, unless there is nobody to send it to.

        kazoo would keep it for the next connection, when nobody waits for it any more.
        """
        if self._state is not SessionState.CONNECTED:
            return False
        with self._sending:
            if self._is_over:
                return False
            answer = begin(self._kazoo.operations)
        answer.rawlink(lambda ready: self.to_loop(partial(done, ready)))
        return True

    def to_loop(self, call: Callable[[], None]) -> None:
        """Have something called on the event loop. For the threads of kazoo."""
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _place(self, path: str) -> str:
        return self._root + path if path != ROOT else self._root or ROOT

    async def _ask(self, begin: Callable[[Operations], AsyncResult]) -> AsyncResult:
        future: asyncio.Future[AsyncResult] = self._loop.create_future()

        def done(answer: AsyncResult) -> None:
            if not future.done():
                future.set_result(answer)

        if not self.send(begin, done):
            raise RegistryUnavailable(self._why_not())
        try:
            async with asyncio.timeout(self._kazoo.timeout_s):
                return await future
        except TimeoutError:
            raise RegistryUnavailable(
                f"ZooKeeper did not answer within {self._kazoo.timeout_s:g} s; what was asked may be done"
            ) from None

    def _value(self, answer: AsyncResult) -> Any:
        error = answer.exception
        if error is None:
            return answer.value
        if isinstance(error, self._errors.session_over):
            raise RegistryUnavailable(self._why_not()) from error
        raise RegistryUnavailable(f"ZooKeeper: {error!r}; what was asked may be done") from error

    def _why_not(self) -> str:
        if self._is_over:
            return "our session with ZooKeeper is over; open another"
        return f"no connection to ZooKeeper at {self._hosts}; nothing was asked"

    async def _try(self, changes: tuple[Change, ...]) -> tuple[Change, Exception] | None:
        """Commit once; the change at fault and what ZooKeeper said of it, or None if all were made."""
        sent_s = self._clock.monotonic_s()
        transaction = self._kazoo.operations.transaction()
        parts = zookeeper_commit.fill(transaction, changes, self._place)
        results = self._value(await self._ask(lambda _: transaction.commit_async()))
        fault = zookeeper_commit.fault(results, parts, self._errors)
        if fault is None:
            self._confirm(sent_s)
        return fault

    async def _make_root(self) -> None:
        for place in (*ancestors(self._root), self._root):
            error = await self._make_place(place) if place else None
            if error is not None:
                raise RegistryUnavailable(f"ZooKeeper refused to make {place}: {error!r}")

    async def _make_parents(self, change: Change) -> None:
        for parent in ancestors(change.path):
            error = await self._make_place(self._place(parent))
            if error is not None:
                raise Conflict(change) from error

    async def _make_place(self, place: str) -> Exception | None:
        """Make an empty record if it is not there; what keeps it from being made."""
        answer = await self._ask(lambda operations: operations.create_async(place, b""))
        error = answer.exception
        if error is None or isinstance(error, self._errors.node_exists):
            return None
        if isinstance(error, self._errors.refused):
            return error
        return self._value(answer)

    def _confirm(self, sent_s: float) -> None:
        if self._state is not SessionState.LOST:
            self._held_until_s = max(self._held_until_s, sent_s + _HELD_PART * self._kazoo.timeout_s)
            if not self._opened.done():
                self._opened.set_result(None)

    def _send_ping(self) -> None:
        """Have our session confirmed, now and every so often."""
        now_s = self._clock.monotonic_s()
        pause_s = self._kazoo.timeout_s / _PINGS
        if self._ping is not None:
            self._ping.cancel()
        self._ping = self._loop.call_later(pause_s, self._send_ping)
        if self._unanswered_since_s is None:
            if self.send(_begin_ping, partial(self._on_pong, now_s)):
                self._unanswered_since_s = now_s
        elif now_s - self._unanswered_since_s >= _MISSED_PINGS * pause_s:
            _log.warning(
                "registry server is silent hosts=%s since_s=%.1f", self._hosts, _MISSED_PINGS * pause_s
            )
            self._unanswered_since_s = None
            self._kazoo.drop_connection()

    def _on_pong(self, sent_s: float, answer: AsyncResult) -> None:
        if self._unanswered_since_s == sent_s:
            self._unanswered_since_s = None
        if answer.exception is None:
            self._confirm(sent_s)

    def _on_kazoo_state(self, state: str) -> None:
        if state == SessionState.LOST.name:
            with self._sending:
                self._is_over = True
        self.to_loop(partial(self._on_state, SessionState[state]))

    def _on_state(self, state: SessionState) -> None:
        if self._state in {state, SessionState.LOST}:
            return
        _log.info("registry session state=%s hosts=%s", state.value, self._hosts)
        self._state = state
        self._unanswered_since_s = None
        match state:
            case SessionState.CONNECTED:
                self._send_ping()
                for watch in list(self._watches):
                    watch.arm()
            case SessionState.LOST:
                self._end()
            case SessionState.SUSPENDED:
                pass
        for listener in self._listeners:
            listener(state)

    def _end(self) -> None:
        with self._sending:
            self._is_over = True
        self._state = SessionState.LOST
        self._held_until_s = _NEVER
        if self._ping is not None:
            self._ping.cancel()
        for watch in list(self._watches):
            watch.close()


def _begin_ping(operations: Operations) -> AsyncResult:
    # A transaction that changes nothing is a write nevertheless.
    transaction = operations.transaction()
    transaction.check(ROOT, _ANY_VERSION)
    return transaction.commit_async()
