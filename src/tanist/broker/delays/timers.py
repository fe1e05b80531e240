"""Messages with a time of their own: which of them wait, and what to write down so that a crash loses none.

All lie in one queue, in the order in which they came. Each belongs to the slot of its time, and a slot
is delivered when it has passed.

    taken_to    the timer knows every message of the queue before this offset
    read_ms     of those, all whose slot is earlier are delivered

These two are the checkpoint. After a restart the queue is read again from the first message that may
still wait. What the checkpoint calls delivered is passed over; the rest waits, or is late and comes at
once. Until all is read again the old checkpoint stays, because the new one would call it all undelivered.

Pure. Memory is one number a message: slot and queue offset in one, smallest first.
"""

import heapq
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tanist.model.timer_progress import TimerProgress

_OFFSET_BITS = 44
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_BLOCK_BITS = 12
"""How many messages are counted together to find the first one that waits: 4,096."""


class TimerSchedule:
    """The timer messages of one broker."""

    def __init__(self, progress: TimerProgress, *, precision_ms: int) -> None:
        self.precision_ms = precision_ms
        self.before = progress
        """Where an earlier process has left off."""
        self._heap: list[int] = []
        self._block_counts: dict[int, int] = {}
        self._cancelled: dict[int, set[bytes]] = {}
        self._change_count = 0
        self.read_to = progress.first_waiting
        """The next message of the queue that the timer has to take."""

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def state_count(self) -> tuple[int, int]:
        """Differs whenever there is something new to write down."""
        return self._change_count, self.read_to

    @property
    def next_wake_ms(self) -> int | None:
        """When the next message is due; None if none waits."""
        return (self._heap[0] >> _OFFSET_BITS) + self.precision_ms if self._heap else None

    def on_opened(self, *, min_offset: int, max_offset: int) -> None:
        """The queue has these bounds: what is not in it can not be taken any more."""
        self.before = replace(self.before, taken_to=min(self.before.taken_to, max_offset))
        self.read_to = min(max(self.read_to, min_offset), max_offset)

    def is_settled(self, queue_offset: int, slot_ms: int) -> bool:
        """Whether an earlier process has delivered the message already, or its timer was over unused."""
        return queue_offset < self.before.taken_to and slot_ms < self.before.read_ms

    def take(self, queue_offset: int, slot_ms: int) -> None:
        """Let a message wait for its slot."""
        assert 0 <= queue_offset <= _OFFSET_MASK
        self._change_count += 1
        heapq.heappush(self._heap, slot_ms << _OFFSET_BITS | queue_offset)
        block = queue_offset >> _BLOCK_BITS
        self._block_counts[block] = self._block_counts.get(block, 0) + 1

    def cancel(self, slot_ms: int, key: bytes) -> None:
        """Have the message of this key dropped, which waits for the same slot."""
        self._cancelled.setdefault(slot_ms, set()).add(key)

    def cancelled_in(self, slot_ms: int) -> AbstractSet[bytes]:
        """The keys of the messages of a slot that are not to be delivered."""
        return self._cancelled.get(slot_ms, frozenset())

    def next_due(self, now_ms: int) -> tuple[int, int] | None:
        """The queue offset and the slot of the next message to deliver; None if none is due yet."""
        due_ms = self.next_wake_ms
        if due_ms is None or due_ms > now_ms:
            return None
        return self._heap[0] & _OFFSET_MASK, self._heap[0] >> _OFFSET_BITS

    def on_delivered(self) -> None:
        """The message that ``next_due`` told last is in the log, or can not be delivered."""
        self._change_count += 1
        done = heapq.heappop(self._heap)
        block = (done & _OFFSET_MASK) >> _BLOCK_BITS
        self._block_counts[block] -= 1
        if not self._block_counts[block]:
            del self._block_counts[block]
        slot_ms = done >> _OFFSET_BITS
        if not self._heap or self._heap[0] >> _OFFSET_BITS != slot_ms:
            self._cancelled.pop(slot_ms, None)

    def progress(self, now_ms: int) -> TimerProgress | None:
        """What to write down now; None while the queue is not read again up to where it was."""
        if self.read_to < self.before.taken_to:
            return None
        earliest_ms = min(now_ms, self._heap[0] >> _OFFSET_BITS) if self._heap else now_ms
        # Blocks come in the order of the queue, so the first is the lowest.
        first_block = next(iter(self._block_counts), None)
        return TimerProgress(
            read_ms=earliest_ms // self.precision_ms * self.precision_ms,
            taken_to=self.read_to,
            first_waiting=self.read_to if first_block is None else first_block << _BLOCK_BITS,
        )
