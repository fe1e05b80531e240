"""A client of the played ZooKeeper in the place of kazoo: what it asks, and how its session stands.

    CONNECTED --connection lost--> SUSPENDED --connected--> CONNECTED
        SUSPENDED --the session was ended--> LOST

With the connection all answers and watches are lost: who waited for an answer does not know what was done.
As kazoo does it goes on in another session after LOST, in which nobody should ask anything.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from tanist.coord.kazoo_client import AsyncResult, Operations, WatchCallback
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Process
from tanist.sim.group.naming import REGISTRY
from tanist.sim.group.zookeeper import (
    Connection,
    NoNode,
    Operation,
    PlayedZooKeeper,
    SessionOver,
    Stat,
    Wanted,
)

_AGAIN_S = (0.02, 0.2)
_CONNECT_PART = 1 / 3
"""For so much of a session's time a server may take to take us up."""

_Ask = Callable[[Connection], object]


class _Result:
    """An answer to come."""

    __slots__ = ("_is_there", "_told", "exception", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.exception: Exception | None = None
        self._is_there = False
        self._told: Callable[[AsyncResult], None] | None = None

    def rawlink(self, callback: Callable[[AsyncResult], None]) -> None:
        self._told = callback
        if self._is_there:
            callback(self)

    def come(self, found: object) -> None:
        if isinstance(found, Exception):
            self.exception = found
        else:
            self.value = found
        self._is_there = True
        if self._told is not None:
            self._told(self)


class _Transaction:
    """Several operations in one step."""

    def __init__(self, client: "PlayedKazoo") -> None:
        self._client = client
        self._operations: list[Operation] = []

    def create(self, path: str, value: bytes, *, ephemeral: bool = False) -> None:
        self._operations.append(Operation("create", path, value, is_ephemeral=ephemeral))

    def set_data(self, path: str, value: bytes, version: int) -> None:
        self._operations.append(Operation("set", path, value, version))

    def delete(self, path: str, version: int) -> None:
        self._operations.append(Operation("delete", path, version=version))

    def check(self, path: str, version: int) -> None:
        self._operations.append(Operation("check", path, version=version))

    def commit_async(self) -> AsyncResult:
        zookeeper = self._client.zookeeper
        return self._client.ask(lambda connection: zookeeper.commit(connection, self._operations))


class PlayedKazoo:
    """One client, with its session."""

    def __init__(
        self,
        zookeeper: PlayedZooKeeper,
        process: Process,
        on_state: Callable[[str], None],
        *,
        cables: Cables,
        chance: Random,
    ) -> None:
        self.zookeeper = zookeeper
        self._clockwork = cables.clockwork
        self._cables = cables
        self._chance = chance
        self._process = process
        self._life = process.life
        self._on_state = on_state
        self._connection: Connection | None = None
        self._session = 0
        self._is_over = False
        self._waiting: deque[_Result] = deque()
        self._watches: dict[Wanted, list[WatchCallback]] = {}

    @property
    def timeout_s(self) -> float:
        return self.zookeeper.timeout_s

    @property
    def operations(self) -> Operations:
        return self

    def start(self) -> None:
        """Look for a server."""
        if self._is_over:
            return
        connection = Connection(self._process, self._life)
        connection.on_lost = lambda: self._lose(connection)
        connection.on_watch = lambda wanted: self._on_watch(connection, wanted)
        self._connection = connection
        session = self._session

        def arrive() -> None:
            if connection.is_open:
                given = self.zookeeper.connect(connection, session)
                self.zookeeper.say(connection, lambda: self._on_connected(connection, given))

        def give_up() -> None:
            if self._connection is connection and not connection.is_taken_up:
                connection.is_open = False
                self.start()

        self._say(connection, arrive)
        self._after(self.timeout_s * _CONNECT_PART, give_up)

    def drop_connection(self) -> None:
        """Look for another server, in the same session."""
        if self._connection is not None:
            self._connection.is_open = False
            self._lose(self._connection)

    def stop(self) -> None:
        """End the session, if a server can be told."""
        self._is_over = True
        connection, self._connection = self._connection, None
        if connection is not None and connection.session:
            session = connection.session
            self._say(connection, lambda: self.zookeeper.end(session))
            connection.is_open = False

    # What can be asked

    def get_async(self, path: str) -> AsyncResult:
        def get(connection: Connection) -> object:
            node, _ = self.zookeeper.read(connection, Wanted(path, is_children=False), is_watched=False)
            return NoNode(path) if node is None else (node.value, Stat(node.version))

        return self.ask(get)

    def exists_async(self, path: str, watch: WatchCallback) -> AsyncResult:
        wanted = Wanted(path, is_children=False)

        def exists(connection: Connection) -> object:
            node, _ = self.zookeeper.read(connection, wanted, is_watched=True)
            return None if node is None else Stat(node.version)

        self._watches.setdefault(wanted, []).append(watch)
        return self.ask(exists)

    def get_children_async(self, path: str, watch: WatchCallback | None = None) -> AsyncResult:
        wanted = Wanted(path, is_children=True)

        def children(connection: Connection) -> object:
            node, names = self.zookeeper.read(connection, wanted, is_watched=watch is not None)
            return NoNode(path) if node is None else names

        if watch is not None:
            self._watches.setdefault(wanted, []).append(watch)
        return self.ask(children)

    def create_async(self, path: str, value: bytes) -> AsyncResult:
        def create(connection: Connection) -> object:
            return self.zookeeper.commit(connection, [Operation("create", path, value)])[0]

        return self.ask(create)

    def transaction(self) -> _Transaction:
        return _Transaction(self)

    def ask(self, do: _Ask) -> AsyncResult:
        """Ask a server; answers come in the order of what was asked."""
        result, connection = _Result(), self._connection
        if connection is None or not connection.is_taken_up:
            result.come(SessionOver())
            return result
        self._waiting.append(result)

        def arrive() -> None:
            if not self.zookeeper.hear(connection):
                self.zookeeper.hang_up(connection)
                return
            answer = do(connection)
            self.zookeeper.say(connection, partial(self._on_answer, connection, answer))

        self._say(connection, arrive)
        return result

    # What is heard

    def _on_connected(self, connection: Connection, session: int | None) -> None:
        if self._connection is not connection or not connection.is_open or self._is_over:
            return
        if session is None:
            connection.is_open = False
            self._session = 0
            self._on_state("LOST")
            self._again()
            return
        self._session, connection.is_taken_up = session, True
        self._on_state("CONNECTED")

    def _on_answer(self, connection: Connection, answer: object) -> None:
        if self._connection is connection:
            self._waiting.popleft().come(answer)

    def _on_watch(self, connection: Connection, wanted: Wanted) -> None:
        if self._connection is connection:
            for watch in self._watches.pop(wanted, ()):
                watch(None)

    def _lose(self, connection: Connection) -> None:
        if self._connection is not connection or self._is_over:
            return
        self._connection = None
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.come(SessionOver())
        self._on_state("SUSPENDED")
        watches, self._watches = self._watches, {}
        for each in watches.values():
            for watch in each:
                watch(None)
        self._again()

    def _again(self) -> None:
        self._after(self._chance.uniform(*_AGAIN_S), self.start)

    def _say(self, connection: Connection, do: Callable[[], None]) -> None:
        way = (self._process.name, REGISTRY)
        self._cables.say(way, self.zookeeper.process, do, line=connection.to_server)

    def _after(self, delay_s: float, do: Callable[[], None]) -> None:
        self._clockwork.after(delay_s, do, process=self._process, life=self._life)
