"""The messages of all queues that wait to be worked on, in the order in which they came. Pure.

Each queue keeps its messages itself. Here is only how many of them are whose turn:

    put --> turns --take--> in hand --over--> gone, or back to the front
              |  ^
              v  |  its queue is paused, or given up soon, or read in order and not free
             held

In order means that a queue has at most one message in hand.
"""

from collections import deque

from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.received import ReceivedMessage


class ReadyMessages:
    """What ``take`` gives out. Queues that were dropped are passed over."""

    def __init__(self, *, is_orderly: bool) -> None:
        self._is_orderly = is_orderly
        self._turns: deque[tuple[OwnedQueue, int]] = deque()
        self.is_suspended = False
        """Nothing is given out while this is so."""

    def put(self, owned: OwnedQueue, count: int) -> None:
        """So many messages more came to a queue."""
        self._turns.append((owned, count))

    def put_again(self, owned: OwnedQueue, message: ReceivedMessage) -> None:
        """A message was taken and is not done: it is the next."""
        owned.cached.give_back([message])
        self._turns.appendleft((owned, 1))

    def release(self, owned: OwnedQueue) -> None:
        """What was held of a queue may be given out again."""
        if owned.held_count:
            self._turns.append((owned, owned.held_count))
            owned.held_count = 0

    def take(self, now_s: float) -> tuple[OwnedQueue, ReceivedMessage] | None:
        """The next message and its queue; None if there is none that may be given out."""
        turns = self._turns
        while turns and not self.is_suspended:
            owned, count = turns[0]
            if owned.is_blocked or (self._is_orderly and not self._is_free(owned, now_s)):
                turns.popleft()
                owned.held_count += count
                continue
            message = owned.cached.take()
            if count == 1 or message is None:
                turns.popleft()
            else:
                turns[0] = (owned, count - 1)
            if message is not None:
                owned.in_hand_count += 1
                if owned.on_first_taken is not None:
                    owned.on_first_taken(message.queue_offset)
                return owned, message
        return None

    @staticmethod
    def _is_free(owned: OwnedQueue, now_s: float) -> bool:
        return not owned.in_hand_count and now_s < owned.locked_until_s
