"""The transactions that nobody has ended yet, and when to ask about each. Pure.

    half taken in --> OPEN --ended, asked for (a copy takes its place), given up--> done
                        \\--due--> in the shell's hands, which closes or postpones it

Halves are taken in from the half queue in its order, up to ``taken_to``. So the queue itself holds what
there is no room for here, and a million that hang cost no more memory than ``max_open`` of them. A half
may be ended before it is taken in: it is then remembered, with a bit, until its turn comes.

Invariant: every half before ``lowest_open`` is done with.
"""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from tanist.broker.transactions.offset_set import OffsetSet

MAX_OPEN = 1_000_000
_OFFSET_BITS = 63
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_SLACK = 1024


class HalfPlace(NamedTuple):
    """The half that stands for a transaction: where its first half lies, and its place in the half queue."""

    origin: int
    queue_offset: int


class OpenTransactions:
    """All open transactions of one broker, by origin and by the time to ask."""

    def __init__(self, *, taken_to: int = 0, ended: Iterable[int] = (), max_open: int = MAX_OPEN) -> None:
        """``ended`` are queue offsets that notes name: those halves are done with when their turn comes."""
        self.taken_to = taken_to
        self._max_open = max_open
        # In the order of their queue offsets, so the first is the lowest.
        self._open: dict[int, int] = {}
        # Time, queue offset and origin in one number each: a tuple would be thrice the size.
        self._due: list[int] = []
        self._ended = OffsetSet(ended)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_full(self) -> bool:
        return len(self._open) >= self._max_open

    @property
    def lowest_open(self) -> int:
        """The first half of the queue that may still matter."""
        return next(iter(self._open.values()), self.taken_to)

    @property
    def next_due_ms(self) -> int | None:
        """When ``on_tick`` has something to do again."""
        while self._due and not self._is_current(_unpack(self._due[0])[1]):
            heapq.heappop(self._due)
        return _unpack(self._due[0])[0] if self._due else None

    def on_half(self, half: HalfPlace, due_ms: int, *, first_queue_offset: int | None = None) -> int | None:
        """Take in the next half of the queue; the queue offset of the one whose place it takes, if any.

        RocketMQ says of some halves where the first one of their transaction lies, and notes only that.
        """
        assert half.queue_offset >= self.taken_to
        self.taken_to = half.queue_offset + 1
        former = self._open.pop(half.origin, None)
        is_first_ended = first_queue_offset is not None and first_queue_offset in self._ended
        if half.queue_offset not in self._ended and not is_first_ended:
            self._open[half.origin] = half.queue_offset
            self.postpone(half, due_ms)
        return former

    def skip_to(self, queue_offset: int) -> None:
        """The queue has nothing (any more) to take in before this offset."""
        self.taken_to = max(self.taken_to, queue_offset)

    def on_all_taken(self) -> None:
        """The queue has no half more. What notes said of those that were done with before goes too."""
        self._ended.forget_below(self.taken_to)

    def find(self, half: HalfPlace) -> HalfPlace | None:
        """The half that stands now for the transaction of this one; None if that is not open."""
        if (current := self._open.get(half.origin)) is not None:
            return HalfPlace(half.origin, current)
        is_ahead = half.queue_offset >= self.taken_to and half.queue_offset not in self._ended
        return half if is_ahead else None

    def on_closed(self, half: HalfPlace) -> None:
        """A half that ``find`` or ``on_tick`` returned is done with."""
        if self._is_current(half):
            del self._open[half.origin]
        else:
            self._ended.add(half.queue_offset)

    def on_tick(self, now_ms: int) -> HalfPlace | None:
        """Take out the next half that is due. It stays open until it is closed or postponed."""
        due_ms = self.next_due_ms
        if due_ms is None or due_ms > now_ms:
            return None
        return _unpack(heapq.heappop(self._due))[1]

    def postpone(self, half: HalfPlace, due_ms: int) -> None:
        """Let a half be due at a time."""
        assert self._is_current(half)
        heapq.heappush(self._due, _pack(max(due_ms, 0), half))
        if len(self._due) > 2 * len(self._open) + _SLACK:
            # Most end long before their time.
            self._due = [packed for packed in self._due if self._is_current(_unpack(packed)[1])]
            heapq.heapify(self._due)

    def _is_current(self, half: HalfPlace) -> bool:
        return self._open.get(half.origin) == half.queue_offset


def _pack(due_ms: int, half: HalfPlace) -> int:
    return (due_ms << _OFFSET_BITS | half.queue_offset) << _OFFSET_BITS | half.origin


def _unpack(packed: int) -> tuple[int, HalfPlace]:
    place = packed >> _OFFSET_BITS
    return place >> _OFFSET_BITS, HalfPlace(packed & _OFFSET_MASK, place & _OFFSET_MASK)
