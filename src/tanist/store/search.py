"""Finds where the entries of an index end, in files that a crash may have torn."""

from bisect import bisect_left
from collections.abc import Callable


def first_lost(numbers: range, is_lost: Callable[[int], bool]) -> int:
    """The first of ``numbers`` for which ``is_lost`` holds, one past them if there is none.

    It holds for that one and all behind it, with an exception: an entry that lies across two sectors,
    of which the disk wrote only one, may look like any. Its neighbours then tell: no kept entry has a
    lost one before it.
    """
    count = bisect_left(numbers, 1, key=is_lost)
    while count > 1 and is_lost(numbers[count - 2]):
        count = bisect_left(numbers[: count - 2], 1, key=is_lost)
    return numbers.start + count
