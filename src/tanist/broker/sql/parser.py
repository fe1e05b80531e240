"""Builds the tree of an expression, or says where it goes wrong.

What binds, from the loosest to the tightest; LIKE and arithmetic stand where SQL has them:

    OR  |  AND  |  = <> IS  |  > >= < <= BETWEEN IN LIKE CONTAINS ...  |  + -  |  * /  |  + - NOT in front

NOT takes only what stands next to it: ``NOT a = 1`` is ``(NOT a) = 1``. So it is in RocketMQ.
"""

import math
from dataclasses import dataclass

from tanist.broker.sql.like import BadPattern, compile_like
from tanist.broker.sql.nodes import (
    And,
    Arithmetic,
    Between,
    Claim,
    Comparator,
    Comparison,
    Computation,
    Find,
    Fraction,
    In,
    IsNull,
    Like,
    Negative,
    Node,
    Not,
    Or,
    Property,
    Search,
    Text,
    Truth,
    Whole,
    children,
)
from tanist.broker.sql.tokens import BadExpression, Token, TokenKind, tokenize
from tanist.broker.sql.values import INT64_MOST, compare_numbers

MAX_DEPTH = 64
"""How deeply parentheses and operators may be nested. Chains of AND and OR count as one, however long."""
MAX_COST = 500
"""How many nodes an expression may have; each character of a LIKE pattern counts as one."""

_OR, _AND, _EQUALITY, _COMPARISON, _SUM, _PRODUCT = range(1, 7)
_COMPARATORS = {one.value: one for one in Comparator}
_ARITHMETIC = {one.value: one for one in Arithmetic}
_SEARCHES = {one.value: one for one in Search}
_TRUTHS = {"TRUE": Truth(True), "FALSE": Truth(False), "NULL": Truth(None)}
_POWERS = {
    "OR": _OR,
    "AND": _AND,
    "=": _EQUALITY,
    "<>": _EQUALITY,
    "IS": _EQUALITY,
    **dict.fromkeys((">", ">=", "<", "<=", "NOT", "BETWEEN", "IN", "LIKE", *_SEARCHES), _COMPARISON),
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
}
"""How tightly a word binds that stands behind a value."""
_RESERVED = frozenset({*_TRUTHS, *_SEARCHES, "NOT", "AND", "OR", "BETWEEN", "IN", "IS"})
"""No properties. LIKE and ESCAPE are not among them: RocketMQ takes them for names, and here they are
words of the language only where no name can stand."""


def parse(text: str) -> Node:
    """The tree of an expression, which is a claim or a property. Raises BadExpression."""
    parser = _Parser(tokenize(text))
    root = parser.whole()
    _check_size(root)
    return root


def _check_size(root: Node) -> None:
    """Long chains of operators are deep trees, though nothing in their text is nested."""
    left, cost = [(root, 1)], 0
    while left:
        node, depth = left.pop()
        cost += 1 + (len(node.pattern) if isinstance(node, Like) else 0)
        if depth > MAX_DEPTH:
            raise _too_deep(0)
        if cost > MAX_COST:
            raise BadExpression(0, f"at most {MAX_COST} operators and values", "more of them")
        left += ((child, depth + 1) for child in children(node))


def _too_deep(position: int) -> BadExpression:
    return BadExpression(position, f"at most {MAX_DEPTH} levels", "deeper nesting")


@dataclass(slots=True)
class _Parser:
    """Reads the tokens from left to right, once."""

    tokens: list[Token]
    next: int = 0
    depth: int = 0

    def whole(self) -> Node:
        start = self._peek()
        root = _as_claim(self._expression(0), start)
        if (token := self._peek()).kind is not TokenKind.END:
            # RocketMQ ignores what follows a whole expression, so that "a > 1 + 2" is "a > 1" there.
            raise BadExpression(token.position, "an operator or the end of the expression", str(token))
        return root

    def _expression(self, loosest: int) -> Node:
        """What binds more tightly than ``loosest``."""
        start = self._peek()
        self._descend(start)
        left = self._unary()
        while (power := _POWERS.get(self._peek().word, 0)) > loosest:
            left = self._infix(left, start, power)
        self.depth -= 1
        return left

    def _unary(self) -> Node:
        token = self._take()
        if token.word == "(":
            node = self._expression(0)
            self._expect(")")
            return node
        if token.word not in ("+", "-", "NOT"):
            return _primary(token)
        start = self._peek()
        self._descend(start)
        operand = self._unary()
        self.depth -= 1
        if token.word == "+":
            return operand
        return Negative(operand) if token.word == "-" else Not(_as_claim(operand, start))

    def _descend(self, token: Token) -> None:
        """Go down one level. Each takes a few of the calls that Python lets stand one within the other."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _too_deep(token.position)

    def _infix(self, left: Node, start: Token, power: int) -> Node:
        if power <= _AND:
            return self._chain(left, start, power)
        token = self._take()
        if (comparator := _COMPARATORS.get(token.word)) is not None:
            return self._comparison(comparator, left, start, power)
        if (sign := _ARITHMETIC.get(token.word)) is not None:
            right_start = self._peek()
            right = self._expression(power)
            return Computation(sign, _as_operand(left, start), _as_operand(right, right_start))
        if token.word == "IS":
            is_negated = self._skip("NOT")
            self._expect("NULL")
            return IsNull(left, is_negated)
        is_negated = token.word == "NOT"
        return self._test(self._take() if is_negated else token, left, start, is_negated=is_negated)

    def _chain(self, left: Node, start: Token, power: int) -> Node:
        word, terms = self._peek().word, [_as_claim(left, start)]
        while self._skip(word):
            start = self._peek()
            terms.append(_as_claim(self._expression(power), start))
        return And(tuple(terms)) if power == _AND else Or(tuple(terms))

    def _comparison(self, operator: Comparator, left: Node, start: Token, power: int) -> Node:
        right_start = self._peek()
        right = self._expression(power)
        if power == _COMPARISON:
            return Comparison(operator, _as_ordered(left, start), _as_ordered(right, right_start))
        for operand, token in ((left, start), (right, right_start)):
            if operand == Truth(None):
                raise BadExpression(token.position, "a value; ask for IS NULL instead", "NULL")
        if isinstance(left, Truth) and isinstance(right, Text | Whole | Fraction):
            raise BadExpression(right_start.position, "TRUE, FALSE or a property", str(right_start))
        return Comparison(operator, left, right)

    def _test(self, token: Token, left: Node, start: Token, *, is_negated: bool) -> Node:
        """What asks a question in a word, behind its NOT if it has one."""
        if (search := _SEARCHES.get(token.word)) is not None:
            return Find(search, left, self._string(), is_negated)
        match token.word:
            case "BETWEEN":
                return self._between(left, start, is_negated=is_negated)
            case "IN":
                return In(_as_property(left, start, "IN"), self._choices(), is_negated)
            case "LIKE":
                return self._like(_as_property(left, start, "LIKE"), is_negated=is_negated)
            case _:
                raise BadExpression(
                    token.position, "BETWEEN, IN, LIKE, CONTAINS, STARTSWITH or ENDSWITH", str(token)
                )

    def _between(self, left: Node, start: Token, *, is_negated: bool) -> Node:
        low_start = self._peek()
        low = _as_ordered(self._expression(_COMPARISON), low_start)
        self._expect("AND")
        high_start = self._peek()
        high = _as_ordered(self._expression(_COMPARISON), high_start)
        match low, high:
            case ((Whole(least) | Fraction(least)), (Whole(most) | Fraction(most))) if not is_negated:
                if compare_numbers(least, most) > 0:
                    raise BadExpression(high_start.position, f"{least} or more", str(high_start))
            case _:
                pass
        return Between(_as_ordered(left, start), low, high, is_negated)

    def _choices(self) -> tuple[str, ...]:
        self._expect("(")
        choices = [self._string()]
        while self._skip(","):
            choices.append(self._string())
        self._expect(")")
        return tuple(choices)

    def _like(self, operand: Property, *, is_negated: bool) -> Node:
        token = self._peek()
        pattern, escape = self._string(), None
        if self._skip("ESCAPE"):
            escape_token = self._peek()
            escape = self._string()
            if len(escape) != 1:
                raise BadExpression(escape_token.position, "one character", str(escape_token))
        try:
            compile_like(pattern, escape)
        except BadPattern as error:
            raise BadExpression(token.position, str(error), str(token)) from error
        return Like(operand, pattern, escape, is_negated)

    def _string(self) -> str:
        token = self._take()
        if token.kind is not TokenKind.STRING:
            raise BadExpression(token.position, "a string in single quotes", str(token))
        return token.text[1:-1].replace("''", "'")

    def _peek(self) -> Token:
        return self.tokens[self.next]

    def _take(self) -> Token:
        token = self.tokens[self.next]
        if token.kind is not TokenKind.END:
            self.next += 1
        return token

    def _skip(self, word: str) -> bool:
        """Take the next token if it is this word."""
        is_there = self._peek().word == word
        self.next += is_there
        return is_there

    def _expect(self, word: str) -> None:
        token = self._peek()
        if not self._skip(word):
            raise BadExpression(token.position, word, str(token))


def _primary(token: Token) -> Node:
    match token.kind:
        case TokenKind.STRING:
            return Text(token.text[1:-1].replace("''", "'"))
        case TokenKind.WHOLE:
            return _whole(token)
        case TokenKind.FRACTION:
            return _fraction(token)
        case TokenKind.NAME if token.word in _TRUTHS:
            return _TRUTHS[token.word]
        case TokenKind.NAME if token.word not in _RESERVED:
            return Property(token.text)
        case _:
            raise BadExpression(token.position, "a property or a value", str(token))


def _whole(token: Token) -> Whole:
    digits = token.text.rstrip("lL")
    # The greatest has 19 digits. Thousands of them would take their time to be read.
    if len(digits) > len(str(INT64_MOST)) or (value := int(digits)) > INT64_MOST:
        raise BadExpression(token.position, f"a whole number of at most {INT64_MOST}", str(token))
    return Whole(value)


def _fraction(token: Token) -> Fraction:
    value = float(token.text)
    mantissa = token.text.lower().partition("e")[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("0.")):
        raise BadExpression(token.position, "a number that fits a double", str(token))
    return Fraction(value)


def _as_claim(node: Node, start: Token) -> Node:
    if isinstance(node, Claim | Property):
        return node
    raise BadExpression(start.position, "something true or false", f"a value, {start!s}")


def _as_ordered(node: Node, start: Token) -> Node:
    """What can be more or less than something else: a number, or a property that may hold one."""
    if isinstance(node, Claim | Text):
        hint = "; NOT takes what stands next to it, so put it in parentheses" if start.word == "NOT" else ""
        expected = f"a number or a property, to be compared by size{hint}"
        raise BadExpression(start.position, expected, str(start))
    return node


def _as_operand(node: Node, start: Token) -> Node:
    if isinstance(node, Claim | Text):
        raise BadExpression(start.position, "a number or a property, to be computed with", str(start))
    return node


def _as_property(node: Node, start: Token, word: str) -> Property:
    if not isinstance(node, Property):
        raise BadExpression(start.position, f"a property before {word}", str(start))
    return node
