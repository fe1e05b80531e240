"""The offsets of a group in clustering: its brokers keep them, so that any member can go on.

Memory holds what this member has done with its queues. Rebalance reads the broker instead: another
member may have had the queue meanwhile, and somebody may have reset it.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection
from typing import Protocol

from tanist.client.offsets.offset_store import OffsetMemory
from tanist.clock import Clock
from tanist.errors import MQError
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.response_errors import NotReadable

RECOMMIT_S = 25.0
"""After this time an offset is committed again that has not moved.

A broker that crashed may have lost what it was told last. Persisting every 5 s, as consumers do, it
hears every offset within 30 s.
"""
MAX_COMMITS = 32
"""How many commits are under way at a time; the others wait for their turn."""

_log = logging.getLogger(__name__)


class CommittedOffsets(Protocol):
    """The brokers, as far as they keep offsets. Both calls end in time, with an MQError if need be."""

    async def query(self, queue: MessageQueue) -> int | None:
        """The offset that the group committed; None if it never did."""
        ...

    async def commit(self, queue: MessageQueue, offset: int) -> None: ...


class RemoteOffsets:
    """An OffsetStore on the brokers.

    >>> async def acknowledge(offsets: RemoteOffsets, queue: MessageQueue, read_to: QueueOffset) -> None:
    ...     offsets.update(queue, read_to, increase_only=True)
    ...     await offsets.persist([queue])
    """

    def __init__(self, committed: CommittedOffsets, clock: Clock) -> None:
        self._committed = committed
        self._clock = clock
        self._memory = OffsetMemory()
        self._confirmed: dict[MessageQueue, tuple[QueueOffset, float]] = {}
        """What the broker is known to have, and since when."""
        self._slots = asyncio.Semaphore(MAX_COMMITS)
        # One commit of a queue at a time, or an older offset could arrive last. Kept when a queue is
        # removed: its last commit may still be under way when the queue comes back.
        self._turns: defaultdict[MessageQueue, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def load(self) -> None:
        """The brokers have it all: there is nothing to do."""

    def in_memory(self, queue: MessageQueue) -> QueueOffset | None:
        return self._memory.find(queue)

    async def read(self, queue: MessageQueue) -> QueueOffset | None:
        found = self._memory.find(queue)
        return await self._query(queue) if found is None else found

    async def read_for_rebalance(self, queue: MessageQueue) -> QueueOffset | None:
        async with self._turns[queue]:
            offset = await self._query(queue)
            self._memory.take(queue, offset)
            if offset is None:
                self._confirmed.pop(queue, None)
            else:
                self._confirmed[queue] = offset, self._clock.monotonic_s()
            return offset

    def update(self, queue: MessageQueue, offset: QueueOffset, *, increase_only: bool) -> None:
        self._memory.update(queue, offset, increase_only=increase_only)

    def freeze(self, queue: MessageQueue, offset: QueueOffset) -> None:
        self._memory.freeze(queue, offset)
        # To be committed in any case: what the broker was told before may be what is to be undone.
        self._confirmed.pop(queue, None)

    async def persist(self, queues: Collection[MessageQueue]) -> frozenset[MessageQueue]:
        """Commit what moved, and what the broker was told too long ago."""
        due = [queue for queue in dict.fromkeys(queues) if self._is_due(queue)]
        async with asyncio.TaskGroup() as tasks:
            commits = {queue: tasks.create_task(self._commit(queue)) for queue in due}
        failures = {queue: error for queue, commit in commits.items() if (error := commit.result())}
        if failures:
            queue, error = next(iter(failures.items()))
            # While nobody of a group is read, which happens whenever its reader changes, they wait.
            level = logging.INFO if isinstance(error, NotReadable) else logging.WARNING
            _log.log(level, "offsets not committed queues=%d first=%s error=%s", len(failures), queue, error)
        return frozenset(failures)

    def remove(self, queue: MessageQueue) -> None:
        self._memory.forget(queue)

    async def _commit(self, queue: MessageQueue) -> Exception | None:
        """Commit one queue and return why it failed, so that it stops no other."""
        async with self._turns[queue], self._slots:
            # Somebody may have committed or removed it while this waited.
            offset = self._memory.find(queue)
            if offset is None or not self._is_due(queue):
                return None
            # If no answer comes, nobody knows what the broker has.
            self._confirmed.pop(queue, None)
            try:
                await self._committed.commit(queue, offset)
            except (MQError, OSError) as error:
                return error
            self._confirmed[queue] = offset, self._clock.monotonic_s()
            return None

    def _is_due(self, queue: MessageQueue) -> bool:
        offset = self._memory.find(queue)
        if offset is None:
            return False
        confirmed, since_s = self._confirmed.get(queue, (None, 0.0))
        return offset != confirmed or self._clock.monotonic_s() - since_s >= RECOMMIT_S

    async def _query(self, queue: MessageQueue) -> QueueOffset | None:
        offset = await self._committed.query(queue)
        # A broker may answer with a negative offset, which means none.
        return None if offset is None or offset < 0 else QueueOffset(offset)
