"""The registry in ZooKeeper: for several controllers, none of which is a single point.

    async with ZooKeeperRegistry("zk1:2181,zk2:2181,zk3:2181", "/tanist", timeout_s=4) as registry:
        await registry.commit(Create("/groups/broker-a", b"{}"))

A session that is LOST is over, and so is this object: whoever needs another opens another.
"""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tanist.clock import Clock, SystemClock
from tanist.coord import zookeeper_commit
from tanist.coord.changes import ROOT, ancestors, check_changes, check_path
from tanist.coord.kazoo_client import AsyncResult, Kazoo, KazooErrors, MakeClient, Operations
from tanist.coord.registry import Change, Conflict, Record, RegistryUnavailable, SessionState
from tanist.coord.zookeeper_session import ZooKeeperSession
from tanist.coord.zookeeper_watch import ZooKeeperWatch

_log = logging.getLogger(__name__)


class ZooKeeperRegistry:
    """One session with ZooKeeper, from ``async with`` to the end of its block; see ``Registry``."""

    def __init__(
        self,
        hosts: str,
        root: str,
        *,
        timeout_s: float,
        clock: Clock | None = None,
        make_client: MakeClient = Kazoo,
        errors: KazooErrors | None = None,
    ) -> None:
        """Name the servers as ``host:port,host:port`` and the path below which the records are.

        ``make_client`` and ``errors`` take the place of kazoo. Raises ConfigError if that is not installed.
        """
        if root == ROOT:
            raise ValueError("root='/' is not allowed; ZooKeeper keeps records of its own there")
        self._root = check_path(root)
        self._clock = clock or SystemClock()
        self._errors = errors or KazooErrors()
        self._session = ZooKeeperSession(hosts, timeout_s, self._clock, make_client)
        self._session.listeners.append(self._on_session)
        self._watches: dict[ZooKeeperWatch, None] = {}
        """In the order in which they were begun."""

    async def __aenter__(self) -> Self:
        """Begin the session; it is held when this returns.

        Raises RegistryUnavailable if no server took us in time.
        """
        try:
            await self._session.open()
            await self._make_root()
        except BaseException:
            await self.close()
            raise
        _log.info(
            "registry opened hosts=%s root=%s timeout_s=%g",
            *(self._session.hosts, self._root, self._session.timeout_s),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def session(self) -> SessionState:
        """What kazoo heard last; it learns of a session's end only from a server that it reaches."""
        return self._session.state

    @property
    def held_until_s(self) -> float:
        """Up to when our session lives whatever happens; it moves with every confirmed write."""
        return self._session.held_until_s

    @property
    def timeout_s(self) -> float:
        """The session timeout that the server granted, which may not be the one that was asked for."""
        return self._session.timeout_s

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Have ``listener`` called on the event loop whenever the session's state changes."""
        self._session.listeners.append(listener)

    async def read(self, path: str) -> Record | None:
        """A record as our server has it; None if it is not there."""
        place = self._place(check_path(path))
        answer = await self._session.ask(lambda operations: operations.get_async(place))
        if isinstance(answer.exception, self._errors.no_node):
            return None
        value, stat = self._value(answer)
        return Record(value or b"", stat.version)

    async def children(self, path: str) -> list[str]:
        """The names right below a path, sorted, as our server has them."""
        place = self._place(check_path(path))
        answer = await self._session.ask(lambda operations: operations.get_children_async(place))
        if isinstance(answer.exception, self._errors.no_node):
            return []
        return sorted(self._value(answer))

    async def commit(self, *changes: Change) -> list[int]:
        """Make all changes in one step. A majority has them when this returns."""
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
            self._session,
            self._place(check_path(path)),
            errors=self._errors,
            listener=listener,
            on_close=lambda closed: self._watches.pop(closed, None),
        )
        self._watches[watch] = None
        watch.arm()
        return watch

    async def close(self) -> None:
        """End the session: what is ephemeral goes at once if a server can be told, else with the timeout."""
        self._close_watches()
        await self._session.close()

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            for watch in list(self._watches):
                watch.arm()
        elif state is SessionState.LOST:
            self._close_watches()

    def _close_watches(self) -> None:
        for watch in list(self._watches):
            watch.close()

    def _place(self, path: str) -> str:
        return self._root + path if path != ROOT else self._root

    async def _try(self, changes: tuple[Change, ...]) -> tuple[Change, Exception] | None:
        """Commit once; the change at fault and what ZooKeeper said of it, or None if all were made."""
        parts: list[Change] = []

        def begin(operations: Operations) -> AsyncResult:
            transaction = operations.transaction()
            parts.extend(zookeeper_commit.fill(transaction, changes, self._place))
            return transaction.commit_async()

        sent_s = self._clock.monotonic_s()
        results = self._value(await self._session.ask(begin))
        fault = zookeeper_commit.fault(results, parts, self._errors)
        if fault is None:
            self._session.confirm(sent_s)
        return fault

    async def _make_root(self) -> None:
        for place in (*ancestors(self._root), self._root):
            error = await self._make_place(place)
            if error is not None:
                raise RegistryUnavailable(f"ZooKeeper refused to make {place}: {error!r}")

    async def _make_parents(self, change: Change) -> None:
        for parent in ancestors(change.path):
            error = await self._make_place(self._place(parent))
            if error is not None:
                raise Conflict(change) from error

    async def _make_place(self, place: str) -> Exception | None:
        """Make an empty record if it is not there; what keeps it from being made."""
        answer = await self._session.ask(lambda operations: operations.create_async(place, b""))
        error = answer.exception
        if error is None or isinstance(error, self._errors.node_exists):
            return None
        if isinstance(error, self._errors.refused):
            return error
        return self._value(answer)

    def _value(self, answer: AsyncResult) -> Any:
        error = answer.exception
        if error is None:
            return answer.value
        if isinstance(error, self._errors.session_over):
            raise self._session.unavailable() from error
        raise RegistryUnavailable(f"ZooKeeper: {error!r}; what was asked may be done") from error
