"""The address patterns of plain_acl.yml: which peers need no signature.

``*`` is everybody. ``10.0.0.1`` and ``2001:db8::1`` are one address; ``10.0.0.1,10.0.0.2`` and
``10.0.0.{1,2}`` are several. In ``10.0.1-9.*`` and ``2001:db8::1-ff:*`` a part is a range or open.

Every part counts. RocketMQ looks at the first range only and lets in whatever follows it.
"""

import struct
from dataclasses import dataclass

_EVERYBODY = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
_V4_PARTS = struct.Struct("4B")
_V6_PARTS = struct.Struct(">8H")


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """One pattern: the lowest and highest value of each part, or no parts for everybody."""

    parts: tuple[tuple[int, int], ...]

    def matches(self, address: bytes) -> bool:
        """Whether this packed address of 4 or 16 bytes is meant."""
        if not self.parts:
            return True
        layout = _V4_PARTS if len(self.parts) == 4 else _V6_PARTS
        if len(address) != layout.size:
            return False
        values = layout.unpack(address)
        return all(low <= value <= high for value, (low, high) in zip(values, self.parts, strict=True))


def parse_patterns(text: str) -> tuple[AddressPattern, ...]:
    """The patterns that one entry stands for; none if it is blank. Raises ValueError."""
    text = text.strip()
    if not text:
        return ()
    if text in _EVERYBODY:
        return (AddressPattern(()),)
    if text.endswith("}") and "{" in text:
        head, _, choices = text[:-1].partition("{")
        return tuple(_parse_one(head + choice.strip()) for choice in choices.split(","))
    return tuple(_parse_one(one.strip()) for one in text.split(","))


def _parse_one(text: str) -> AddressPattern:
    try:
        parts = _v6_parts(text) if ":" in text else _v4_parts(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no address: {error}") from error
    return AddressPattern(parts)


def _v4_parts(text: str) -> tuple[tuple[int, int], ...]:
    words = text.split(".")
    if len(words) != 4:
        raise ValueError("it has not 4 parts")
    return tuple(_range(word, base=10, most=0xFF) for word in words)


def _v6_parts(text: str) -> tuple[tuple[int, int], ...]:
    head, gap, tail = text.partition("::")
    words = head.split(":") if head else []
    rest = tail.split(":") if tail else []
    if gap:
        words += ["0"] * (8 - len(words) - len(rest))
    words += rest
    if len(words) != 8:
        raise ValueError("it has not 8 parts")
    return tuple(_range(word, base=16, most=0xFFFF) for word in words)


def _range(word: str, *, base: int, most: int) -> tuple[int, int]:
    if word == "*":
        return 0, most
    first, dash, last = word.partition("-")
    low = _number(first, base)
    high = _number(last, base) if dash else low
    if not low <= high <= most:
        raise ValueError(f"{word} is out of range")
    return low, high


def _number(digits: str, base: int) -> int:
    # int() takes signs, spaces and underscores too.
    if not digits.isascii() or not digits.isalnum():
        raise ValueError(f"{digits!r} is no number")
    return int(digits, base)
