"""A watch that lasts, made of ZooKeeper's, which end with the first event and with the connection.

    ARMING --answers--> ARMED --event or connection back--> ARMING

The listener is called when the watch is armed, not when the event comes: whatever changes after its look is
told again.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from tanist.coord.kazoo_client import AsyncResult, KazooErrors, Operations


class Link(Protocol):
    """The way to the server."""

    def send(
        self, begin: Callable[[Operations], AsyncResult], done: Callable[[AsyncResult], None]
    ) -> bool: ...

    def to_loop(self, call: Callable[[], None]) -> None: ...


class _State(Enum):
    IDLE = "idle"
    ARMING = "arming"
    CLOSED = "closed"


class ZooKeeperWatch:
    """Whoever holds it has ``listener`` called after changes at a path, until it is closed."""

    def __init__(
        self,
        link: Link,
        path: str,
        *,
        errors: KazooErrors,
        listener: Callable[[], None],
        on_close: Callable[["ZooKeeperWatch"], None],
    ) -> None:
        self._link = link
        self._path = path
        self._errors = errors
        self._listener = listener
        self._on_close = on_close
        self._state = _State.IDLE
        self._unanswered = 0
        self._is_old = False
        self._has_failed = False

    def arm(self) -> None:
        """Ask to be told of the next change. What comes while that is under way has it asked for again."""
        if self._state is _State.ARMING:
            self._is_old = True
        elif self._state is _State.IDLE:
            self._is_old = self._has_failed = False
            for begin in (self._watch_record, self._watch_children):
                if self._link.send(begin, self._on_answer):
                    self._unanswered += 1
                    self._state = _State.ARMING

    def close(self) -> None:
        """End the calls."""
        if self._state is not _State.CLOSED:
            self._state = _State.CLOSED
            self._on_close(self)

    def _watch_record(self, operations: Operations) -> AsyncResult:
        return operations.exists_async(self._path, self._on_event)

    def _watch_children(self, operations: Operations) -> AsyncResult:
        return operations.get_children_async(self._path, self._on_event)

    def _on_event(self, _event: Any) -> None:
        # In a thread of kazoo; also when the connection is lost, when there is nobody to ask yet.
        self._link.to_loop(self.arm)

    def _on_answer(self, answer: AsyncResult) -> None:
        self._unanswered -= 1
        # Without a record there are no children to watch: its creation is an event of the record.
        if answer.exception is not None and not isinstance(answer.exception, self._errors.no_node):
            self._has_failed = True
        if self._unanswered or self._state is _State.CLOSED:
            return
        self._state = _State.IDLE
        if self._is_old:
            self.arm()
        elif not self._has_failed:
            self._listener()
