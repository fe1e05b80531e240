"""What a LIKE pattern matches: ``%`` any characters, ``_`` one, and everything else itself.

A pattern is cut at its ``%``. The first and last piece have their place; those between are looked
for from left to right, each as far left as it goes, which never misses a match. So a long text costs
one walk for all pieces, where one regular expression for all might try every combination.

A ``_`` at the edge of a piece between is only a character to pass over. One that stands inside has
every place of the text compared with the whole piece, so such a piece must be short.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

ANY, ONE = "%", "_"
MAX_GAPPED_CHARS = 16
"""How long a piece between two ``%`` may be that has a ``_`` inside."""

_Piece: TypeAlias = list[str | None]
_Search: TypeAlias = Callable[[str, int, int], int]
"""Where a piece ends that is looked for between two places of a text; -1 if it is not there."""


class BadPattern(ValueError):
    """A pattern that is not understood, or would take too long. Says what was expected."""


def compile_like(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """A function that says whether a text matches. Raises BadPattern."""
    pieces = _split(pattern, escape)
    first, last = _expression(pieces[0]), _expression(pieces[-1])
    if len(pieces) == 1:
        return lambda text: first.fullmatch(text) is not None
    searches = [_search(piece) for piece in pieces[1:-1]]
    first_chars, last_chars = len(pieces[0]), len(pieces[-1])

    def is_like(text: str) -> bool:
        start, end = first_chars, len(text) - last_chars
        if start > end or first.match(text) is None or last.match(text, end) is None:
            return False
        for search in searches:
            start = search(text, start, end)
            if start < 0:
                return False
        return True

    return is_like


def _search(piece: _Piece) -> _Search:
    core = [*piece]
    while core and core[-1] is None:
        core.pop()
    trailing = len(piece) - len(core)
    while core and core[0] is None:
        core.pop(0)
    leading = len(piece) - trailing - len(core)
    letters = "".join(one for one in core if one is not None)
    expression = None
    if len(letters) < len(core):
        if len(core) > MAX_GAPPED_CHARS:
            raise BadPattern(f"at most {MAX_GAPPED_CHARS} characters between two % around a _")
        expression = _expression(core)

    def search(text: str, start: int, end: int) -> int:
        start, end = start + leading, end - trailing
        if start > end:
            return -1
        if expression is None:
            found = text.find(letters, start, end)
            return -1 if found < 0 else found + len(letters) + trailing
        match = expression.search(text, start, end)
        return -1 if match is None else match.end() + trailing

    return search


def _expression(piece: _Piece) -> re.Pattern[str]:
    return re.compile("".join("." if one is None else re.escape(one) for one in piece), re.DOTALL)


def _split(pattern: str, escape: str | None) -> list[_Piece]:
    """The pieces between the ``%``, character by character; None for a ``_``."""
    pieces: list[_Piece] = [[]]
    characters = iter(pattern)
    for one in characters:
        if one == escape:
            meant = next(characters, "")
            if meant not in (ANY, ONE, escape):
                raise BadPattern(f"%, _ or another {escape!r} behind every {escape!r}")
            pieces[-1].append(meant)
        elif one == ANY:
            pieces.append([])
        else:
            pieces[-1].append(None if one == ONE else one)
    return pieces
