"""Java's ``String.hashCode``: the number that tags and index keys are found by."""

import struct

_WORD_MASK = 0xFFFFFFFF
_SIGN_BIT = 0x80000000


def java_hash(text: str, *, before: int = 0) -> int:
    """The signed 32-bit hash of ``text``, taken over its UTF-16 code units as Java does.

    ``before`` is the hash of what stands before the text, if the hash of both together is wanted.
    """
    # The bytes of ASCII text are its code units; this is the path of nearly every tag and key.
    units = text.encode("ascii") if text.isascii() else _utf16_units(text)
    value = before & _WORD_MASK
    for unit in units:
        value = (31 * value + unit) & _WORD_MASK
    return value - (_WORD_MASK + 1) if value & _SIGN_BIT else value


def _utf16_units(text: str) -> tuple[int, ...]:
    # A lone surrogate is a code unit like any other: Java hashes it, so it must not fail here.
    encoded = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(encoded) // 2}H", encoded)
