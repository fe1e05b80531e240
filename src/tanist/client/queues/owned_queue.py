"""One queue that a consumer reads: what its pull, its delivery and its rebalance have to know of it."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

from tanist.client.queues.cached_queue import CachedQueue
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue


class OwnedQueue:
    """A queue from the moment it is taken until it is dropped; taken again, it is another one.

    So whatever is still under way for a queue that was dropped finds the old one, and changes nothing.
    """

    def __init__(self, queue: MessageQueue, start: QueueOffset, *, locked_until_s: float = math.inf) -> None:
        """``locked_until_s`` is how long a queue that is read in order is ours alone."""
        self.queue = queue
        self.start = start
        self.cached = CachedQueue(queue, start)
        self.locked_until_s = locked_until_s
        self.is_paused = False
        self.is_leaving = False
        """It is to be given up as soon as nobody works on its messages."""
        self.in_hand_count = 0
        """How many messages somebody works on now."""
        self.held_count = 0
        """How many messages are there, and may not be handed out yet."""
        self.wake_pull = asyncio.Event()
        """Set when there may be room again, or another reason to pull."""
        self.is_full = False
        """The pull waits for room."""
        self.wake_at_count = 0
        """With how many unfinished messages there is room enough."""
        self.on_first_taken: Callable[[QueueOffset], None] | None = None
        """Told the offset of the first message that somebody takes, if anybody wants to know."""
        self.pull: asyncio.Task[Any] | None = None
        self.locked_ms = self.pulled_ms = self.consumed_ms = 0

    @property
    def is_dropped(self) -> bool:
        return self.cached.is_dropped

    @property
    def is_blocked(self) -> bool:
        """Whether its messages stay where they are for now."""
        return self.is_paused or self.is_leaving

    def drop(self) -> None:
        """It is not ours any more: nothing is handed out, and what ends from now on does not count."""
        self.cached.drop()
        if self.pull is not None and self.pull is not asyncio.current_task():
            self.pull.cancel()
