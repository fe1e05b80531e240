"""How texts become numbers and how numbers compare, as Java does it for RocketMQ.

A text is read as what it is compared with: ``a > 5`` wants a whole number of 32 bits in ``a``, a
greater literal one of 64 bits, and ``a > 5.0`` a double. A text that can not be read so fails the
whole expression, not just this comparison.
"""

import math
import re

INT32_LEAST, INT32_MOST = -(2**31), 2**31 - 1
INT64_LEAST, INT64_MOST = -(2**63), 2**63 - 1

_MAX_NUMBER_CHARS = 1000
"""A longer text is no number here. It would be in Java, but reading it over and over costs too much."""
_MAX_PLAIN_DIGITS = 18
"""So many digits fit 64 bits in any case."""

_WHOLE = re.compile(r"([+-]?)0*(\d{1,19})")
_DOUBLE = re.compile(
    r"""
    [+-]? (?:
        (?:[0-9]+(?:\.[0-9]*)? | \.[0-9]+) (?:[eE][+-]?[0-9]+)? (?P<suffix>[fFdD])?
        | NaN | Infinity
        | (?P<hex>0[xX] (?:[0-9a-fA-F]+\.? | [0-9a-fA-F]*\.[0-9a-fA-F]+) [pP][+-]?[0-9]+)
          (?P<hex_suffix>[fFdD])?
    )
    """,
    re.VERBOSE,
)
_TRIMMED = "".join(map(chr, range(0x21)))
"""What Java's trim takes away: blanks and all control characters."""


class Unjudgeable(Exception):
    """The expression makes no sense for this message, which is therefore not wanted."""


def read_int32(text: str) -> int:
    value = read_int64(text)
    if not INT32_LEAST <= value <= INT32_MOST:
        raise Unjudgeable(text)
    return value


def read_int64(text: str) -> int:
    if len(text) <= _MAX_PLAIN_DIGITS and text.isdecimal():
        return int(text)
    match = _WHOLE.fullmatch(text) if len(text) <= _MAX_NUMBER_CHARS else None
    if match is None:
        raise Unjudgeable(text)
    return checked_int64(int(match[1] + match[2]))


def read_double(text: str) -> float:
    match = _DOUBLE.fullmatch(text.strip(_TRIMMED)) if len(text) <= _MAX_NUMBER_CHARS else None
    if match is None:
        raise Unjudgeable(text)
    found = match[0]
    if match["suffix"] or match["hex_suffix"]:
        found = found[:-1]
    if not match["hex"]:
        return float(found)
    try:
        return float.fromhex(found)
    except OverflowError:
        return -math.inf if found.startswith("-") else math.inf


def read_number(text: str) -> int | float:
    """A text in a computation: whole if it can be, else a double."""
    try:
        return read_int64(text)
    except Unjudgeable:
        return read_double(text)


def read_truth(text: str) -> bool:
    """Everything but ``true``, in whatever case, is false."""
    return text.lower() == "true"


def checked_int64(value: int) -> int:
    if not INT64_LEAST <= value <= INT64_MOST:
        raise Unjudgeable(value)
    return value


def compare_whole(left: int, right: int) -> int:
    """Less than 0, 0, or more than 0, as ``left`` is less than ``right``, the same, or more."""
    return (left > right) - (left < right)


def compare_numbers(left: float, right: float) -> int:
    """The same for any two numbers; a double beside it makes the other one a double."""
    if not isinstance(left, float) and not isinstance(right, float):
        return compare_whole(left, right)
    left, right = float(left), float(right)
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right != 0:
        return 0
    # Java's order has a place for these too: -0.0 before 0.0, and NaN behind everything.
    return compare_whole(_rank(left), _rank(right))


def _rank(value: float) -> int:
    if math.isnan(value):
        return 2
    return 1 if math.copysign(1, value) > 0 else 0
