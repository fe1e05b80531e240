"""The messages of one queue that were fetched and are not finished yet. Pure.

    fetched --add--> waiting --take--> taken --done--> gone
                        ^                |
                        +---give_back----+

``consumer_offset`` is what the group may commit: every message before it is finished, or was never for
this consumer. A dropped queue, and what was taken before a ``restart``, count for nothing any more:
somebody else, or the same consumer from another offset, goes on there.
"""

from collections import deque
from collections.abc import Sequence

from tanist.client.received import ReceivedMessage
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue


class CachedQueue:
    """One queue of one consumer. Every step costs the same on average, however many messages there are."""

    __slots__ = (
        "_bytes",
        "_is_dropped",
        "_last_offset",
        "_next_offset",
        "_order",
        "_unfinished",
        "_waiting",
        "queue",
    )

    def __init__(self, queue: MessageQueue, next_offset: QueueOffset) -> None:
        self.queue = queue
        self._is_dropped = False
        self._begin(next_offset)

    @property
    def next_offset(self) -> QueueOffset:
        """Where the next fetch begins."""
        return self._next_offset

    @property
    def is_dropped(self) -> bool:
        return self._is_dropped

    @property
    def consumer_offset(self) -> QueueOffset:
        """The smallest offset that is not finished; where to fetch next if all are."""
        order, unfinished = self._order, self._unfinished
        while order and order[0] not in unfinished:
            order.popleft()
        return order[0] if order else self._next_offset

    @property
    def count(self) -> int:
        """How many messages are not finished, taken or not."""
        return len(self._unfinished)

    @property
    def waiting_count(self) -> int:
        """How many messages nobody has taken yet."""
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        """The bytes of the bodies that are not finished."""
        return self._bytes

    @property
    def span(self) -> int:
        """How far messages were fetched beyond the first that is not finished: what a crash would repeat."""
        return self._last_offset - self.consumer_offset + 1 if self._unfinished else 0

    def add(
        self, messages: Sequence[ReceivedMessage], *, fetched_from: QueueOffset, next_offset: QueueOffset
    ) -> bool:
        """Take in what a fetch found, in order, and where to fetch then; whether it is still wanted.

        It is not if the queue was dropped or restarted while the fetch was under way.
        """
        if self._is_dropped or fetched_from != self._next_offset:
            return False
        assert next_offset >= fetched_from
        last_offset = self._last_offset
        for message in messages:
            offset = message.queue_offset
            assert last_offset < offset < next_offset
            last_offset = offset
            self._order.append(offset)
            self._unfinished[offset] = message
            self._bytes += len(message.body)
        self._waiting.extend(messages)
        self._last_offset = last_offset
        self._next_offset = next_offset
        return True

    def take(self) -> ReceivedMessage | None:
        """The first message that nobody has taken yet, if there is one."""
        return self._waiting.popleft() if self._waiting else None

    def give_back(self, messages: Sequence[ReceivedMessage]) -> None:
        """Have messages taken again, before all others, in the order in which they were taken."""
        unfinished = self._unfinished
        self._waiting.extendleft(
            message for message in reversed(messages) if unfinished.get(message.queue_offset) is message
        )

    def done(self, message: ReceivedMessage) -> bool:
        """Finish a message that was taken; whether that counted.

        It does not if the message is not the unfinished one of its offset: it was taken before a restart.
        """
        offset = message.queue_offset
        if self._unfinished.get(offset) is not message:
            return False
        del self._unfinished[offset]
        self._bytes -= len(message.body)
        return True

    def restart(self, next_offset: QueueOffset) -> None:
        """Forget all messages, and go on at another offset."""
        if not self._is_dropped:
            self._begin(next_offset)

    def drop(self) -> None:
        """Forget all messages: the queue is not ours any more. Its ``consumer_offset`` stays as it is."""
        self._begin(self.consumer_offset)
        self._is_dropped = True

    def _begin(self, next_offset: QueueOffset) -> None:
        # Offsets alone: a finished message behind one that is not must not stay in memory.
        self._order: deque[QueueOffset] = deque()
        self._unfinished: dict[QueueOffset, ReceivedMessage] = {}
        self._waiting: deque[ReceivedMessage] = deque()
        self._bytes = 0
        self._next_offset = next_offset
        self._last_offset = next_offset - 1
