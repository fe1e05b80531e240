"""The table of a server's or a client's open connections, and the round that looks after them."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator

from tanist.protocol.command import Command
from tanist.remoting.connection import Connection
from tanist.remoting.file_limit import first_kept_file
from tanist.remoting.held import HeldBytes
from tanist.remoting.line_budget import LineBudget
from tanist.remoting.settings import ConnectionLimits
from tanist.remoting.watch import CloseCause, look_interval_s

_log = logging.getLogger(__name__)

_ABORT_S = 1.0
_REASON_CHARS = 300
"""A reason may quote what the peer sent."""
_NOTABLE = {
    CloseCause.REFUSED,
    CloseCause.BAD_FRAME,
    CloseCause.BAD_TLS,
    CloseCause.HALF_FRAME,
    CloseCause.NOT_READING,
}
"""Ends that an operator should hear of; the others are the daily life of a connection."""


class Connections:
    """Every connection from its first moment to its last, closing ones included."""

    def __init__(
        self,
        limits: ConnectionLimits,
        *,
        max_count: int | None,
        max_held_bytes: int | None = None,
        on_open: Callable[[Connection], None] | None,
        on_close: Callable[[Connection], None] | None,
    ) -> None:
        self.closed: Counter[CloseCause] = Counter()
        """How many connections have ended, by cause."""
        self._limits = limits
        self._max_count = max_count
        self._max_file = first_kept_file()
        self._held: HeldBytes[Connection] | None = HeldBytes(max_held_bytes) if max_held_bytes else None
        self._on_open = on_open
        self._on_close = on_close
        self._members: set[Connection] = set()
        self._is_closing = False
        self._emptied = asyncio.Event()
        self._emptied.set()
        self._budget = LineBudget()
        self._mistake_budget = LineBudget()
        self._round: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._members

    def __iter__(self) -> Iterator[Connection]:
        """Over a copy: closing a connection may take it out at once."""
        return iter(list(self._members))

    def admit(self, connection: Connection, *, file_number: int) -> str | None:
        if self._is_closing:
            return "it came while we stop"
        if self._max_count is not None:
            if len(self._members) >= self._max_count:
                return f"there are {self._max_count} connections already"
            if file_number >= self._max_file:
                return f"{self._max_file} files are open already; raise the limit of open files (ulimit -n)"
        self._members.add(connection)
        self._emptied.clear()
        if self._round is None:
            self._next_round()
        _log.debug("connection open peer=%s", connection.peer)
        if self._on_open is not None:
            self._on_open(connection)
        return None

    def forget(self, connection: Connection, cause: CloseCause, reason: str) -> None:
        self.closed[cause] += 1
        self._log_end(connection, cause, reason)
        if connection not in self._members:
            return  # It was refused: nobody was told that it had opened.
        self._members.remove(connection)
        if self._held is not None:
            self._held.note(connection, 0)
        if not self._members:
            self._emptied.set()
            if self._round is not None:
                self._round.cancel()
                self._round = None
        if self._on_close is not None:
            self._on_close(connection)

    def note_held(self, connection: Connection, size_bytes: int) -> None:
        """Give up those who have had us hold the most memory for longest, if all together it is too much."""
        if self._held is None or connection not in self._members:
            return
        self._held.note(connection, size_bytes)
        if not self._held.is_over:
            return
        for slow in self._held.make_room(Connection.measure_held):
            slow.give_up(CloseCause.NOT_READING, "slow peers hold too much memory, and it is the slowest")

    def report_bad_input(self, connection: Connection, request: Command, reason: str) -> None:
        unwritten = self._budget.spend(asyncio.get_running_loop().time())
        if unwritten is not None:
            _log.warning(
                "request refused peer=%s code=%d reason=%s unwritten=%d",
                *(connection.peer, request.code, reason[:_REASON_CHARS], unwritten),
            )

    def report_mistake(self, connection: Connection, request: Command, error: Exception) -> None:
        unwritten = self._mistake_budget.spend(asyncio.get_running_loop().time())
        if unwritten is not None:
            _log.error(
                "handler failed peer=%s code=%d unwritten=%d",
                *(connection.peer, request.code, unwritten),
                exc_info=error,
            )

    async def close(self, grace_s: float, reason: str) -> None:
        """Close all: what was sent gets ``grace_s`` to leave, and is dropped after that."""
        self._is_closing = True
        for connection in self:
            connection.close(reason)
        if await self._is_emptied(grace_s):
            return
        for connection in self:
            connection.give_up(CloseCause.NOT_READING, "it did not take its last answers in time")
        # This needs nothing of the peers', only a turn of the loop.
        if not await self._is_emptied(_ABORT_S):
            _log.warning("connections left count=%d", len(self._members))

    async def _is_emptied(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._emptied.wait()
        except TimeoutError:
            return False
        return True

    def _next_round(self) -> None:
        loop = asyncio.get_running_loop()
        self._round = loop.call_later(look_interval_s(self._limits), self._look_after_all)

    def _look_after_all(self) -> None:
        self._next_round()
        now_s = asyncio.get_running_loop().time()
        for connection in self:
            connection.look(now_s)

    def _log_end(self, connection: Connection, cause: CloseCause, reason: str) -> None:
        if cause not in _NOTABLE:
            _log.debug("connection closed peer=%s cause=%s reason=%s", connection.peer, cause.name, reason)
            return
        unwritten = self._budget.spend(asyncio.get_running_loop().time())
        if unwritten is not None:
            _log.warning(
                "connection closed peer=%s cause=%s reason=%s unwritten=%d",
                *(connection.peer, cause.name, reason, unwritten),
            )
