"""A set of queue offsets that lie close together: a bit each. Pure.

As Python numbers they would take some hundred bytes each, and after a long time there may be millions.
"""

from collections.abc import Iterable

_BLOCK_BITS = 12
_BLOCK_BYTES = 1 << _BLOCK_BITS >> 3
_BIT_MASK = (1 << _BLOCK_BITS) - 1


class OffsetSet:
    """Offsets in blocks of 4,096, of which each takes half a KiB."""

    def __init__(self, offsets: Iterable[int] = ()) -> None:
        self._blocks: dict[int, bytearray] = {}
        for offset in offsets:
            self.add(offset)

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __contains__(self, offset: int) -> bool:
        block = self._blocks.get(offset >> _BLOCK_BITS)
        return block is not None and bool(block[(offset & _BIT_MASK) >> 3] & 1 << (offset & 7))

    def add(self, offset: int) -> None:
        number = offset >> _BLOCK_BITS
        if (block := self._blocks.get(number)) is None:
            block = self._blocks[number] = bytearray(_BLOCK_BYTES)
        block[(offset & _BIT_MASK) >> 3] |= 1 << (offset & 7)

    def forget_below(self, offset: int) -> None:
        """Forget the blocks in which all offsets are smaller."""
        first = offset >> _BLOCK_BITS
        for number in [number for number in self._blocks if number < first]:
            del self._blocks[number]
