"""What a LIKE pattern matches: ``%`` any characters, ``_`` one, and everything else itself.

A pattern is cut at its ``%``. The first and last piece have their place; those between are looked
for from left to right, each as far left as it goes, which never misses a match. So a long text costs
one walk for each piece, where one regular expression for all might try every combination.
"""

import re
from collections.abc import Callable

ANY, ONE = "%", "_"


class BadPattern(ValueError):
    """A pattern in which the escape character stands before something that needs none, or at the end."""


def compile_like(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """A function that says whether a text matches. Raises BadPattern."""
    pieces = _split(pattern, escape)
    expressions = [
        re.compile("".join("." if one is None else re.escape(one) for one in piece), re.DOTALL)
        for piece in pieces
    ]
    first, between, last = expressions[0], expressions[1:-1], expressions[-1]
    if len(pieces) == 1:
        return lambda text: first.fullmatch(text) is not None
    first_chars, last_chars = len(pieces[0]), len(pieces[-1])

    def is_like(text: str) -> bool:
        start, end = first_chars, len(text) - last_chars
        if start > end or first.match(text) is None or last.match(text, end) is None:
            return False
        for expression in between:
            match = expression.search(text, start, end)
            if match is None:
                return False
            start = match.end()
        return True

    return is_like


def _split(pattern: str, escape: str | None) -> list[list[str | None]]:
    """The pieces between the ``%``, character by character; None for a ``_``."""
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for one in characters:
        if one == escape:
            meant = next(characters, "")
            if meant not in (ANY, ONE, escape):
                raise BadPattern
            pieces[-1].append(meant)
        elif one == ANY:
            pieces.append([])
        else:
            pieces[-1].append(None if one == ONE else one)
    return pieces
