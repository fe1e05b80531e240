"""The property string of a message: ``name 0x01 value 0x02 name 0x01 value 0x02 ...``.

Some writers leave out the last 0x02. A reader skips a segment that holds no 0x01, or has an empty
name or value (so every segment under 3 characters), and of two equal names the later one counts.

Bytes that are not UTF-8 are replaced, not refused, as RocketMQ does: such a string may lie in the
log, and a broker that stumbled over it could not serve what comes after it.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from tanist.errors import LocalProtocolError
from tanist.protocol.record import MAX_PROPERTIES_BYTES

Finder: TypeAlias = Callable[[bytes], bytes | None]
"""Finds the value of one property in a property string."""

NAME_END = "\x01"
VALUE_END = "\x02"

_NAME_END = NAME_END.encode()
_VALUE_END = VALUE_END.encode()
_FORBIDDEN = frozenset("\x00\x01\x02")


def decode_properties(raw: bytes | memoryview) -> dict[str, str]:
    """All properties, in the order in which their names first appear."""
    properties: dict[str, str] = {}
    for segment in str(raw, "utf-8", "replace").split(VALUE_END):
        name, _, value = segment.partition(NAME_END)
        if name and value:
            properties[name] = value
    return properties


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """The property string, with its last 0x02.

    A name or value that no reader could take back as it is (empty, or with a separator in it) is
    our mistake, and so is a NUL, by which the log knows what a crash lost.
    """
    parts: list[str] = []
    for name, value in properties.items():
        for text in (name, value):
            if not text or not _FORBIDDEN.isdisjoint(text):
                raise LocalProtocolError(
                    f"property {name!r} can not be sent; its name and value must not be empty, nor hold a "
                    "0x00, 0x01 or 0x02"
                )
        parts += (name, NAME_END, value, VALUE_END)
    try:
        raw = "".join(parts).encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError("a property holds a lone surrogate, which is no character") from error
    if len(raw) > MAX_PROPERTIES_BYTES:
        raise LocalProtocolError(
            f"properties of {len(raw)} bytes can not be sent; use at most {MAX_PROPERTIES_BYTES}"
        )
    return raw


def join_properties(first: bytes, second: bytes) -> bytes:
    """One property string after another, byte for byte; the first may lack its last 0x02."""
    is_closed = not first or first.endswith(_VALUE_END)
    return first + second if is_closed else first + _VALUE_END + second


def replace_properties(raw: bytes, changes: Mapping[str, str | None]) -> bytes:
    """The string with these values in place of whatever stood under their names; None takes a name out.

    All else stays byte for byte, also what could not be encoded here.
    """
    openings = tuple(name.encode() + _NAME_END for name in changes)
    kept = [segment for segment in raw.split(_VALUE_END) if segment and not segment.startswith(openings)]
    new = encode_properties({name: value for name, value in changes.items() if value is not None})
    return b"".join(segment + _VALUE_END for segment in kept) + new


def find_property(raw: bytes, name: str | bytes) -> bytes | None:
    """The value that decode_properties finds under ``name``, without decoding the rest."""
    finder = _finder_of(name)
    return None if finder is None else finder(raw)


def property_finder(name: str) -> Finder:
    """find_property for one name that is asked for again and again, as dispatch asks of every message."""
    finder = _finder_of(name)
    assert finder is not None
    return finder


@lru_cache(maxsize=256)
def _finder_of(name: str | bytes) -> Finder | None:
    """Finds one property; None if no segment can have this name."""
    raw_name = name.encode("utf-8", "replace") if isinstance(name, str) else name
    if not raw_name or _NAME_END in raw_name or _VALUE_END in raw_name:
        return None
    opening = raw_name + _NAME_END
    needle = _VALUE_END + opening
    opening_bytes, needle_bytes = len(opening), len(needle)

    def find(raw: bytes) -> bytes | None:
        # From the end, where the segment that counts is found first.
        found = raw.rfind(needle)
        while found >= 0:
            start = found + needle_bytes
            end = raw.find(_VALUE_END, start)
            if value := raw[start:] if end < 0 else raw[start:end]:
                return value
            # An empty value does not count, so an earlier segment of the same name still may.
            found = raw.rfind(needle, 0, found)
        if raw.startswith(opening):
            end = raw.find(_VALUE_END, opening_bytes)
            return (raw[opening_bytes:] if end < 0 else raw[opening_bytes:end]) or None
        return None

    return find
