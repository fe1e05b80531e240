"""Sends with the same sharding key go one after the other, in the order in which they were begun.

Brokers of RocketMQ handle the requests of one connection in several threads, and a send that fails is tried
again: of two sends that are on their way at the same time either may be stored first.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager

from tanist.client.errors import ClientClosed


class KeyTurns:
    """Who waits for whom. A key costs memory only while something with it is on its way."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncGenerator[None]:
        """Do the block when all that came before with this key is done."""
        await self.enter(key)
        try:
            yield
        finally:
            self.leave(key)

    async def enter(self, key: Hashable) -> None:
        """Wait until all that came before with this key have left."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(key)
            raise

    def leave(self, key: Hashable) -> None:
        """It is the next one's turn."""
        waiting = self._waiting.get(key)
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._waiting.pop(key, None)

    def close(self) -> None:
        """Nobody's turn comes any more."""
        for waiting in self._waiting.values():
            for turn in waiting:
                if not turn.done():
                    turn.set_exception(ClientClosed("producer"))
        self._waiting.clear()
