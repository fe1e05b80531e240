"""Where a group stands in each queue: the store that a consumer asks, and what both its kinds share.

A consumer moves offsets in memory, message by message, and the store takes them to where they last: to
the broker in clustering (``RemoteOffsets``), to a file in broadcasting (``LocalOffsets``).
"""

from collections.abc import Collection
from typing import Protocol

from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue


class OffsetStore(Protocol):
    """The next message to read in each queue."""

    async def load(self) -> None:
        """Get ready, once, before anything else."""
        ...

    def in_memory(self, queue: MessageQueue) -> QueueOffset | None:
        """What memory has; None if that is nothing."""
        ...

    async def read(self, queue: MessageQueue) -> QueueOffset | None:
        """What memory has or else the store; None if neither knows the queue. Changes nothing."""
        ...

    async def read_for_rebalance(self, queue: MessageQueue) -> QueueOffset | None:
        """Where to begin with a queue that is taken now; None if the group was never there.

        The offset is in memory then, and a freeze is over.
        """
        ...

    def update(self, queue: MessageQueue, offset: QueueOffset, *, increase_only: bool) -> None:
        """Move a queue's offset in memory: forward only, as acknowledgements do, or to any place."""
        ...

    def freeze(self, queue: MessageQueue, offset: QueueOffset) -> None:
        """Set a queue's offset and refuse every later ``update``, also once it is removed.

        This is for a reset: an acknowledgement that is under way can not undo it. Taking the queue
        again, ``read_for_rebalance``, ends it.
        """
        ...

    async def persist(self, queues: Collection[MessageQueue]) -> frozenset[MessageQueue]:
        """Make what memory has of these queues last. Without a queue nothing happens.

        Returns those that could not be persisted. Why is in the log, and the next call tries again.
        """
        ...

    def remove(self, queue: MessageQueue) -> None:
        """Forget a queue that is given up. What lasts of it stays."""
        ...


class OffsetMemory:
    """The offsets in memory, and which of them may not move."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, QueueOffset] = {}
        self._frozen: set[MessageQueue] = set()

    def find(self, queue: MessageQueue) -> QueueOffset | None:
        return self._offsets.get(queue)

    def copy(self) -> dict[MessageQueue, QueueOffset]:
        """All offsets as they are now. Another thread may ask."""
        return self._offsets.copy()

    def take(self, queue: MessageQueue, offset: QueueOffset | None) -> None:
        """Begin with a queue at what its store says; None: the store knows nothing."""
        self._frozen.discard(queue)
        if offset is None:
            self.forget(queue)
        else:
            self._offsets[queue] = offset

    def update(self, queue: MessageQueue, offset: QueueOffset, *, increase_only: bool) -> None:
        if queue in self._frozen:
            return
        known = self._offsets.get(queue)
        if known is None or offset > known or not increase_only:
            self._offsets[queue] = offset

    def freeze(self, queue: MessageQueue, offset: QueueOffset) -> None:
        self._frozen.add(queue)
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Drop an offset. A frozen queue stays so: what is under way for it is still to be refused."""
        self._offsets.pop(queue, None)
