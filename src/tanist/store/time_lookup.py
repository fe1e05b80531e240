"""From a time to a queue offset, by RocketMQ 5's boundary rules. Pure: the times are asked for.

Store times in a queue grow with its offsets, so this is a binary search. LOWER gives the first
message stored at or after the time, and one past the last if there is none; UPPER the last message
stored at or before it, and the queue's start if there is none.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from enum import Enum

from tanist.model.offsets import QueueOffset


class Boundary(Enum):
    """Which of the messages around a time is meant; the wire uses the names."""

    LOWER = "LOWER"
    UPPER = "UPPER"


def offset_at_time(
    time_of: Callable[[int], int], timestamp_ms: int, *, min_offset: int, max_offset: int, boundary: Boundary
) -> QueueOffset:
    """The offset in ``[min_offset, max_offset]`` for a time; ``time_of`` tells when an offset was stored."""
    offsets = range(min_offset, max_offset)
    if boundary is Boundary.LOWER:
        return QueueOffset(min_offset + bisect_left(offsets, timestamp_ms, key=time_of))
    return QueueOffset(max(min_offset, min_offset + bisect_right(offsets, timestamp_ms, key=time_of) - 1))
