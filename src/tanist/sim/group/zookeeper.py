"""A ZooKeeper ensemble that is played: records with versions, sessions, and watches that tell once.

What is written is there for all at once. Who reads is answered by a server that may be some changes behind,
yet never behind what the same session has seen. A session is ended when its owner was silent for too long on
the ensemble's own clock; when the ensemble has stood still every session has its whole time again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tanist.coord.changes import ancestors, parent_of
from tanist.coord.kazoo_client import KazooErrors
from tanist.sim.cables import Cables, Line
from tanist.sim.clockwork import Clockwork, Process
from tanist.sim.group.naming import REGISTRY

_BEHIND = (0, 0, 0, 0, 1, 2)
"""By how many changes a server may be behind."""


class NoNode(Exception):
    """There is no such record."""


class NodeExists(Exception):
    """There is one."""


class BadVersion(Exception):
    """It has another version."""


class NotEmpty(Exception):
    """There are others below it."""


class RolledBack(Exception):
    """It stood beside the operation at fault."""


class SessionOver(Exception):
    """The session was ended, or its connection."""


class PlayedErrors(KazooErrors):
    """What stands for the exceptions of kazoo, which does not have to be there."""

    def __init__(self) -> None:
        self.no_node = NoNode
        self.node_exists = NodeExists
        self.session_over = (SessionOver,)
        self.refused = (NoNode, NodeExists, BadVersion, NotEmpty)
        self.bystanders = (RolledBack,)


class Node(NamedTuple):
    """One record; ``owner`` is the session that it goes with."""

    value: bytes
    version: int
    owner: int | None


class Operation(NamedTuple):
    """One part of a transaction: create, set, delete or check; version -1 is any."""

    kind: str
    path: str
    value: bytes = b""
    version: int = -1
    is_ephemeral: bool = False


class Stat(NamedTuple):
    version: int


class Wanted(NamedTuple):
    """What somebody watches: a record, or which others there are below it."""

    path: str
    is_children: bool


Nodes = dict[str, Node]
Tell = Callable[[Wanted], None]


@dataclass(eq=False, slots=True)
class Connection:
    """One connection of a client: what is said on it comes in its order, each way."""

    process: Process
    life: int
    on_watch: Tell = lambda _wanted: None
    on_lost: Callable[[], None] = lambda: None
    is_open: bool = True
    is_taken_up: bool = False
    """Whether its client knows that it has a session."""
    to_server: Line = field(default_factory=Line)
    to_client: Line = field(default_factory=Line)
    session: int = 0


@dataclass(slots=True)
class _Session:
    heard_s: float
    connection: Connection
    seen: int
    """The last change that it knows of."""


class PlayedZooKeeper:
    """The ensemble. What it holds outlives its process."""

    def __init__(
        self, clockwork: Clockwork, cables: Cables, chance: Random, *, rate: float, timeout_s: float
    ) -> None:
        self.process = Process(REGISTRY, rate, is_up=True)
        self.nodes: Nodes = {}
        self.timeout_s = timeout_s
        self.on_change: Callable[[int | None, Nodes, Nodes], None] = lambda _session, _before, _after: None
        """Told of each change: in which session it was made, and what there is before and after it."""
        self._clockwork = clockwork
        self._cables = cables
        self._chance = chance
        self._sessions: dict[int, _Session] = {}
        self._last_session = 0
        self._changes = 0
        self._past: list[Nodes] = []
        """What there was before each of the last changes, the newest first."""
        self._watches: dict[Wanted, list[Connection]] = {}

    @property
    def now_s(self) -> float:
        return self._clockwork.now_s * self.process.rate

    def put(self, path: str, value: bytes) -> None:
        """Have a record there before all begins."""
        for each in ancestors(path):
            self.nodes.setdefault(each, Node(b"", 0, None))
        self.nodes[path] = Node(value, 0, None)

    def end(self, session: int) -> None:
        """End a session, and with it what is its own."""
        ended = self._sessions.pop(session, None)
        if ended is None:
            return
        nodes = {path: node for path, node in self.nodes.items() if not self._goes(node, session)}
        if len(nodes) < len(self.nodes):
            self._change(nodes, None)
        self.hang_up(ended.connection)

    def stand_still(self) -> None:
        self.process.is_frozen = True

    def go_on(self) -> None:
        """Have a leader again: nobody knows who was heard meanwhile, so all have their whole time."""
        if not self.process.is_frozen:
            return
        for session in self._sessions.values():
            session.heard_s = self.now_s
        self._clockwork.thaw(self.process, lambda waiting: waiting)

    def drop(self, process: Process) -> None:
        """The connections of this process break."""
        for session in [*self._sessions.values()]:
            if session.connection.process is process:
                self.hang_up(session.connection)

    # What clients ask

    def connect(self, connection: Connection, session: int) -> int | None:
        """Take a client up, in the session that it had or in a new one; None if that one is over."""
        if session and session not in self._sessions:
            return None
        if session:
            held = self._sessions[session]
            held.connection.is_open = False
            held.connection, held.heard_s = connection, self.now_s
        else:
            self._last_session = session = self._last_session + 1
            self._sessions[session] = _Session(self.now_s, connection, 0)
            self._look_after(session, self.timeout_s)
        connection.session = session
        return session

    def hear(self, connection: Connection) -> bool:
        """Whether who asks on this connection has a session, which is heard by that."""
        session = self._sessions.get(connection.session)
        if session is None or session.connection is not connection:
            return False
        session.heard_s = self.now_s
        return True

    def read(
        self, connection: Connection, wanted: Wanted, *, is_watched: bool
    ) -> tuple[Node | None, list[str]]:
        """A record and the names below it, as some server has them."""
        nodes = self._view(self._sessions[connection.session])
        node, names = nodes.get(wanted.path), _below(nodes, wanted.path)
        if is_watched:
            self._watch(connection, wanted, is_late=self._differs(wanted, nodes))
        return node, names

    def commit(self, connection: Connection, operations: Sequence[Operation]) -> list[object]:
        """Make all changes or none: for each of them what came of it."""
        nodes, results = dict(self.nodes), list[object]()
        for operation in operations:
            try:
                results.append(_apply(nodes, operation, connection.session))
            except (NoNode, NodeExists, BadVersion, NotEmpty) as error:
                rest = len(operations) - len(results) - 1
                return [*(RolledBack() for _ in results), error, *(RolledBack() for _ in range(rest))]
        if nodes != self.nodes:
            self._change(nodes, connection.session)
        self._sessions[connection.session].seen = self._changes
        return results

    # Inside

    def hang_up(self, connection: Connection) -> None:
        if connection.is_open:
            connection.is_open = False
            self.say(connection, connection.on_lost)

    def say(self, connection: Connection, do: Callable[[], None]) -> None:
        """Have a client hear something, after all that was said before."""
        way = (REGISTRY, connection.process.name)
        self._cables.say(way, connection.process, do, line=connection.to_client, life=connection.life)

    def _goes(self, node: Node, session: int) -> bool:
        return node.owner == session

    def _view(self, session: _Session) -> Nodes:
        behind = min(self._chance.choice(_BEHIND), self._changes - session.seen, len(self._past))
        session.seen = self._changes - behind
        return self._past[behind - 1] if behind else self.nodes

    def _differs(self, wanted: Wanted, nodes: Nodes) -> bool:
        if wanted.is_children:
            return _below(nodes, wanted.path) != _below(self.nodes, wanted.path)
        return nodes.get(wanted.path) != self.nodes.get(wanted.path)

    def _watch(self, connection: Connection, wanted: Wanted, *, is_late: bool) -> None:
        if is_late:
            # Its server comes to know of it a moment later.
            self._sessions[connection.session].seen = self._changes
            self._clockwork.after(0.0, lambda: self._tell(connection, wanted))
        else:
            self._watches.setdefault(wanted, []).append(connection)

    def _tell(self, connection: Connection, wanted: Wanted) -> None:
        if connection.is_open:
            if (session := self._sessions.get(connection.session)) is not None:
                session.seen = self._changes
            self.say(connection, lambda: connection.on_watch(wanted))

    def _change(self, nodes: Nodes, session: int | None) -> None:
        before, self.nodes = self.nodes, nodes
        self._changes += 1
        self._past = [before, *self._past[: max(_BEHIND) - 1]]
        self.on_change(session, before, nodes)
        changed = {path for path in before.keys() | nodes.keys() if before.get(path) != nodes.get(path)}
        born = {parent_of(path) for path in changed if (path in before) != (path in nodes)}
        for wanted in [*self._watches]:
            if wanted.path in (born if wanted.is_children else changed):
                for connection in self._watches.pop(wanted):
                    self._tell(connection, wanted)

    def _look_after(self, session: int, rest_s: float) -> None:
        """End a session when its time is over."""

        def look() -> None:
            held = self._sessions.get(session)
            if held is None:
                return
            left_s = held.heard_s + self.timeout_s - self.now_s
            if left_s > 0:
                self._look_after(session, left_s)
            else:
                self.end(session)

        self._clockwork.after(max(0.001, rest_s / self.process.rate), look, process=self.process)


def _below(nodes: Nodes, path: str) -> list[str]:
    above = f"{path}/"
    size = len(above)
    return [each[size:] for each in nodes if each.startswith(above) and "/" not in each[size:]]


def _apply(nodes: Nodes, operation: Operation, session: int) -> object:
    kind, path, value, version, is_ephemeral = operation
    node = nodes.get(path)
    if kind == "create":
        if node is not None:
            raise NodeExists(path)
        if parent_of(path) not in nodes and parent_of(path) != "/":
            raise NoNode(path)
        nodes[path] = Node(value, 0, session if is_ephemeral else None)
        return path
    if path == "/":
        return True
    if node is None:
        raise NoNode(path)
    if version not in {-1, node.version}:
        raise BadVersion(path)
    if kind == "set":
        nodes[path] = node._replace(value=value, version=node.version + 1)
    elif kind == "delete":
        if _below(nodes, path):
            raise NotEmpty(path)
        del nodes[path]
    return True
