"""Cuts an expression into tokens, where RocketMQ's SelectorParser.jj cuts it."""

import re
from enum import Enum
from typing import NamedTuple

MAX_EXPRESSION_CHARS = 8192
_SHOWN_CHARS = 40


class BadExpression(ValueError):
    """Text that is no filter: where it goes wrong, what was expected there and what was found."""

    def __init__(self, position: int, expected: str, found: str) -> None:
        super().__init__(f"character {position + 1}: expected {expected}, found {found}")
        self.position = position
        self.expected = expected
        self.found = found


class TokenKind(Enum):
    """What a token is. A keyword is a name to the lexer: only the parser knows which names it has to be."""

    NAME = "a name"
    STRING = "a string"
    WHOLE = "a whole number"
    FRACTION = "a number with a fraction"
    SIGN = "a sign"
    END = "the end"


class Token(NamedTuple):
    """One token, and where it begins. ``word`` is its text, in capitals if it is a name."""

    kind: TokenKind
    text: str
    word: str
    position: int

    def __str__(self) -> str:
        """How an error shows it."""
        return shown(self.text) if self.kind is not TokenKind.END else "the end of the expression"


def shown(text: str) -> str:
    """A piece of somebody's text, for an error: quoted and not too long."""
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")


# No alternative can be read in two ways, so that a text that fits none is given up in one walk.
_TOKEN = re.compile(
    r"""
    (?P<SKIPPED>[ \t\n\r\f]++ | /\*[^*]*+\*(?:\*|[^*/][^*]*+\*)*+/)
    | (?P<NAME>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<FRACTION>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)? | \.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+)
    | (?P<WHOLE>[1-9][0-9]*[lL]? | 0)
    | (?P<STRING>'[^']*(?:''[^']*)*')
    | (?P<SIGN><>|<=|>=|[=<>(),+*-]|/(?!\*))
    """,
    re.VERBOSE,
)
_LINE_END = re.compile(r"[\n\r]")
_UNENDED = {"'": "the quote that ends this string", "/": "the */ that ends this comment"}


def tokenize(text: str) -> list[Token]:
    """All tokens, and one for the end. Raises BadExpression for what can not be one."""
    if len(text) > MAX_EXPRESSION_CHARS:
        raise BadExpression(
            MAX_EXPRESSION_CHARS, f"at most {MAX_EXPRESSION_CHARS} characters", f"{len(text)} of them"
        )
    tokens: list[Token] = []
    position = 0
    last_line_end = max(text.rfind("\n"), text.rfind("\r"))
    while position < len(text):
        if position < last_line_end and text.startswith("--", position):
            # A comment. Without an end of its line it is none, as in RocketMQ: there are two signs then.
            match = _LINE_END.search(text, position)
            position = match.end() if match is not None else len(text)
            continue
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            expected = _UNENDED.get(text[position], "a name, value or sign")
            raise BadExpression(position, expected, shown(text[position:]))
        if match.lastgroup != "SKIPPED":
            kind, found = TokenKind[match.lastgroup], match.group()
            word = found.upper() if kind is TokenKind.NAME else found
            tokens.append(Token(kind, found, word, position))
        position = match.end()
    tokens.append(Token(TokenKind.END, "", "", len(text)))
    return tokens
