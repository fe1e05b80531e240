"""kazoo as we use it: typed, and without its recipes, its retries and its waits.

kazoo works in threads of its own. Nothing here blocks but ``stop``; answers and events come in its threads,
and whoever is called takes them to the event loop. Some things are done to it that it has no option for: it
keeps the session timeout that it agreed on with the server to itself, does not notice that a server went
silent while there is something to send, and has waits that are too long or too short for short sessions.
"""

import contextlib
import importlib
import logging
import socket
from collections.abc import Callable
from typing import Any, Protocol

from tanist.errors import ConfigError

_log = logging.getLogger(__name__)

# kazoo tells of the timeout agreed on in terms of how long it waits for an answer: two thirds of it.
_READ_TIMEOUTS = 1.5
_MS = 1000.0

# Parts of a session timeout: for a host to take a connection, for the longest pause between tries to connect,
# and for a server to say something.
_CONNECT_PART = 1 / 6
_RETRY_PART = 1 / 6
_SILENT_PART = 1 / 3
_FIRST_RETRY_S = 0.05


class AsyncResult(Protocol):
    """An answer to come."""

    @property
    def value(self) -> Any: ...
    @property
    def exception(self) -> Exception | None: ...
    def rawlink(self, callback: Callable[["AsyncResult"], None]) -> None: ...


class Transaction(Protocol):
    """Several operations in one step."""

    def create(self, path: str, value: bytes, *, ephemeral: bool = False) -> None: ...
    def set_data(self, path: str, value: bytes, version: int) -> None: ...
    def delete(self, path: str, version: int) -> None: ...
    def check(self, path: str, version: int) -> None: ...
    def commit_async(self) -> AsyncResult: ...


WatchCallback = Callable[[Any], None]


class Operations(Protocol):
    """What can be asked of the server."""

    def get_async(self, path: str) -> AsyncResult: ...
    def exists_async(self, path: str, watch: WatchCallback) -> AsyncResult: ...
    def get_children_async(self, path: str, watch: WatchCallback | None = None) -> AsyncResult: ...
    def create_async(self, path: str, value: bytes) -> AsyncResult: ...
    def transaction(self) -> Transaction: ...


class Client(Protocol):
    """One client, with its session, as ``Kazoo`` is."""

    @property
    def timeout_s(self) -> float: ...
    @property
    def operations(self) -> Operations: ...
    def start(self) -> None: ...
    def drop_connection(self) -> None: ...
    def stop(self) -> None: ...


MakeClient = Callable[[str, float, Callable[[str], None]], Client]
"""Of the hosts, the session timeout, and whom to tell of the session's state."""


class Kazoo:
    """One kazoo client, with its session."""

    def __init__(self, hosts: str, timeout_s: float, on_state: Callable[[str], None]) -> None:
        """Make the client. ``on_state`` is called in its thread with CONNECTED, SUSPENDED or LOST."""
        self._timeout_s = timeout_s
        self._client = _module("client").KazooClient(
            hosts=hosts,
            timeout=timeout_s,
            handler=_make_handler(timeout_s),
            logger=_Quieter(_log, {}),
            connection_retry={"max_tries": -1, "delay": _FIRST_RETRY_S, "max_delay": timeout_s * _RETRY_PART},
        )
        self._client.add_listener(on_state)
        self._connect = self._client._connection._connect  # noqa: SLF001
        self._client._connection._connect = self._note_timeout  # noqa: SLF001

    @property
    def timeout_s(self) -> float:
        """The session timeout that the server granted, or the one that was asked for until then."""
        return self._timeout_s

    @property
    def operations(self) -> Operations:
        return self._client

    def start(self) -> None:
        """Have it connect, in its thread."""
        self._client.start_async()

    def drop_connection(self) -> None:
        """Have it look for another server, in the same session."""
        connection: socket.socket | None = self._client._connection._socket  # noqa: SLF001
        if connection is not None:
            # It may be closed since.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """End the session, and wait until the threads have ended. Not for the event loop."""
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:
            # Whatever it is, this client is of no use any more.
            _log.warning("kazoo did not stop error=%r", error)

    def _note_timeout(self, host: str, address: str, port: int) -> tuple[float, float]:
        read_timeout_ms, connect_timeout_ms = self._connect(host, address, port)
        self._timeout_s = read_timeout_ms * _READ_TIMEOUTS / _MS
        return read_timeout_ms, connect_timeout_ms


class KazooErrors:
    """The exceptions of kazoo that mean something here."""

    def __init__(self) -> None:
        errors = _module("exceptions")
        self.no_node: type[Exception] = errors.NoNodeError
        self.node_exists: type[Exception] = errors.NodeExistsError
        self.session_over: tuple[type[Exception], ...] = (
            errors.SessionExpiredError,
            errors.ConnectionClosedError,
        )
        self.refused: tuple[type[Exception], ...] = (
            errors.NoNodeError,
            errors.NodeExistsError,
            errors.BadVersionError,
            errors.NotEmptyError,
            errors.NoChildrenForEphemeralsError,
        )
        # What stands for the operations beside the one at fault.
        self.bystanders: tuple[type[Exception], ...] = (errors.RolledBackError, errors.RuntimeInconsistency)


class _Quieter(logging.LoggerAdapter[logging.Logger]):
    """Tells what kazoo does to whoever looks for faults only: it has several lines for each try to connect.

    How our session stands, and that nobody answers, is told by ourselves.
    """

    def log(self, level: int, msg: object, *args: Any, **options: Any) -> None:
        super().log(level if level >= logging.ERROR else min(level, logging.DEBUG), msg, *args, **options)


def _make_handler(timeout_s: float) -> Any:
    """What kazoo waits with, so that it waits for the right time."""
    handler = _module("handlers.threading").SequentialThreadingHandler()
    create_connection, select = handler.create_connection, handler.select

    def connect_soon(*args: object, **settings: object) -> object:
        # kazoo would wait a whole session for a host that is gone, and try the others when it is too late.
        return create_connection(*args, **{**settings, "timeout": timeout_s * _CONNECT_PART})

    def select_patiently(
        reads: object, writes: object, errors: object, wait_s: float | None = None
    ) -> object:
        # kazoo gives the answer to a ping as little as 10 ms, however long the session is.
        return select(
            reads, writes, errors, wait_s if wait_s is None else max(wait_s, timeout_s * _SILENT_PART)
        )

    handler.create_connection = connect_soon
    handler.select = select_patiently
    return handler


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"kazoo.{name}")
    except ImportError as error:
        raise ConfigError(
            "coordinator", "zk://", "SQLite, or install kazoo: pip install 'tanist[zookeeper]'"
        ) from error
