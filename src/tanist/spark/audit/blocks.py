"""Blocks of the log: their hashes, the tree over them, and the first byte in which two logs differ.

Byte ``n`` of the log is in block ``n // BLOCK_BYTES`` counted from the start of the range. A leaf is the
SHA-256 of a block; two neighbours make their parent, a last one without a neighbour goes up as it is; the
root stands for the whole range. Leaves and parents are hashed with different first bytes, so that none can
be taken for the other.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tanist.spark.arrow import Bytes

BLOCK_BYTES = 1 << 20

_LEAF = b"\x00"
_PARENT = b"\x01"

ReadRange = Callable[[int, int], Bytes]
"""Reads so many bytes of a log from a log offset on; fewer where it ends."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte in which two logs differ, and what stands there in each; None: nothing does."""

    log_offset: int
    first: int | None
    second: int | None
    other: int = 0
    """Which of the other logs it is that differs from the first."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of comparing a part: the leaves of the first log, and where another is different first."""

    leaves: tuple[bytes, ...]
    difference: Difference | None
    different_blocks: int


def leaf(block: Bytes) -> bytes:
    hashed = hashlib.sha256(_LEAF)
    hashed.update(block.data)
    return hashed.digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root of the tree over these leaves; that of no leaves is the hash of nothing."""
    level = list(leaves) or [hashlib.sha256(_LEAF).digest()]
    while len(level) > 1:
        parents = [_parent(one, other) for one, other in zip(level[::2], level[1::2], strict=False)]
        level = parents + level[2 * len(parents) :]
    return level[0]


def _parent(one: bytes, other: bytes) -> bytes:
    return hashlib.sha256(_PARENT + one + other).digest()


def leaves_of(read: ReadRange, start: int, end: int) -> Iterator[bytes]:
    """The leaves of one log."""
    for place in range(start, end, BLOCK_BYTES):
        yield leaf(read(place, min(BLOCK_BYTES, end - place)))


def compare(first: ReadRange, others: Sequence[ReadRange], start: int, end: int) -> Compared:
    """Compare a part of a log with the same part of others, block by block."""
    leaves: list[bytes] = []
    difference: Difference | None = None
    count = 0
    for place in range(start, end, BLOCK_BYTES):
        size = min(BLOCK_BYTES, end - place)
        ours = first(place, size)
        leaves.append(leaf(ours))
        found = [
            _first_difference(ours, theirs, place, number)
            for number, theirs in enumerate(other(place, size) for other in others)
            if not np.array_equal(ours, theirs)
        ]
        count += bool(found)
        difference = difference or min(found, key=lambda one: one.log_offset, default=None)
    return Compared(tuple(leaves), difference, count)


def _first_difference(first: Bytes, second: Bytes, place: int, other: int) -> Difference:
    both = min(len(first), len(second))
    differing = np.flatnonzero(first[:both] != second[:both])
    at = int(differing[0]) if len(differing) else both
    ours, theirs = (int(one[at]) if at < len(one) else None for one in (first, second))
    return Difference(place + at, ours, theirs, other)
