"""Bounds what is sent and not answered yet. Who comes when there is no room waits for its turn.

Without a bound a program that starts a million sends would fill the memory, and the last of them would
time out before they are even written.
"""

import asyncio
from collections import deque
from typing import TypeAlias

from tanist.client.errors import ClientClosed

MAX_COUNT = 1024
MAX_BYTES = 16 << 20

# who waits, size_bytes
_Waiting: TypeAlias = tuple[asyncio.Future[None], int]


class InFlight:
    """Sends on their way, bounded by count and bytes. A send that is larger than all the room goes alone."""

    def __init__(self, *, max_count: int = MAX_COUNT, max_bytes: int = MAX_BYTES) -> None:
        self.count = 0
        self.size_bytes = 0
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._waiting: deque[_Waiting] = deque()

    def enter_now(self, size_bytes: int) -> bool:
        """Take room if there is some and nobody waits for it; else ``enter`` waits."""
        if self._waiting or not self._has_room(size_bytes):
            return False
        self.count += 1
        self.size_bytes += size_bytes
        return True

    async def enter(self, size_bytes: int) -> None:
        """Wait for room, first come first served. It comes, as each send on its way has a deadline."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, size_bytes))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(size_bytes)
            raise

    def leave(self, size_bytes: int) -> None:
        """A send is over: give its room to those who wait."""
        self.count -= 1
        self.size_bytes -= size_bytes
        while self._waiting:
            turn, wanted_bytes = self._waiting[0]
            if not turn.done():
                if not self._has_room(wanted_bytes):
                    return
                self.count += 1
                self.size_bytes += wanted_bytes
                turn.set_result(None)
            self._waiting.popleft()

    def close(self) -> None:
        """Nobody's turn comes any more."""
        for turn, _ in self._waiting:
            if not turn.done():
                turn.set_exception(ClientClosed("producer"))
        self._waiting.clear()

    def _has_room(self, size_bytes: int) -> bool:
        return not self.count or (
            self.count < self._max_count and self.size_bytes + size_bytes <= self._max_bytes
        )
