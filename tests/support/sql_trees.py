"""Random filter expressions as trees, and their text."""

import random
from collections.abc import Callable, Sequence

from tanist.broker.sql.nodes import (
    And,
    Arithmetic,
    Between,
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
)

NAMES = ("a", "b", "c", "$d_1", "like", "Escape")
TEXTS = ("", "5", "abc", "it's", "true", "a%b_c", "Größe 🚀", "--no comment", "/* nor this */")
WHOLES = (0, 1, 5, 7, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1)
FRACTIONS = (0.5, 5.0, 5.5, 1e-5, 1e300, 9.007199254740993e15, 5e-324)
_PATTERNS = ("", "%", "_", "a%", "%b", "%5%", "a_c", "%a%b%", "it's%", "__%")


def random_claim(rng: random.Random, depth: int, *, is_extended: bool) -> Node:
    """A tree whose root may be a whole expression, though not all below it needs to make sense.

    With ``is_extended`` it may have what RocketMQ does not have.
    """
    if depth <= 0:
        return rng.choice((Truth(rng.choice((True, False, None))), Property(rng.choice(NAMES))))

    def claim() -> Node:
        return random_claim(rng, depth - 1, is_extended=is_extended)

    def value() -> Node:
        return random_value(rng, depth - 1, is_extended=is_extended)

    is_negated = rng.random() < 0.5
    name = Property(rng.choice(NAMES))
    makers: list[Callable[[], Node]] = [
        lambda: And(tuple(claim() for _ in range(rng.randint(2, 4)))),
        lambda: Or(tuple(claim() for _ in range(rng.randint(2, 4)))),
        lambda: Not(claim()),
        *[lambda: Comparison(rng.choice(list(Comparator)), value(), value())] * 3,
        lambda: Between(value(), value(), value(), is_negated),
        lambda: In(name, tuple(rng.choices(TEXTS, k=rng.randint(1, 7))), is_negated),
        lambda: IsNull(value(), is_negated),
        lambda: Find(rng.choice(list(Search)), value(), rng.choice(TEXTS), is_negated),
    ]
    if is_extended:
        makers.append(lambda: Like(name, rng.choice(_PATTERNS), rng.choice((None, "!")), is_negated))
    return rng.choice(makers)()


def random_value(rng: random.Random, depth: int, *, is_extended: bool) -> Node:
    """Something to compare: mostly a property or a number, now and then what can not be compared."""
    if depth > 0 and rng.random() < 0.2:
        return random_claim(rng, depth, is_extended=is_extended)
    if depth > 0 and rng.random() < 0.2:
        return Negative(random_value(rng, depth - 1, is_extended=is_extended))
    if is_extended and depth > 0 and rng.random() < 0.3:
        left, right = (random_value(rng, depth - 1, is_extended=True) for _ in range(2))
        return Computation(rng.choice(list(Arithmetic)), left, right)
    return rng.choice(
        (
            Property(rng.choice(NAMES)),
            Property(rng.choice(NAMES)),
            Whole(rng.choice(WHOLES)),
            Fraction(rng.choice(FRACTIONS)),
            Text(rng.choice(TEXTS)),
            Truth(rng.choice((True, False, None))),
        )
    )


def to_text(node: Node, rng: random.Random) -> str:
    """An expression that means this tree, with its keywords in any case and blanks of any kind."""
    return "".join(_blank(rng) + _spell(rng, word) for word in _words(node)) + rng.choice(("", " ", "\n"))


def _blank(rng: random.Random) -> str:
    return rng.choice((" ", " ", " ", "\t", "\r\n\f", " /* a * comment **/ ", " -- a comment\n"))


def _spell(rng: random.Random, word: str) -> str:
    """Words of the language are in capitals here, and no name of ours is."""
    return rng.choice((word, word.lower(), word.title())) if word.isalpha() and word.isupper() else word


def _words(node: Node) -> Sequence[str]:
    match node:
        case Property() | Text() | Whole() | Fraction() | Truth():
            words = (_leaf(node),)
        case Negative(operand):
            words = ("-", *_operand(operand))
        case Not(operand):
            words = ("NOT", *_operand(operand))
        case And(terms):
            words = _joined(terms, "AND")
        case Or(terms):
            words = _joined(terms, "OR")
        case Computation(operator, left, right) | Comparison(operator, left, right):
            words = (*_operand(left), operator.value, *_operand(right))
        case _:
            words = (*_operand(node.operand), *_question(node))
    return words


def _leaf(node: Property | Text | Whole | Fraction | Truth) -> str:
    match node:
        case Property(name):
            return name
        case Text(value):
            return _quoted(value)
        case Truth(value):
            return "NULL" if value is None else str(value).upper()
        case _:
            return repr(node.value)


def _question(node: Between | In | IsNull | Find | Like) -> Sequence[str]:
    negation = ("NOT",) if node.is_negated else ()
    match node:
        case IsNull():
            return ("IS", *negation, "NULL")
        case Between(_, low, high, _):
            return (*negation, "BETWEEN", *_operand(low), "AND", *_operand(high))
        case In(_, choices, _):
            return (*negation, "IN", "(", *" ,\0".join(map(_quoted, choices)).split("\0"), ")")
        case Find(search, _, wanted, _):
            return (*negation, search.value, _quoted(wanted))
        case Like(_, pattern, escape, _):
            return (
                *negation,
                "LIKE",
                _quoted(pattern),
                *(() if escape is None else ("ESCAPE", _quoted(escape))),
            )


def _joined(terms: Sequence[Node], word: str) -> Sequence[str]:
    first, *others = terms
    return (*_operand(first), *(part for term in others for part in (word, *_operand(term))))


def _operand(node: Node) -> Sequence[str]:
    words = _words(node)
    return words if len(words) == 1 else ("(", *words, ")")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
