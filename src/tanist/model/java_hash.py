"""Java's ``String.hashCode``: the number that tags and index keys are found by."""

import struct
from operator import mul

_WORD_MASK = 0xFFFFFFFF
_SIGN_BIT = 0x80000000

_PIECE_UNITS = 64
_FACTOR = 31
# For each length of a piece: what its place is worth, and what each of its units is.
_WEIGHTS = [
    (pow(_FACTOR, count, 1 << 32), [pow(_FACTOR, count - 1 - n, 1 << 32) for n in range(count)])
    for count in range(_PIECE_UNITS + 1)
]


def java_hash(text: str, *, before: int = 0) -> int:
    """The signed 32-bit hash of ``text``, taken over its UTF-16 code units as Java does.

    ``before`` is the hash of what stands before the text, if the hash of both together is wanted.
    """
    # The bytes of ASCII text are its code units; this is the path of nearly every tag and key.
    units = text.encode("ascii") if text.isascii() else _utf16_units(text)
    value = before
    # One sum of products a piece, as Java's loop would give it; twice as fast here as that loop.
    for start in range(0, len(units), _PIECE_UNITS):
        piece = units[start : start + _PIECE_UNITS]
        shift, weights = _WEIGHTS[len(piece)]
        value = (value * shift + sum(map(mul, piece, weights))) & _WORD_MASK
    value &= _WORD_MASK
    return value - (_WORD_MASK + 1) if value & _SIGN_BIT else value


def _utf16_units(text: str) -> tuple[int, ...]:
    # A lone surrogate is a code unit like any other: Java hashes it, so it must not fail here.
    encoded = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(encoded) // 2}H", encoded)
