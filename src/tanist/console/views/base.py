"""What all views share."""

from enum import StrEnum

import msgspec


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of what is shown: a page renders it, REST sends it as JSON with camelCase members."""


class Level(StrEnum):
    """How much something asks for an operator."""

    GOOD = "good"
    NOTE = "note"
    """Worth knowing, and nothing is wrong."""
    WARN = "warn"
    BAD = "bad"


_ORDER = list(Level)


def worst(*levels: Level) -> Level:
    """The one of these that asks most; GOOD of none."""
    return max(levels, key=_ORDER.index, default=Level.GOOD)
